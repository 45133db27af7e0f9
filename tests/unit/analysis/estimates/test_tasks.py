"""Aggregates over tasks against scipy and hand-worked values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from analysis.estimates.tasks import interquartile_mean, probability_of_improvement


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


A = {"x": [0.1, 0.2, 0.9], "y": [0.5, 0.6, 0.7], "z": [0.3, 0.4, 0.0]}
B = {"x": [0.0, 0.1, 0.2], "y": [0.65, 0.55, 0.5], "z": [0.5, 0.6, 0.7]}


def test_the_interquartile_mean_by_hand() -> None:
    # Sorted: 0, .1, .2, .3, .4, .5, .6, .7, .9; a quarter of nine is 2.25, two at each end go:
    # (.2 + .3 + .4 + .5 + .6) / 5 = 0.4.
    found = interquartile_mean(A, rng())
    assert found.point == pytest.approx(0.4)
    low, high = found.interval or (1, 0)
    assert low <= found.point <= high
    assert found.n == 3


def test_the_probability_of_improvement_by_hand() -> None:
    # x: .1 beats 0, ties .1, loses to .2 (1.5); .2 beats two, ties one (2.5); .9 beats all: 7 / 9.
    # y: .5 ties .5 (0.5); .6 beats two; .7 three: 5.5 / 9. z: none. Mean 12.5 / 27.
    assert probability_of_improvement(A, B, rng()).point == pytest.approx(12.5 / 27)


def test_the_interquartile_mean_is_scipys() -> None:
    scores = {str(task): rng().normal(task, 1, 5 + task) for task in range(4)}
    pooled = np.concatenate(list(scores.values()))
    expected = scipy_stats.trim_mean(pooled, 0.25)
    assert interquartile_mean(scores, rng()).point == pytest.approx(expected)


def test_one_task_is_mann_whitney() -> None:
    a, b = rng().normal(0.2, 1, (2, 7))
    u = scipy_stats.mannwhitneyu(a, b).statistic / 49
    same = dict.fromkeys("xyz", a), dict.fromkeys("xyz", b)
    assert probability_of_improvement(*same, rng()).point == pytest.approx(u)


def test_fewer_than_three_tasks_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 3 tasks, got 2"):
        interquartile_mean({"x": [0.1], "y": [0.2]}, rng())
    with pytest.raises(ValueError, match="the same tasks"):
        probability_of_improvement(A, {"x": [1], "y": [1], "w": [1]}, rng())
    with pytest.raises(ValueError, match="task z must be"):
        interquartile_mean({**A, "z": [np.nan]}, rng())


def test_two_seeds_in_a_task_give_no_interval() -> None:
    assert interquartile_mean({**A, "z": [0.3, 0.4]}, rng()).interval is None


def test_the_same_generator_state_gives_the_same_interval() -> None:
    assert interquartile_mean(A, rng()) == interquartile_mean(A, rng())


@pytest.mark.parametrize("n", [60, pytest.param(600, marks=pytest.mark.nightly)])
def test_the_stratified_interval_covers(n: int) -> None:
    """Six tasks of ten seeds, tasks far apart; Monte-Carlo SE at 60: 4 points."""
    source = np.random.default_rng(1)
    hits = []
    for _ in range(n):
        first = {str(t): source.normal(0.5, 1, 10) for t in range(6)}
        second = {str(t): source.normal(0.0, 1, 10) for t in range(6)}
        low, high = probability_of_improvement(first, second, source).interval or (0, 0)
        hits.append(low <= scipy_stats.norm.cdf(0.5 / 2**0.5) <= high)
    assert np.mean(hits) >= (0.86 if n > 60 else 0.78)
