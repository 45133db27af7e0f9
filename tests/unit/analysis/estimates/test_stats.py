"""Intervals and differences against hand-worked numbers and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from analysis.estimates.stats import (
    Contrast,
    PooledSd,
    cross_fitted_difference,
    cross_fitted_mean,
    cross_fitted_scores,
    may_pool,
    mean_interval,
    paired_difference,
    pooled_difference,
    pooled_sd,
    welch_difference,
)

A, B = [0.50, 0.53, 0.47, 0.52], [0.44, 0.49, 0.46, 0.45]


def test_mean_interval_by_hand() -> None:
    # mean 0.5; deviations -0.02, 0, 0.02, so sd = sqrt(0.0008 / 2) = 0.02; t[.95, 2] = 2.919986;
    # half width 2.919986 * 0.02 / sqrt(3) = 0.033717.
    estimate = mean_interval([0.48, 0.50, 0.52])
    assert estimate.point == pytest.approx(0.5)
    assert estimate.interval == pytest.approx((0.466283, 0.533717), abs=1e-6)
    assert (estimate.n, estimate.confidence) == (3, 0.9)


def test_two_seeds_give_a_point_without_interval() -> None:
    estimate = mean_interval([0.4, 0.6])
    assert estimate.point == pytest.approx(0.5)
    assert estimate.interval is None


def test_equal_values_give_a_point_without_interval() -> None:
    third = 0.1 + 0.2  # rounding of a mean is no spread either
    assert mean_interval([0.0] * 3).interval is None
    assert mean_interval([third, 0.3, third]).interval is None
    assert paired_difference(A, [x - 0.1 for x in A]).estimate().interval is None
    assert cross_fitted_mean(np.full((3, 4), 0.5)).interval is None


@pytest.mark.parametrize("values", [[], [0.1, math.nan], [[0.1]]])
def test_a_sample_must_be_finite_numbers(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite numbers"):
        mean_interval(values)


def test_paired_difference_is_scipys() -> None:
    expected = scipy_stats.ttest_rel(A, B).confidence_interval(0.9)
    assert paired_difference(A, B).estimate().interval == pytest.approx(tuple(expected))


def test_pairs_must_be_complete() -> None:
    with pytest.raises(ValueError, match="equally long"):
        paired_difference(A, B[:-1])


@pytest.mark.parametrize("second", [B, B[:3]])
def test_welch_difference_is_scipys(second: list[float]) -> None:
    expected = scipy_stats.ttest_ind(A, second, equal_var=False).confidence_interval(0.9)
    assert welch_difference(A, second).estimate().interval == pytest.approx(tuple(expected))


def test_pooled_difference_by_hand() -> None:
    # SE = 0.02 * sqrt(1/4 + 1/4) = 0.0141421; t[.95, 12] = 1.782288; half width 0.025205.
    contrast = pooled_difference(A, B, PooledSd(sd=0.02, df=12, cells=6))
    assert contrast.point == pytest.approx(0.045)
    assert contrast.estimate().interval == pytest.approx((0.019795, 0.070205), abs=1e-6)


def test_grid_term_adds_in_squares() -> None:
    # sqrt((2.919986 * 0.1)^2 + (1.644854 * 0.05)^2) = sqrt(0.0852632 + 0.0067640) = 0.303360
    contrast = Contrast(1.0, 0.1, df=2, n=3, grid_term=0.05)
    assert contrast.half_width() == pytest.approx(0.303360, abs=1e-6)
    only_grid = Contrast(1.0, 0.0, df=2, n=3, grid_term=0.05)
    assert only_grid.half_width() == pytest.approx(0.082243, abs=1e-6)


def test_seeds_for_a_distance() -> None:
    contrast = Contrast(0.0, 0.1, df=2, n=3)
    needed = contrast.seeds_for(0.1)
    assert needed is not None
    assert contrast.half_width(n=needed) < 0.1 <= contrast.half_width(n=needed - 1)
    assert Contrast(0.0, 0.1, df=2, n=3, grid_term=0.1).seeds_for(0.1) is None


def test_pooled_sd_by_hand() -> None:
    # Squares 0.0008 (df 2) and 0.0002 (df 1): sqrt(0.001 / 3) = 0.0182574.
    floor = pooled_sd([[0.48, 0.50, 0.52], [0.60, 0.62], [0.7]], min_cells=2)
    assert floor == PooledSd(pytest.approx(0.0182574, abs=1e-7), 3, 2)


def test_noise_floor_needs_six_cells() -> None:
    cells = [[0.1, 0.2, 0.3]] * 6
    assert pooled_sd(cells[:5]) is None
    assert pooled_sd(cells) == PooledSd(pytest.approx(0.1), 12, 6)


def test_pooling_needs_alike_spreads() -> None:
    def floor(sd: float) -> PooledSd:
        return PooledSd(sd, 12, 6)

    assert may_pool(floor(0.01), floor(0.02))
    assert not may_pool(floor(0.01), floor(0.021))
    assert not may_pool(floor(0.01), None)
    assert not may_pool(floor(0.0), floor(0.0))


def test_cross_fitting_by_hand() -> None:
    # Without seed 0 the others prefer rate 1 (0.5 + 0.5 against 0.4 + 0.4), so seed 0 scores 0.1;
    # without seed 1: 0.9 + 0.4 against 0.1 + 0.5, rate 0, 0.4; without seed 2 likewise 0.4.
    scores = np.array([[0.9, 0.1], [0.4, 0.5], [0.4, 0.5]])
    assert cross_fitted_scores(scores) == pytest.approx([0.1, 0.4, 0.4])
    plain = mean_interval([0.1, 0.4, 0.4])
    wide = cross_fitted_mean(scores)
    assert plain.high is not None and wide.high is not None
    assert wide.high - wide.point == pytest.approx(math.sqrt(2) * (plain.high - plain.point))


def test_cross_fitting_ties_go_to_the_lower_rate() -> None:
    assert cross_fitted_scores(np.array([[0.3, 0.2], [0.3, 0.3]])) == pytest.approx([0.3, 0.3])


def test_cross_fitting_needs_two_seeds() -> None:
    with pytest.raises(ValueError, match="at least 2 seeds"):
        cross_fitted_scores(np.array([[0.1, 0.2]]))


def test_cross_fitted_difference_of_an_arm_with_itself_is_zero() -> None:
    scores = np.random.default_rng(0).normal(size=(4, 5))
    contrast = cross_fitted_difference(scores, scores)
    assert (contrast.point, contrast.standard_error) == (0.0, 0.0)


@given(st.lists(st.floats(-1, 1, width=32), min_size=3, max_size=8), st.randoms())
def test_order_of_seeds_does_not_matter(values: list[float], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = mean_interval(values), mean_interval(shuffled)
    assert one.point == pytest.approx(other.point)
    assert one.interval == pytest.approx(other.interval)


@pytest.mark.parametrize("replications", [300, pytest.param(2000, marks=pytest.mark.nightly)])
def test_cross_fitting_removes_the_winners_curse(replications: int) -> None:
    """Monte-Carlo SE of the bias at 300 replications: 0.6 / sqrt(300) = 0.035 run SDs."""
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(replications, 3, 9))  # flat truth 0, run SD 1, 3 seeds, 9 rates
    naive = np.mean([d.mean(axis=0).max() for d in draws])
    fitted = np.mean([cross_fitted_scores(d).mean() for d in draws])
    assert naive > 0.7
    assert abs(fitted) < 0.1


@pytest.mark.parametrize(
    ("replications", "slack"), [(600, 0.07), pytest.param(4000, 0.05, marks=pytest.mark.nightly)]
)
def test_a_longer_grid_does_not_win_by_luck(replications: int, slack: float) -> None:
    """Monte-Carlo SE of the share at 600 replications: 0.02."""
    rng = np.random.default_rng(1)
    long, short = rng.normal(size=(replications, 3, 9)), rng.normal(size=(replications, 3, 3))
    wins = [
        cross_fitted_scores(a).mean() > cross_fitted_scores(b).mean()
        for a, b in zip(long, short, strict=True)
    ]
    lucky = [a.mean(axis=0).max() > b.mean(axis=0).max() for a, b in zip(long, short, strict=True)]
    assert abs(np.mean(wins) - 0.5) < slack
    assert np.mean(lucky) > 0.6
