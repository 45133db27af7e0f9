"""Two one-sided tests and Holm's correction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_ind, ttost_paired

from analysis.estimates.equivalence import beyond_margin_p, equivalence_p, holm
from analysis.estimates.stats import Contrast, paired_difference, welch_difference

CONTRASTS = st.builds(
    Contrast, st.floats(-0.1, 0.1), st.floats(0.001, 0.05), st.integers(2, 20), st.just(3)
)


def test_equivalence_is_the_larger_one_sided_p_of_scipy() -> None:
    d = np.array([0.010, 0.015, 0.002, 0.007])
    below = scipy_stats.ttest_1samp(d, 0.02, alternative="less").pvalue
    above = scipy_stats.ttest_1samp(d, -0.02, alternative="greater").pvalue
    contrast = paired_difference(d, np.zeros(4))
    assert equivalence_p(contrast, 0.02) == pytest.approx(max(below, above))


@given(CONTRASTS)
def test_p_values_agree_with_the_interval(contrast: Contrast) -> None:
    low, high = contrast.estimate().interval or (0.0, 0.0)
    margin = 0.03
    if min(abs(abs(low) - margin), abs(abs(high) - margin)) < 1e-9:
        return
    assert (equivalence_p(contrast, margin) < 0.05) == (-margin < low and high < margin)
    assert (beyond_margin_p(contrast, margin) < 0.05) == (low > margin or high < -margin)


@pytest.mark.parametrize("margin", [0.01, 0.02, 0.05])
def test_equivalence_is_statsmodels_paired_tost(margin: float) -> None:
    a, b = np.random.default_rng(0).normal([[0.505], [0.5]], 0.02, (2, 6))
    expected, *_ = ttost_paired(a, b, -margin, margin)
    assert equivalence_p(paired_difference(a, b), margin) == pytest.approx(expected)


@pytest.mark.parametrize("margin", [0.01, 0.02, 0.05])
def test_equivalence_is_statsmodels_tost_with_unequal_variances(margin: float) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(0.505, 0.02, 6), rng.normal(0.5, 0.01, 4)
    expected, *_ = ttost_ind(a, b, -margin, margin, usevar="unequal")
    assert equivalence_p(welch_difference(a, b), margin) == pytest.approx(expected)


@given(
    CONTRASTS,
    st.floats(0.001, 0.05),
    st.floats(0.01, 0.2),
)
def test_p_values_heed_the_grid_term_as_the_interval_does(
    contrast: Contrast, grid_term: float, margin: float
) -> None:
    contrast = replace(contrast, grid_term=grid_term)
    low, high = contrast.estimate().interval or (0.0, 0.0)
    if min(abs(abs(low) - margin), abs(abs(high) - margin)) < 1e-6:
        return
    assert (equivalence_p(contrast, margin) < 0.05) == (-margin < low and high < margin)
    assert (beyond_margin_p(contrast, margin) < 0.05) == (low > margin or high < -margin)


def test_a_grid_term_alone_is_normal() -> None:
    # p = P(Z > (0.3 - 0.1) / 0.1) = 0.0227501.
    found = equivalence_p(Contrast(0.1, 0.0, 2, 3, grid_term=0.1), 0.3)
    assert found == pytest.approx(scipy_stats.norm.sf(2.0))


def test_a_vanishing_grid_term_is_the_t_test() -> None:
    plain = Contrast(0.01, 0.01, 4, 5)
    tiny = replace(plain, grid_term=1e-9)
    assert equivalence_p(tiny, 0.03) == pytest.approx(equivalence_p(plain, 0.03), abs=1e-9)
    assert beyond_margin_p(tiny, 0.03) == pytest.approx(beyond_margin_p(plain, 0.03), abs=1e-9)


@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_holm_is_statsmodels(count: int) -> None:
    p_values = list(np.random.default_rng(count).uniform(0, 0.1, count))
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])


def test_without_spread_the_point_decides() -> None:
    inside, outside = Contrast(0.01, 0.0, 2, 3), Contrast(0.05, 0.0, 2, 3)
    assert (equivalence_p(inside, 0.02), beyond_margin_p(inside, 0.02)) == (0.0, 1.0)
    assert (equivalence_p(outside, 0.02), beyond_margin_p(outside, 0.02)) == (1.0, 0.0)


def test_margin_must_be_positive() -> None:
    with pytest.raises(ValueError, match="must be positive, got 0"):
        equivalence_p(Contrast(0.0, 0.01, 2, 3), 0)


def test_holm_by_hand() -> None:
    # Sorted 0.01, 0.03, 0.04: 3 * 0.01 = 0.03; 2 * 0.03 = 0.06; max(0.06, 1 * 0.04) = 0.06.
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


@pytest.mark.parametrize(
    ("replications", "allowed"),
    [(2000, 0.065), pytest.param(20000, 0.055, marks=pytest.mark.nightly)],
)
@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_equivalence_keeps_its_level(seeds: int, replications: int, allowed: float) -> None:
    """True difference = margin: false support at most 5 %, Monte-Carlo SE 0.5 at 2000."""
    rng = np.random.default_rng(seeds)
    d = rng.normal(0.02, 0.02, size=(replications, seeds))
    p = [equivalence_p(paired_difference(row, np.zeros(seeds)), 0.02) for row in d]
    assert np.mean(np.array(p) < 0.05) <= allowed
