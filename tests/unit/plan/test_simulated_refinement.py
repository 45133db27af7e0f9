"""What refining a grid brings, in sweeps drawn from known curves."""

from __future__ import annotations

import pytest

from study.plan.refine import around
from tests.unit.plan.simulated_refinement import evenly, simulate

POINTS = 4


def test_refining_halves_what_a_half_decade_grid_loses_to_the_best_rate() -> None:
    grid = simulate(None, 0, spacing=0.5, rates=5, sweeps=6)
    refined = simulate(around, POINTS, spacing=0.5, rates=5, sweeps=6)
    assert refined.regret < grid.regret / 2
    assert refined.decades < grid.decades


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("spacing", "rates", "most", "of_grid"),
    [(0.5, 5, 0.008, 0.4), (0.25, 8, 0.009, 0.7), (0.2, 10, 0.011, 0.75)],
)
def test_a_process_loses_less_than_the_grid_and_than_points_spread_evenly(
    spacing: float, rates: int, most: float, of_grid: float
) -> None:
    # Accuracy lost in 600 sweeps each: grid 0.022, 0.012, 0.014; evenly spread 0.010, 0.009, 0.014;
    # the process 0.007, 0.007, 0.009.
    grid = simulate(None, 0, spacing, rates, sweeps=60)
    even = simulate(evenly, POINTS, spacing, rates, sweeps=60)
    found = simulate(around, POINTS, spacing, rates, sweeps=60)
    assert found.regret < most
    assert found.regret < of_grid * grid.regret
    assert found.regret < even.regret
