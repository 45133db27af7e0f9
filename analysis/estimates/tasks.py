"""Scores over several tasks: interquartile mean, probability of improvement (Agarwal et al. 2021).

Seeds are resampled within each task, tasks never: they are what was studied, no sample of others.
A percentile bootstrap is good enough here and nowhere else in this package: the statistic pools
all seeds of all tasks, and picks nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from analysis.estimates.curve import FloatArray
from analysis.estimates.stats import CONFIDENCE, MIN_SEEDS, Estimate

MIN_TASKS = 3
REPLICATIONS = 2000

Scores = Mapping[str, ArrayLike]
"""``[seeds]`` scores by task, normalised so that tasks may be pooled."""
_Samples = Mapping[str, FloatArray]


def interquartile_mean(scores: Scores, rng: Generator) -> Estimate:
    """Mean of the middle half of all runs of all tasks.

    Args:
        scores: By task, on one scale.
        rng: Source of the bootstrap.

    Returns:
        The mean with a stratified bootstrap interval; without one below three seeds in some task.

    Raises:
        ValueError: for fewer than three tasks, an empty task, or a score that is not finite.
    """
    samples = _samples(scores)
    return _bootstrapped([samples], lambda drawn: _iqm(drawn[0]), rng)


def probability_of_improvement(first: Scores, second: Scores, rng: Generator) -> Estimate:
    """Probability that a run of ``first`` beats one of ``second`` on a task, averaged over tasks.

    Mann-Whitney's U over the product of the numbers of seeds; a tie counts one half.

    Args:
        first: By task.
        second: By the same tasks.
        rng: Source of the bootstrap.

    Raises:
        ValueError: as for :func:`interquartile_mean`, or if the tasks differ.
    """
    a, b = _samples(first), _samples(second)
    if set(a) != set(b):
        raise ValueError(f"both need the same tasks, got {sorted(a)} and {sorted(b)}")
    return _bootstrapped([a, b], lambda drawn: _improvement(*drawn), rng)


def _iqm(samples: _Samples) -> FloatArray:
    """Over the last axis: mean without the lowest and the highest quarter of the runs."""
    runs = np.sort(np.concatenate(list(samples.values()), axis=-1), axis=-1)
    cut = runs.shape[-1] // 4
    return np.asarray(runs[..., cut : runs.shape[-1] - cut].mean(axis=-1))


def _improvement(first: _Samples, second: _Samples) -> FloatArray:
    return np.asarray(np.mean([_beats(first[task], second[task]) for task in first], axis=0))


def _beats(a: FloatArray, b: FloatArray) -> FloatArray:
    above = np.sign(a[..., :, None] - b[..., None, :])
    return np.asarray((above.mean(axis=(-2, -1)) + 1) / 2)


def _bootstrapped(
    groups: list[_Samples], statistic: Callable[[list[_Samples]], FloatArray], rng: Generator
) -> Estimate:
    """A statistic of samples ``[..., seeds]``, with an interval from resampled ones."""
    point = float(statistic(groups))
    n = min(len(sample) for group in groups for sample in group.values())
    if n < MIN_SEEDS:
        return Estimate(point, None, None, n)
    draws = statistic([{task: _resampled(x, rng) for task, x in g.items()} for g in groups])
    tail = (1 - CONFIDENCE) / 2
    low, high = (float(q) for q in np.quantile(draws, (tail, 1 - tail)))
    return Estimate(point, low, high, n)


def _resampled(sample: FloatArray, rng: Generator) -> FloatArray:
    return sample[rng.integers(len(sample), size=(REPLICATIONS, len(sample)))]


def _samples(scores: Scores) -> dict[str, FloatArray]:
    if len(scores) < MIN_TASKS:
        raise ValueError(
            f"a mean over tasks needs at least {MIN_TASKS} tasks, got {len(scores)}: report each"
        )
    samples = {task: np.asarray(x, dtype=np.float64) for task, x in scores.items()}
    for task, sample in samples.items():
        if sample.ndim != 1 or len(sample) == 0 or not np.isfinite(sample).all():
            raise ValueError(f"scores of task {task} must be a non-empty list of finite numbers")
    return samples
