"""Learning rates around an arm's best grid rate, placed by a Gaussian process.

All of an arm's points are placed at once, from its grid alone: in simulated sweeps four points in
one round came as close to the optimum as in four rounds, and closer than points spread evenly or
suggested by TPE, which learns nothing from so few observations
(tests/unit/plan/test_simulated_refinement.py).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import statistics
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from study.plan import select
from study.plan.experiment import Plan, with_cells
from study.plan.select import Selection
from study.records.record import Record

FloatArray = npt.NDArray[np.float64]
LENGTHS = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
"""Length scales that are weighed against each other, in grid steps."""
NOISES = (1e-4, 1e-3, 1e-2, 1e-1)
"""The same for the variance of a seed mean around the curve, over the variance of the curve."""
CANDIDATES = 201
"""Places between the two neighbours of the best rate among which the points are chosen."""


def grow(
    plan: Plan, records: Mapping[str, Record], selections: Mapping[str, Selection]
) -> tuple[Plan, list[Selection]]:
    """The next plan: extended grids, then refined ones, then report runs, arm by arm."""
    extended = select.extension(plan, records, selections)
    if extended is not None:
        return extended, []
    assert plan.experiment.refine is not None
    points = plan.experiment.refine.points
    added = {
        arm: around(means, points)
        for arm in plan.arms
        if arm not in selections and arm not in plan.refined
        if (means := _means(plan, arm, records))
    }
    plan = dataclasses.replace(plan, refined={**plan.refined, **added})
    return select.reporting(with_cells(plan, "search", added), records, selections)


def to_come(plan: Plan) -> dict[str, int]:
    """Refined learning rates that are not planned yet, by arm."""
    if plan.experiment.refine is None:
        return {}
    waiting = (arm for arm in plan.arms if arm not in plan.refined)
    return dict.fromkeys(waiting, plan.experiment.refine.points)


def _means(plan: Plan, arm: str, records: Mapping[str, Record]) -> dict[float, float]:
    found = select.competing(plan, arm, records) or {}
    return {rate: statistics.fmean(scores) for rate, scores in found.items()}


def around(means: Mapping[float, float], points: int) -> list[float]:
    """``points`` further learning rates between the neighbours of the best one, ascending.

    Each is where a Gaussian process expects the largest improvement, given that those before it
    score what it expects of them.

    Args:
        means: Mean score by learning rate, of the grid.
        points: How many to add.

    Returns:
        Rates of 3 significant digits, none (nearly) one that is there.
    """
    rates = sorted(means)
    x, y = np.log10(rates), np.array([means[rate] for rate in rates])
    process = _fitted(x, y)
    step = _step(rates)
    apart = step / (4 * (points + 1))  # so little that all fit in, at the edge of a grid too
    chosen: list[float] = []
    open_rates = _candidates(rates, min(rates, key=lambda rate: (-means[rate], rate)))
    for _ in range(points):
        free = [r for r in open_rates if np.abs(process.x - math.log10(r)).min() >= apart]
        gains = process.improvement(np.log10(free))
        chosen.append(free[int(gains.argmax())])
        process = process.believing(math.log10(chosen[-1]))
    return sorted(chosen)


def _step(rates: list[float]) -> float:
    return statistics.median(math.log10(b / a) for a, b in itertools.pairwise(rates))


def _candidates(rates: list[float], best: float) -> list[float]:
    place = rates.index(best)
    low, high = rates[max(0, place - 1)], rates[min(len(rates) - 1, place + 1)]
    lattice = {float(f"{rate:.3g}") for rate in np.geomspace(low, high, CANDIDATES)}
    return sorted(rate for rate in lattice if low < rate < high)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Process:
    """A Gaussian process with a squared exponential kernel, its hyperparameters fixed."""

    x: FloatArray
    y: FloatArray
    mean: float
    variance: float
    length: float
    noise: float

    def _kernel(self, at: FloatArray) -> FloatArray:
        between = (at[:, None] - self.x) / self.length
        return np.asarray(self.variance * np.exp(-(between**2) / 2))

    @property
    def _factor(self) -> FloatArray:
        covariance = self._kernel(self.x) + self.noise * np.eye(len(self.x))
        return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)

    def log_likelihood(self) -> float:
        """Of what was observed, up to a constant."""
        factor = self._factor
        residuals = np.linalg.solve(factor, self.y - self.mean)
        return float(-residuals @ residuals / 2 - np.log(np.diag(factor)).sum())

    def predict(self, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of the curve at ``at``."""
        factor, kernel = self._factor, self._kernel(at)
        weights = np.linalg.solve(factor.T, np.linalg.solve(factor, self.y - self.mean))
        explained = np.square(np.linalg.solve(factor, kernel.T)).sum(axis=0)
        left = np.maximum(self.variance - explained, 1e-12)
        return self.mean + kernel @ weights, np.sqrt(left)

    def improvement(self, at: FloatArray) -> FloatArray:
        """Expected improvement over the curve's best value at an observed rate."""
        best = self.predict(self.x)[0].max()
        mean, deviation = self.predict(at)
        z = (mean - best) / deviation
        return np.asarray(deviation * (z * ndtr(z) + np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)))

    def believing(self, at: float) -> _Process:
        """The process once ``at`` has scored what is expected of it."""
        expected = self.predict(np.array([at]))[0]
        return dataclasses.replace(
            self, x=np.append(self.x, at), y=np.concatenate([self.y, expected])
        )


LEAST_VARIANCE = 1e-6
"""Of a curve whose scores are all equal."""


def _fitted(x: FloatArray, y: FloatArray) -> _Process:
    """The likeliest of a few length scales and noise levels."""
    return max(_processes(x, y), key=_Process.log_likelihood)


def _processes(x: FloatArray, y: FloatArray) -> Iterator[_Process]:
    step = float(np.median(np.diff(x)))
    variance = max(float(y.var()), LEAST_VARIANCE)
    for length, noise in itertools.product(LENGTHS, NOISES):
        yield _Process(
            x=x,
            y=y,
            mean=float(y.mean()),
            variance=variance,
            length=length * step,
            noise=noise * variance,
        )
