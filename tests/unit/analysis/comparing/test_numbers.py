"""Differences of independent numbers, and tests that agree with the printed interval."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.weightstats import ttost_ind

from analysis.comparing.numbers import from_contrast, independent_difference
from analysis.estimates.equivalence import beyond_margin_p, equivalence_p
from analysis.estimates.stats import Contrast, welch_difference

A = [0.50, 0.52, 0.48, 0.55]
B = [0.61, 0.57, 0.66]


def mean(values: list[float]) -> Contrast:
    n = len(values)
    return Contrast(float(np.mean(values)), float(np.std(values, ddof=1)) / math.sqrt(n), n - 1, n)


def test_difference_of_two_means_is_welch() -> None:
    found = independent_difference(mean(B), mean(A))
    expected = stats.ttest_ind(B, A, equal_var=False)
    assert found.point == pytest.approx(np.mean(B) - np.mean(A))
    assert found.df == pytest.approx(expected.df)
    low, high = expected.confidence_interval(0.9)
    assert from_contrast(found).interval == pytest.approx((low, high))
    assert found.n == 3


def test_difference_of_two_ratios_is_satterthwaite_over_four_arms() -> None:
    rng = np.random.default_rng(1)
    arms = [rng.normal(0, sd, n) for sd, n in ((0.1, 4), (0.2, 5), (0.05, 6), (0.3, 4))]
    found = independent_difference(
        welch_difference(arms[0], arms[1]), welch_difference(arms[2], arms[3])
    )
    parts = [x.var(ddof=1) / len(x) for x in arms]
    df = sum(parts) ** 2 / sum(v**2 / (len(x) - 1) for v, x in zip(parts, arms, strict=True))
    assert found.standard_error == pytest.approx(math.sqrt(sum(parts)))
    assert found.df == pytest.approx(df)


def test_grid_terms_add_in_quadrature() -> None:
    first, second = Contrast(0.5, 0.1, 4, 3, 0.03), Contrast(0.9, 0.1, 4, 3, 0.04)
    assert independent_difference(second, first).grid_term == pytest.approx(0.05)


def test_equality_p_values_agree_with_statsmodels() -> None:
    found = independent_difference(mean(B), mean(A))
    p, _, _ = ttost_ind(np.array(B), np.array(A), -0.2, 0.2, usevar="unequal")
    assert equivalence_p(found, 0.2) == pytest.approx(p, rel=1e-6)
    above = stats.ttest_ind(np.array(B) - 0.05, A, equal_var=False, alternative="greater").pvalue
    assert beyond_margin_p(found, 0.05) == pytest.approx(above, rel=1e-6)


def test_p_is_below_five_percent_exactly_when_the_interval_decides() -> None:
    rng = np.random.default_rng(2)
    margin, decided = 0.3, 0
    for _ in range(300):
        contrast = Contrast(
            rng.uniform(-1, 1), rng.uniform(0.01, 0.3), rng.uniform(2, 8), 3, rng.uniform(0, 0.1)
        )
        low, high = from_contrast(contrast).interval or (math.nan, math.nan)
        assert (equivalence_p(contrast, margin) < 0.05) == (-margin < low and high < margin)
        assert (beyond_margin_p(contrast, margin) < 0.05) == (low > margin or high < -margin)
        decided += beyond_margin_p(contrast, margin) < 0.05
    assert 30 < decided < 270  # both outcomes were tried


def test_decades_are_printed_as_powers_of_ten() -> None:
    found = from_contrast(Contrast(1.0, 0.2, 4, 5), decades=True)
    half = stats.t.ppf(0.95, 4) * 0.2
    assert found.point == pytest.approx(10)
    assert found.interval == pytest.approx((10 ** (1 - half), 10 ** (1 + half)))


@pytest.mark.parametrize(
    ("contrast", "reason"),
    [
        (Contrast(0.1, 0.01, 1, 2), "fewer than 3 seeds"),
        (Contrast(0.1, 0.0, 2, 3), "every seed gave the same value, so the spread is unknown"),
        (Contrast(0.1, math.nan, 0, 1), "fewer than 3 seeds"),
    ],
)
def test_a_number_without_interval_says_why(contrast: Contrast, reason: str) -> None:
    found = from_contrast(contrast)
    assert found.interval is None and found.reason == reason
    assert found.point == pytest.approx(0.1)
