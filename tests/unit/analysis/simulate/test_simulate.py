"""The simulator draws what it says it draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analysis.simulate.draws import (
    ArmTruth,
    Design,
    UShape,
    simulate_curve,
    simulate_pair,
    simulate_paths,
    simulate_scores,
)


def test_the_mean_of_many_runs_is_the_expected_score() -> None:
    truth = ArmTruth()
    x = np.linspace(truth.ramp - 0.5, truth.ramp + truth.span + 0.4, 12)
    rng = np.random.default_rng(0)
    design = Design(seeds=20_000, noise=0.02)
    scores = simulate_scores(truth, x, design, rng)
    # The run SD is at most 0.45 (half collapsed): 4 standard errors are 0.013.
    assert scores.mean(axis=0) == pytest.approx(truth.expected(x), abs=0.013)


def test_the_plateau_is_cut_where_the_expected_score_says() -> None:
    truth = ArmTruth()
    low, high = truth.plateau(0.2)
    x = np.arange(-7, -2, 1e-4)
    top = truth.expected(x).max()
    threshold = top - 0.2 * (top - truth.base)
    assert truth.expected([low, high]) == pytest.approx([threshold, threshold], abs=0.01)
    assert truth.shifted(1.0).plateau(0.2) == pytest.approx((low + 1, high + 1), abs=2e-3)


def test_expected_score_starts_at_the_base_and_ends_in_collapse() -> None:
    truth = ArmTruth()
    assert truth.expected(truth.ramp - 2) == pytest.approx(truth.base, abs=1e-3)
    assert truth.expected(truth.ramp + truth.span + 1) == pytest.approx(0, abs=1e-3)


def test_seed_noise_has_the_stated_size_and_common_share() -> None:
    truth = ArmTruth(span=3.0)
    x = np.array([truth.ramp + 0.6, truth.ramp + 0.6])  # far from collapse
    design = Design(seeds=4000, noise=0.03, eval_prompts=10**8)
    scores = simulate_scores(truth, x, design, np.random.default_rng(0))
    assert scores.std(axis=0) == pytest.approx([0.03, 0.03], rel=0.05)
    assert np.corrcoef(scores.T)[0, 1] == pytest.approx(0.3, abs=0.05)


def test_grid_and_seeds_follow_the_design() -> None:
    curve = simulate_curve("x", ArmTruth(), Design(seeds=4, points=7), np.random.default_rng(0))
    assert curve.scores.shape == (4, 7)
    assert np.diff(curve.positions) == pytest.approx(np.full(6, 0.25))
    assert ((curve.scores >= 0) & (curve.scores <= 1)).all()


def test_the_same_generator_state_gives_the_same_sweep() -> None:
    truth = ArmTruth()
    one, two = (simulate_pair(truth, truth, Design(), np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(one[0].scores, two[0].scores)
    assert one[1].learning_rates == two[1].learning_rates


@pytest.mark.parametrize("skew", [0.0, 2.0])
def test_a_u_shape_has_its_vertex_and_depth(skew: float) -> None:
    truth = UShape(vertex=-4.0, height=0.9, depth=1.0, skew=skew, base=None)
    x = np.linspace(-5, -3, 2001)
    assert x[truth.expected(x).argmax()] == pytest.approx(-4.0, abs=1e-3)
    assert truth.best(0.2) == -4.0
    step = 1e-3
    second = truth.alive([-4 - step, -4, -4 + step]) @ [1, -2, 1] / step**2
    assert second == pytest.approx(-1.0, abs=0.01)
    low, high = truth.alive([-5.0, -3.0])
    assert (low > high) == (skew > 0)


def test_a_u_shape_with_a_base_ends_on_it_and_has_a_plateau() -> None:
    truth = UShape(vertex=-4.0, height=0.9, depth=1.2, base=0.2)
    assert truth.alive(-7.0) == pytest.approx(0.2)
    # 0.2 rises below the top: 0.14 = 0.6 u^2, u = 0.483046.
    assert truth.plateau(0.2) == pytest.approx((-4.483, -3.517), abs=2e-3)
    with pytest.raises(ValueError, match="without a base"):
        UShape(base=None).plateau(0.2)


def test_a_loss_has_no_evaluation_noise_and_no_bounds() -> None:
    truth = UShape(height=-0.5, base=None)
    design = Design(noise=0.0, eval_prompts=None)
    curve = simulate_curve("x", truth, design, np.random.default_rng(0))
    assert curve.base is None
    assert curve.means == pytest.approx(truth.alive(curve.positions))


def test_a_run_comes_up_its_curve_and_stays_collapsed() -> None:
    truth = ArmTruth()
    x = np.linspace(-6.5, -2.5, 40)
    design = Design(seeds=50, eval_prompts=10**8)
    shares = (0.1, 0.5, 1.0)
    paths = simulate_paths(truth, x, design, np.random.default_rng(0), progress=shares)
    gone = paths < 1e-6
    assert not (gone[..., 0] & ~gone[..., 1]).any() and not (gone[..., 1] & ~gone[..., 2]).any()
    assert gone[..., 2].sum() > gone[..., 0].sum()
    # After a tenth of the training the curve lies drift = 0.5 decades higher.
    expected = truth.shifted(0.5).alive(x)
    alive = ~gone[..., 0].any(axis=0)
    assert paths[:, alive, 0].mean(axis=0) == pytest.approx(expected[alive], abs=0.01)


def test_an_irregular_grid_keeps_its_order_and_an_offset_moves_it() -> None:
    rng = np.random.default_rng(0)
    gaps = [np.diff(Design(irregular=0.3).positions(-4.0, rng)) for _ in range(200)]
    assert np.min(gaps) > 0.4 * 0.25 - 1e-9 and np.max(gaps) < 1.6 * 0.25 + 1e-9
    assert np.ptp(gaps) > 0.2
    middles = [Design(offset=1.0).positions(-4.0, rng).mean() for _ in range(200)]
    assert np.mean(middles) == pytest.approx(-3.0, abs=0.02)


def test_arms_may_differ_in_design_and_share_their_first_seeds() -> None:
    truth = ArmTruth(span=3.0)
    rng = np.random.default_rng(0)
    common = Design(seeds=400, noise=0.03, common=1.0, eval_prompts=10**8)
    pair = simulate_pair(truth, truth, common, rng, replace(common, seeds=500))
    assert [curve.n_seeds for curve in pair] == [400, 500]
    a, b = (curve.scores[:400, 4] for curve in pair)  # mid-grid: on the plateau
    assert np.corrcoef(a, b)[0, 1] > 0.99


@pytest.mark.parametrize(
    ("changes", "law"),
    [
        ({"seeds": 0}, "seeds >= 1 must hold, got 0"),
        ({"spacing": 0.0}, "spacing > 0 must hold"),
        ({"noise": -0.1}, "noise >= 0 must hold"),
        ({"irregular": 0.6}, "2 irregular <= 1"),
        ({"common": 1.5}, "common <= 1"),
    ],
)
def test_a_design_checks_itself(changes: dict[str, float], law: str) -> None:
    with pytest.raises(ValueError, match=law):
        Design(**changes)
