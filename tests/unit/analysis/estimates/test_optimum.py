"""LR*, its plateau and the ratio of two arms: formulas, flags and invariances."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from analysis.estimates.curve import LrCurve
from analysis.estimates.edges import find_edges
from analysis.estimates.optimum import log_ratio, lr_ratio, optimum
from analysis.estimates.plateau import noise_floor, shared_fraction
from analysis.estimates.stats import Estimate
from analysis.simulate.draws import ArmTruth, Design, simulate_curve, simulate_pair
from tests.unit.analysis.simulated_sweeps import SHARP, curve

RATES = tuple(10.0 ** (np.arange(8) / 4 - 5))  # a quarter of a decade from 1e-5
RAMP_AND_CLIFF = (0.2, 0.3, 0.6, 0.9, 0.9, 0.9, 0.0, 0.0)


def simulated(seeds: int = 3, rng_seed: int = 0, **design: float) -> tuple[LrCurve, LrCurve]:
    rng = np.random.default_rng(rng_seed)
    plan = replace(Design(seeds=seeds), **design)
    return simulate_pair(ArmTruth().shifted(1.0), ArmTruth(), plan, rng)


def shifted(seeds: int) -> LrCurve:
    """Seeds that differ by a constant, hence agree on every edge."""
    rows = [np.array(RAMP_AND_CLIFF) for _ in range(seeds)]
    return curve(rows, RATES)


def test_the_midpoint_by_hand() -> None:
    # top 0.9, threshold 0.9 - 0.2 * 0.8 = 0.74. Ramp: cell 2 to 3, at 3 - 0.16 / 0.3 = 2.46667
    # cells, -5 + 2.46667 / 4 = -4.383333. Cliff: 5 + 0.16 / 0.9 = 5.177778, -3.705556.
    # Centre -4.044444, width 0.677778.
    found = optimum(shifted(3), 0.2)
    assert math.log10(found.ramp.point) == pytest.approx(-4.383333, abs=1e-6)
    assert math.log10(found.cliff.point) == pytest.approx(-3.705556, abs=1e-6)
    assert math.log10(found.lr.point) == pytest.approx(-4.044444, abs=1e-6)
    assert found.width.point == pytest.approx(0.677778, abs=1e-6)
    assert found.threshold == pytest.approx(0.74)
    assert found.fit == pytest.approx(RAMP_AND_CLIFF)


def test_the_grid_term_keeps_the_interval_open() -> None:
    # Seeds agree: no spread. The cliff drops 0.9 / 0.8 > 0.9 rises in one cell: a collapse hidden
    # in it, gamma = max(0.11 h, h sqrt(0.04)) = 0.25 * 0.2 = 0.05 decades, half width 1.644854
    # gamma = 0.0822427. (The ramp drops 0.3 / 0.8 and is resolved.)
    found = optimum(shifted(3), 0.2)
    assert found.flags == ("unresolved",)
    assert found.lr.interval == pytest.approx(
        (found.lr.point / 10**0.0822427, found.lr.point * 10**0.0822427), rel=1e-5
    )


def test_the_ratio_of_an_arm_with_itself() -> None:
    # Two unresolved edges: gamma = max(0.15 h, h sqrt(2 / 48)) = 0.25 * 0.2041241 = 0.0510310,
    # half width 0.0839385 decades.
    ratio = lr_ratio(shifted(3), shifted(3), 0.2)
    assert ratio.centre.point == pytest.approx(1.0)
    assert ratio.centre.interval == pytest.approx((10**-0.0839385, 10**0.0839385), rel=1e-5)
    # Ramp: 0.08 h = 0.02, half 0.0328971. Cliff, both unresolved: 0.41 h = 0.1025, 0.1685976.
    assert ratio.ramp.interval == pytest.approx((10**-0.0328971, 10**0.0328971), rel=1e-5)
    assert ratio.cliff.interval == pytest.approx((10**-0.1685976, 10**0.1685976), rel=1e-5)
    assert ratio.width_difference.interval == pytest.approx((-0.1685976, 0.1685976), rel=1e-5)


@pytest.mark.parametrize("seeds", [3, 5])
def test_without_the_grid_term_the_spread_is_welchs(seeds: int) -> None:
    arm, baseline = simulated(seeds)

    def centres(c: LrCurve) -> list[float]:
        return [find_edges(c.positions, row, c.base, 0.2).centre for row in c.scores]

    test = scipy_stats.ttest_ind(centres(arm), centres(baseline), equal_var=False)
    expected = test.confidence_interval(0.9)
    bare = replace(log_ratio(arm, baseline, 0.2), grid_term=0.0)
    assert bare.df == pytest.approx(test.df)
    assert bare.half_width() == pytest.approx((expected.high - expected.low) / 2)


def test_the_point_comes_from_the_mean_curve() -> None:
    arm, _ = simulated(5)
    edges = find_edges(arm.positions, arm.means, arm.base, 0.2)
    assert math.log10(optimum(arm, 0.2).lr.point) == pytest.approx(edges.centre)


@pytest.mark.parametrize("seeds", [1, 2])
def test_few_seeds_give_points_without_interval(seeds: int) -> None:
    arm, baseline = simulated(seeds)
    found, ratio = optimum(arm, 0.2), lr_ratio(arm, baseline, 0.2)
    assert "few_seeds" in found.flags and "few_seeds" in ratio.flags
    for estimate in (found.lr, found.ramp, found.cliff, found.width, ratio.centre, ratio.ramp):
        assert math.isfinite(estimate.point)
        assert estimate.interval is None


def test_an_optimum_on_the_high_edge_is_a_bound_without_ratio() -> None:
    arm, baseline = shifted(3), shifted(3)
    cut = curve(arm.scores[:, :6], RATES[:6], arm="lora")
    found, ratio = optimum(cut, 0.2), lr_ratio(cut, baseline, 0.2)
    assert {"edge_high", "edge_seed"} <= set(found.flags)
    assert found.cliff.point == pytest.approx(RATES[5])
    assert found.lr.interval is None and found.cliff.interval is None
    assert found.width.interval is None
    assert found.ramp.interval is not None
    assert math.isnan(ratio.centre.point) and ratio.centre.interval is None
    assert math.isnan(ratio.cliff.point) and math.isnan(ratio.width_difference.point)
    assert ratio.ramp.point == pytest.approx(1.0) and ratio.ramp.interval is not None


def test_an_optimum_on_the_low_edge_keeps_the_cliff() -> None:
    arm = shifted(3)
    cut = curve(arm.scores[:, 3:], RATES[3:])
    found, ratio = optimum(cut, 0.2), lr_ratio(cut, arm, 0.2)
    assert "edge_low" in found.flags
    assert found.ramp.interval is None and found.cliff.interval is not None
    assert math.isnan(ratio.ramp.point) and ratio.cliff.interval is not None


def test_one_seed_without_edge_is_a_note_two_of_three_are_an_edge() -> None:
    ends = np.array(RAMP_AND_CLIFF)
    stays = np.where(np.arange(8) > 5, 0.9, ends)
    one, two = curve([ends, ends, stays], RATES), curve([ends, stays, stays], RATES)
    assert "edge_seed" in optimum(one, 0.2).flags
    assert "edge_high" not in optimum(one, 0.2).flags
    assert "edge_high" in optimum(two, 0.2).flags


@pytest.mark.parametrize(
    ("scores", "rates"),
    [
        ((0.2, 0.9, 0.9, 0.1), RATES[:4]),  # four rates
        ((0.1, 0.2, 0.9, 0.2, 0.1), tuple(10.0 ** (np.arange(5) / 2))),  # one inside, its top low
        ((0.2, 0.5, 0.9, 0.9, 0.9, 0.1), tuple(10.0 ** np.arange(6))),  # a decade beside an edge
    ],
)
def test_few_points(scores: tuple[float, ...], rates: tuple[float, ...]) -> None:
    found = optimum(curve([scores] * 3, rates), 0.2)
    assert "few_points" in found.flags
    assert found.lr.interval is None and math.isfinite(found.lr.point)


def test_a_grid_of_1_3_10_is_fine_enough() -> None:
    rates = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3)
    found = optimum(curve([(0.15, 0.4, 0.8, 0.9, 0.8, 0.1)] * 3, rates), 0.2)
    assert "few_points" not in found.flags


def test_noise_without_signal_is_flat() -> None:
    rng = np.random.default_rng(0)
    noise = curve(0.1 + rng.normal(0, 0.02, size=(3, 8)), RATES)
    found, ratio = optimum(noise, 0.2), lr_ratio(noise, shifted(3), 0.2)
    assert "flat" in found.flags
    assert math.isnan(found.lr.point) and found.lr.interval is None
    assert (found.ramp.point, found.cliff.point) == pytest.approx((RATES[0], RATES[-1]))
    assert math.isnan(ratio.centre.point) and math.isnan(ratio.ramp.point)


def test_an_arm_that_never_beats_the_base_is_flat() -> None:
    assert "flat" in optimum(curve([np.full(8, 0.05)] * 3, RATES), 0.2).flags


@pytest.mark.parametrize("base", [0.0, 0.18])
def test_a_collapsing_arm_is_not_flat(base: float) -> None:
    rng = np.random.default_rng(0)
    truth = ArmTruth(base=base, rise=0.7)
    arms = [simulate_curve("full", truth, Design(), rng) for _ in range(20)]
    assert not any("flat" in optimum(arm, 0.2).flags for arm in arms)


def test_a_recovery_behind_the_cliff_is_not_unimodal() -> None:
    found = optimum(curve([(0.2, 0.3, 0.6, 0.9, 0.9, 0.9, 0.0, 0.8)] * 3, RATES), 0.2)
    assert "not_unimodal" in found.flags
    assert found.lr.interval is not None


def test_curves_of_different_width_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    wide = replace(ArmTruth(), ramp=-4.19, span=ArmTruth().span + 0.65)
    arm, baseline = simulate_pair(wide, ArmTruth(), Design(seeds=5, points=11), rng)
    ratio = lr_ratio(arm, baseline, 0.2)
    assert "shape_differs" in ratio.flags
    assert ratio.width_difference.low is not None and ratio.width_difference.low > 0


def test_the_shared_fraction_shrinks_for_shallow_curves_only() -> None:
    # Rise 1.0 over the base; the higher end is 0.1 below the top: half of it is 0.05.
    shallow = curve([(0.95, 1.0, 1.1, 1.1, 1.0, 1.0)] * 3, RATES[:6])
    steep = shifted(3)
    assert shared_fraction([steep]) == pytest.approx(0.2)
    assert shared_fraction([steep, shallow]) == pytest.approx(0.05)
    assert shared_fraction([]) == pytest.approx(0.2)


def test_an_edge_arm_does_not_drag_the_fraction_down() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.01, size=(3, 6))
    rising = curve(np.array((0.2, 0.3, 0.6, 0.9, 0.92, 0.91)) + noise, RATES[:6], arm="lora")
    assert shared_fraction([shifted(3), rising]) == pytest.approx(0.2)
    assert "edge_high" in optimum(rising, 0.2).flags


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1])
def test_a_fraction_lies_between_0_and_1(fraction: float) -> None:
    with pytest.raises(ValueError, match="0 < fraction < 1"):
        optimum(shifted(3), fraction)


def test_the_noise_floor_leaves_collapsed_runs_out() -> None:
    design = Design(seeds=10, points=13, noise=0.02, eval_prompts=100_000)
    rng = np.random.default_rng(0)
    arms = [simulate_curve(name, ArmTruth(), design, rng) for name in ("full", "lora")]
    floor = noise_floor((curve, 0.2) for curve in arms)
    assert floor is not None and floor.cells >= 6
    assert floor.sd == pytest.approx(0.02, rel=0.2)  # chi-square with 9 df a cell: SE 10 %
    assert noise_floor([(arms[0], 0.2)]) is None


def points(ratio: Estimate) -> tuple[float, ...]:
    return (ratio.point, *(ratio.interval or ()))


@settings(max_examples=10, deadline=None)
@given(st.floats(1e-3, 1e3), st.integers(0, 10**6))
def test_other_units_of_the_rate_scale_the_optimum_and_keep_the_ratio(
    scale: float, rng_seed: int
) -> None:
    arm, baseline = simulated(rng_seed=rng_seed)
    scaled = [
        replace(c, learning_rates=tuple(scale * x for x in c.learning_rates))
        for c in (arm, baseline)
    ]
    assert points(optimum(scaled[0], 0.2).lr) == pytest.approx(
        [scale * x for x in points(optimum(arm, 0.2).lr)]
    )
    ratio, same = lr_ratio(arm, baseline, 0.2), lr_ratio(scaled[0], scaled[1], 0.2)
    assert points(same.centre) == pytest.approx(points(ratio.centre), nan_ok=True)
    assert points(same.cliff) == pytest.approx(points(ratio.cliff), nan_ok=True)


@settings(max_examples=10, deadline=None)
@given(st.floats(-2, 2), st.integers(0, 10**6))
def test_adding_a_constant_to_scores_and_base_changes_nothing(shift: float, rng_seed: int) -> None:
    arm, _ = simulated(rng_seed=rng_seed)
    found = optimum(arm, 0.2)
    moved = optimum(replace(arm, scores=arm.scores + shift, base=arm.base + shift), 0.2)
    assert points(moved.lr) == pytest.approx(points(found.lr), nan_ok=True)
    assert moved.flags == found.flags


@settings(max_examples=10, deadline=None)
@given(st.permutations(range(5)), st.integers(0, 10**6))
def test_the_order_of_seeds_changes_nothing(order: list[int], rng_seed: int) -> None:
    arm, baseline = simulated(seeds=5, rng_seed=rng_seed)
    shuffled = replace(arm, scores=arm.scores[order], seeds=tuple(order))
    one, other = lr_ratio(arm, baseline, 0.2), lr_ratio(shuffled, baseline, 0.2)
    assert points(one.centre) == pytest.approx(points(other.centre), nan_ok=True)
    assert points(one.ramp) == pytest.approx(points(other.ramp), nan_ok=True)


def test_a_plateau_with_a_sharp_cliff_keeps_its_midpoint() -> None:
    # The crossing sits near the inner end of the cliff's cell: LR* is a few hundredths low.
    rng = np.random.default_rng(0)
    truth = sum(SHARP.plateau(0.2)) / 2
    found = [optimum(simulate_curve("x", SHARP, Design(), rng), 0.2).lr.point for _ in range(60)]
    assert np.mean(np.log10(found)) == pytest.approx(truth, abs=0.05)
