"""The vertex of curves whose untrained model nobody evaluated."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.estimates.curve import LrCurve
from analysis.estimates.optimum import log_ratio, lr_ratio, optimum
from analysis.estimates.parabola import find_parabola, vertex
from analysis.estimates.plateau import find_plateau, noise_floor, shared_fraction

GRID = np.array([-5.0, -4.5, -4.0, -3.5, -3.0])


def sft(rows: list[np.ndarray], positions: np.ndarray = GRID, arm: str = "lora") -> LrCurve:
    scores = np.array(rows, dtype=float)
    no = np.zeros(scores.shape, dtype=bool)
    rates = tuple(float(x) for x in 10**positions)
    return LrCurve(arm, rates, scores, tuple(range(len(scores))), None, no)


def bowl(place: float, positions: np.ndarray = GRID) -> np.ndarray:
    return -0.5 - 0.04 * (positions - place) ** 2


def test_the_vertex_by_hand() -> None:
    # Through (-4, -1), (-3, 0) and (-2, -0.5): slopes 1 and -0.5 at -3.5 and -2.5, so 0 at
    # -3.5 + 1 / 1.5 = -2.833333; curvature (-0.5 - 1) / 2 = -0.75, height 0.75 / 36 = 0.0208333.
    found = vertex(np.array([-4.0, -3.0, -2.0]), np.array([-1.0, 0.0, -0.5]))
    assert found == pytest.approx((-2.8333333, 0.0208333), abs=1e-6)


@given(st.floats(-4.4, -3.6), st.lists(st.floats(0.1, 0.9), min_size=4, max_size=4))
def test_a_parabola_is_found_exactly_on_any_grid(place: float, gaps: list[float]) -> None:
    x = -4.0 + np.concatenate([[0.0], np.cumsum(gaps)]) - sum(gaps[:2])
    y = bowl(place, x)
    if 0 < y.argmax() < 4:
        assert vertex(x, y) == pytest.approx((place, -0.5))


def test_the_vertex_agrees_with_numpy() -> None:
    x, y = GRID[1:4], np.array([-0.55, -0.50, -0.53])
    a, b, _ = np.polyfit(x, y, 2)
    assert vertex(x, y)[0] == pytest.approx(-b / (2 * a))


def test_equal_points_keep_the_best_one() -> None:
    assert vertex(GRID[:3], np.zeros(3)) == (GRID[0], 0.0)
    assert vertex(GRID, np.array([0.0, 1.0, 1.0, 1.0, 0.0])) == (pytest.approx(-4.25), 1.125)


def test_one_seed_gives_a_point() -> None:
    found = optimum(sft([bowl(-4.1)]), 0.2)
    assert math.log10(found.lr.point) == pytest.approx(-4.1)
    assert found.lr.interval is None
    assert found.flags == ("parabola", "few_seeds")
    assert all(math.isnan(e.point) for e in (found.ramp, found.cliff, found.width))
    assert math.isnan(found.threshold)
    assert found.top == pytest.approx(-0.5)


def test_three_seeds_give_an_interval_by_t_and_a_grid_term() -> None:
    # Vertices -4.2, -4.1, -4.0; the mean curve's is -4.1. SD 0.1, t[.95, 2] = 2.919986;
    # grid 0.5 h^2 = 0.125: sqrt((2.919986 * 0.1 / sqrt(3))^2 + (1.644854 * 0.125)^2) = 0.2658856.
    found = optimum(sft([bowl(-4.2), bowl(-4.1), bowl(-4.0)]), 0.2)
    assert found.flags == ("parabola",)
    low, high = (math.log10(x) for x in found.lr.interval or (1, 1))
    assert (low, high) == pytest.approx((-4.1 - 0.2658856, -4.1 + 0.2658856), abs=1e-6)


@pytest.mark.parametrize(("place", "flag"), [(-5.3, "edge_low"), (-2.7, "edge_high")])
def test_an_optimum_at_the_end_of_the_grid_is_a_bound(place: float, flag: str) -> None:
    curve = sft([bowl(place)] * 3)
    found = optimum(curve, 0.2)
    assert flag in found.flags and found.lr.interval is None
    ends = {"edge_low": GRID[0], "edge_high": GRID[-1]}
    assert math.log10(found.lr.point) == pytest.approx(ends[flag])
    ratio = lr_ratio(curve, sft([bowl(-4.1)] * 3, arm="full"), 0.2)
    assert math.isnan(ratio.centre.point) and flag in ratio.flags


def test_seeds_whose_best_is_an_end_are_noted_and_too_many_are_an_edge() -> None:
    one = sft([bowl(-4.1)] * 3 + [bowl(-5.3)])
    two = sft([bowl(-4.4)] * 2 + [bowl(-5.0)] * 2)
    assert {"edge_seed"} == set(find_parabola(one).flags) - {"parabola"}
    assert "edge_low" in find_parabola(two).flags


@pytest.mark.parametrize(
    "positions", [np.array([-4.0, -3.5]), np.array([-5.0, -4.0, -3.5]), GRID[:1]]
)
def test_a_coarse_grid_gives_no_interval(positions: np.ndarray) -> None:
    found = optimum(sft([bowl(-4.1, positions)] * 3, positions), 0.2)
    assert "few_points" in found.flags and found.lr.interval is None


def test_a_diverged_run_beside_the_best_is_no_part_of_a_parabola() -> None:
    curve = sft([bowl(-4.1)] * 3)
    beside, far = np.zeros((2, 3, 5), dtype=bool)
    beside[0, 3], far[0, 4] = True, True
    assert "few_points" in find_parabola(replace(curve, collapsed=beside)).flags
    assert "few_points" not in find_parabola(replace(curve, collapsed=far)).flags


def test_noise_without_signal_is_flat() -> None:
    rng = np.random.default_rng(1)
    found = optimum(sft(list(rng.normal(-0.5, 0.01, (4, 5)))), 0.2)
    assert "flat" in found.flags
    assert math.isnan(found.lr.point) and found.lr.interval is None
    assert "flat" in find_parabola(sft([np.full(5, -0.5)])).flags


def test_the_ratio_of_two_vertices_by_hand() -> None:
    # Equal seeds: no spread. 0.4 h^2 = 0.1, half width 0.1644854 decades.
    lora, full = sft([bowl(-3.9)] * 3), sft([bowl(-4.2)] * 3, arm="full")
    ratio = lr_ratio(lora, full, 0.2)
    assert ratio.centre.point == pytest.approx(10**0.3)
    assert ratio.centre.interval == pytest.approx(
        (10 ** (0.3 - 0.1644854), 10 ** (0.3 + 0.1644854))
    )
    assert log_ratio(lora, full, 0.2).point == pytest.approx(0.3)
    assert math.isnan(ratio.ramp.point) and math.isnan(ratio.width_difference.point)


def test_an_arm_with_a_base_meets_one_without_by_its_parabola() -> None:
    full = replace(sft([bowl(-4.2)] * 3, arm="full"), base=-0.9)
    ratio = lr_ratio(sft([bowl(-3.9)] * 3), full, 0.2)
    assert ratio.centre.point == pytest.approx(10**0.3)
    assert "parabola" in ratio.flags


def test_without_a_base_there_is_no_plateau() -> None:
    curve = sft([bowl(-4.1)] * 3)
    assert shared_fraction([curve]) == pytest.approx(0.2)
    with pytest.raises(ValueError, match="arm lora has none"):
        find_plateau(curve, 0.2)


def test_the_noise_floor_takes_the_best_rate_and_its_neighbours() -> None:
    rng = np.random.default_rng(0)
    curves = [sft([bowl(-4.1) + rng.normal(0, 0.001, 5) for _ in range(20)]) for _ in range(2)]
    floor = noise_floor((curve, 0.2) for curve in curves)
    assert floor is not None and floor.cells == 6
    assert floor.sd == pytest.approx(0.001, rel=0.2)  # 114 df: SE 7 %
