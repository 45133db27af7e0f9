"""What the grid hides: edges inside their cells, and what is said of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analysis.estimates.curve import LrCurve
from analysis.estimates.edges import find_edges
from analysis.estimates.optimum import lr_ratio, optimum, width_contrast
from analysis.estimates.plateau import find_plateau
from analysis.simulate.draws import Design, simulate_pair
from analysis.simulate.regimes import CLEAR
from tests.unit.analysis.simulated_sweeps import curve

RATES = tuple(10.0 ** (np.arange(8) / 4 - 5))  # a quarter of a decade from 1e-5
RAMP_AND_CLIFF = (0.2, 0.3, 0.6, 0.9, 0.9, 0.9, 0.0, 0.0)


def agreeing_seeds(seeds: int) -> LrCurve:
    return curve([RAMP_AND_CLIFF] * seeds, RATES)


def test_a_hidden_cliff_is_told_by_the_seeds_that_agree_on_its_cell() -> None:
    agreeing = find_plateau(agreeing_seeds(4), 0.2)
    assert agreeing.cliff_hidden and agreeing.cliff_unresolved
    # Three of four collapse between the same two rates, one a rate earlier: 3 / 4 agree.
    rows = [np.array(RAMP_AND_CLIFF)] * 3 + [np.array((0.2, 0.3, 0.6, 0.9, 0.9, 0.0, 0.0, 0.0))]
    mostly = find_plateau(curve(rows, RATES), 0.2)
    assert not mostly.cliff_unresolved
    split = find_plateau(curve([*rows, rows[-1]], RATES), 0.2)  # 3 / 5
    assert not split.cliff_hidden


def test_a_term_of_an_irregular_grid_is_its_edges_cell() -> None:
    # The cliff's cell stays a quarter of a decade, a far gap of 0.5 no longer counts.
    far = (RATES[0] / 10**0.25, *RATES[1:])
    one, other = (optimum(curve([RAMP_AND_CLIFF] * 3, rates), 0.2) for rates in (RATES, far))
    assert one.lr.interval == pytest.approx(other.lr.interval)


def test_the_width_contrast_is_behind_the_width_difference() -> None:
    rng = np.random.default_rng(0)
    arm, baseline = simulate_pair(CLEAR.shifted(1.0), CLEAR, Design(seeds=5), rng)
    contrast = width_contrast(arm, baseline, 0.2)
    assert contrast.estimate() == lr_ratio(arm, baseline, 0.2).width_difference
    edges = [find_edges(c.positions, c.means, c.base or 0.0, 0.2) for c in (arm, baseline)]
    assert contrast.point == pytest.approx(edges[0].width - edges[1].width)


def test_the_centre_is_the_mean_of_ramp_and_cliff_for_seeds_that_agree() -> None:
    ratio = lr_ratio(agreeing_seeds(3), curve([RAMP_AND_CLIFF] * 3, [x / 5 for x in RATES]), 0.2)
    assert ratio.centre.point == pytest.approx(5.0)
    assert math.sqrt(ratio.ramp.point * ratio.cliff.point) == pytest.approx(ratio.centre.point)
