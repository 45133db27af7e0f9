"""The interaction of method and batch size: hand-worked, regression, coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm

from analysis.estimates.equivalence import equivalence_p
from analysis.estimates.interaction import batch_interaction, combination, slope_difference
from analysis.estimates.stats import welch_difference

RNG = np.random.default_rng(0)


def cells(slope: float, batches: tuple[float, ...], seeds: int = 5, sd: float = 0.02) -> dict:
    return {b: 0.5 + slope * math.log2(b) + RNG.normal(0, sd, seeds) for b in batches}


def test_the_slope_by_hand() -> None:
    # Batches 8, 16, 32: b = -1, 0, 1. Means of LoRA 0.5, 0.4, 0.2, of FullFT 0.5 each:
    # D = 0, -0.1, -0.3; slope (-0.3 - 0) / 2 = -0.15. Each outer cell has s2 = 0.0002 and n = 2,
    # variance of a mean 0.0001; four of them, weights 1/4: var = 0.0001, SE 0.01. Degrees of
    # freedom: (4 x)^2 / (4 x^2 / 1) = 4; fewest seeds 2.
    lora = {8: [0.49, 0.51], 16: [0.4, 0.4], 32: [0.19, 0.21]}
    full = {8: [0.49, 0.51], 16: [0.5, 0.5], 32: [0.49, 0.51]}
    found = batch_interaction(lora, full)
    assert found.slope.point == pytest.approx(-0.15)
    assert found.slope.standard_error == pytest.approx(0.01)
    assert (found.slope.df, found.slope.n) == (pytest.approx(4), 2)
    assert found.differences[16].point == pytest.approx(-0.1)
    assert found.curvature is None and not found.is_curved


def test_the_slope_is_the_interaction_of_a_regression() -> None:
    lora, full = cells(-0.02, (4, 8, 16, 32)), cells(0.0, (4, 8, 16, 32))
    rows = [
        (score, math.log2(b), group)
        for group, own in ((1.0, lora), (0.0, full))
        for b, scores in own.items()
        for score in scores
    ]
    score, x, group = np.array(rows).T
    design = np.stack([np.ones_like(x), x, group, x * group], axis=1)
    found = batch_interaction(lora, full)
    assert found.slope.point == pytest.approx(sm.OLS(score, design).fit().params[3])
    curved = np.column_stack([design, x**2, x**2 * group])
    assert found.curvature is not None
    assert found.curvature.point == pytest.approx(sm.OLS(score, curved).fit().params[5])


def test_two_cells_are_welchs_t() -> None:
    a, b = np.array([0.5, 0.53, 0.47]), np.array([0.44, 0.49, 0.46, 0.45])
    found, welch = combination([a, b], np.array([1.0, -1.0])), welch_difference(a, b)
    assert (found.point, found.standard_error, found.df) == pytest.approx(
        (welch.point, welch.standard_error, welch.df)
    )


def test_a_bend_is_called_one() -> None:
    bent = {b: 0.5 - 0.05 * (math.log2(b) - 3.5) ** 2 + RNG.normal(0, 0.01, 5)
            for b in (4, 8, 16, 32)}  # fmt: skip
    assert batch_interaction(bent, cells(0.0, (4, 8, 16, 32), sd=0.01)).is_curved


@pytest.mark.parametrize(
    ("lora", "full", "law"),
    [
        ({8: [1, 2], 16: [1, 2]}, {8: [1, 2], 16: [1, 2]}, "at least 3 batch sizes, got 2"),
        ({8: [1, 2], 16: [1, 2], 32: [1, 2]}, {8: [1, 2]}, "the same batch sizes"),
        ({8: [1], 16: [1, 2], 32: [1, 2]}, {8: [1, 2], 16: [1, 2], 32: [1, 2]}, "at least 2"),
        ({0: [1, 2], 16: [1, 2], 32: [1, 2]}, {0: [1, 2], 16: [1, 2], 32: [1, 2]}, "positive"),
    ],
)
def test_what_gives_no_slope_is_refused(lora: dict, full: dict, law: str) -> None:
    with pytest.raises(ValueError, match=law):
        batch_interaction(lora, full)


@pytest.mark.parametrize("n", [400, pytest.param(5000, marks=pytest.mark.nightly)])
def test_the_interval_covers_and_no_loss_is_seldom_called_one(n: int) -> None:
    """Four batches by three report seeds, unequal noise; Monte-Carlo SE at 400: 1.5 points."""
    hits, false = [], []
    for _ in range(n):
        lora, full = cells(0.0, (4, 8, 16, 32), 3, 0.04), cells(0.0, (4, 8, 16, 32), 3)
        low, high = batch_interaction(lora, full).slope.estimate().interval or (0, 0)
        hits.append(low <= 0 <= high)
        false.append(high < 0)
    assert np.mean(hits) >= 0.86
    assert np.mean(false) <= (0.07 if n > 400 else 0.09)


def test_no_rank_interaction_is_a_test_of_equality_that_keeps_its_level() -> None:
    """Slopes that differ by the margin; Monte-Carlo SE at 400: 1.1 points of nominal 5."""
    supported = []
    for _ in range(400):
        full = cells(0.0, (4, 8, 16, 32))
        one, two = (batch_interaction(cells(s, (4, 8, 16, 32)), full) for s in (0.0, 0.02))
        supported.append(equivalence_p(slope_difference(one, two), 0.02) < 0.05)
    assert np.mean(supported) <= 0.08
    quiet = {b: np.array([0.5, 0.501, 0.499]) for b in (4, 8, 16)}
    same = batch_interaction(quiet, quiet)
    assert equivalence_p(slope_difference(same, same), 0.02) < 0.05
