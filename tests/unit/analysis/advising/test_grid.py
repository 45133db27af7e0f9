"""Grids bracket their range, sit on the lattice, and are equal where a comparison needs it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from analysis.advising.grid import Grid, aligned, bracket
from analysis.estimates.optimum import optimum
from analysis.simulate.draws import ArmTruth, Design, simulate_curve
from study.plan.arms import SPACING_TOLERANCE


def gaps(grid: Grid) -> list[float]:
    return [math.log10(b / a) for a, b in itertools.pairwise(grid.rates)]


def test_a_narrow_range_gets_quarter_decades() -> None:
    grid = bracket(2.7e-4, 5.2e-4, half_plateau=0.45)
    # 10^(-3.57 - 0.45) = 9.6e-5 and 10^(-3.28 + 0.45) = 1.5e-3, outwards to the lattice
    assert grid.rates == (5.6e-5, 1e-4, 1.8e-4, 3.2e-4, 5.6e-4, 1e-3, 1.8e-3)
    assert grid.spacing == 0.25
    assert grid.override == "[5.6e-5,1e-4,1.8e-4,3.2e-4,5.6e-4,1e-3,1.8e-3]"


def test_a_wide_range_gets_half_decades() -> None:
    assert len(bracket(1e-5, 1e-4).rates) == 9  # the most quarter decades there are
    grid = bracket(1e-5, 2e-4)
    assert grid.rates == (3.2e-6, 1e-5, 3.2e-5, 1e-4, 3.2e-4, 1e-3)
    assert grid.spacing == 0.5


def test_a_point_still_gets_five_rates() -> None:
    grid = bracket(1e-4, 1e-4, half_plateau=0.0)
    assert len(grid.rates) == 5 and grid.rates[2] == 1e-4


def test_every_grid_reaches_half_a_plateau_beyond_its_range() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        low = 10 ** rng.uniform(-7, -2)
        high, half = low * 10 ** rng.uniform(0, 2), rng.uniform(0, 1)
        grid = bracket(low, high, half)
        slack = 1.02  # two digits
        assert grid.rates[0] <= low / 10 ** max(half, grid.spacing) * slack
        assert grid.rates[-1] >= high * 10 ** max(half, grid.spacing) / slack
        assert gaps(grid) == pytest.approx([grid.spacing] * len(gaps(grid)), abs=0.012)
        assert len(grid.rates) <= 9 or grid.spacing == 0.5


def test_aligned_grids_pass_the_law_of_equal_grids() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        grids = [
            bracket(low, low * 10 ** rng.uniform(0, 2), rng.uniform(0.2, 0.8))
            for low in 10 ** rng.uniform(-7, -3, size=2)
        ]
        first, second = aligned(*grids)
        assert len(first.rates) == len(second.rates)
        assert np.abs(np.array(gaps(first)) - gaps(second)).max() <= SPACING_TOLERANCE
        for before, after in zip(grids, (first, second), strict=True):
            assert after.rates[0] <= before.rates[0] and after.rates[-1] >= before.rates[-1]


def test_a_range_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="0 < low <= high must hold"):
        bracket(1e-3, 1e-4)


def test_the_grid_around_an_own_best_rate_holds_both_ends_of_the_plateau() -> None:
    """That is what it is for: an optimum at an end of the next grid would be a bound."""
    truth, rng = ArmTruth(), np.random.default_rng(4)
    ramp, cliff = truth.plateau(0.2)
    held = 0
    for _ in range(100):
        found = optimum(simulate_curve("lora", truth, Design(), rng), 0.2)
        assert found.lr.interval is not None and found.width.interval is not None
        grid = bracket(*found.lr.interval, found.width.interval[1] / 2)
        held += math.log10(grid.rates[0]) < ramp and cliff < math.log10(grid.rates[-1])
    assert held >= 97
