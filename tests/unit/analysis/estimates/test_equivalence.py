"""Two one-sided tests and Holm's correction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from analysis.estimates.equivalence import beyond_margin_p, equivalence_p, holm
from analysis.estimates.stats import Contrast, paired_difference

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
