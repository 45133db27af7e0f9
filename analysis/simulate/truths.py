"""What an arm scores in expectation: the truths that simulated sweeps are drawn from.

A reinforcement-learning run scores its base plus a logistic ramp in log10 of the learning rate,
declines a little towards the cliff, and collapses to zero with a probability that is logistic
beyond it. A U-shape has no cliff: the score falls off on both sides, faster on the high one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from analysis.estimates.curve import FloatArray

TRUTH_STEP = 1e-3
"""Resolution, in decades, at which the true plateau is looked up."""
_JITTER_NODES, _JITTER_WEIGHTS = np.polynomial.hermite_e.hermegauss(21)


class Truth(Protocol):
    """Expected score of an arm as a function of log10 of the learning rate."""

    @property
    def base(self) -> float | None:
        """Score of the untrained model; None: nobody evaluates it."""

    @property
    def cliff_jitter(self) -> float:
        """SD over seeds of the place of the cliff, in decades."""

    @property
    def drift(self) -> float:
        """Decades by which the curve lies higher after a tenth of the training."""

    def shifted(self, decades: float) -> Self:
        """The same curve at learning rates ``10**decades`` times higher."""

    def alive(self, positions: ArrayLike) -> FloatArray:
        """Expected score of a run that does not collapse; positions are log10 learning rates."""

    def collapse_probability(self, positions: ArrayLike, jitter: ArrayLike = 0.0) -> FloatArray:
        """Probability of a collapse, given how far the seed's cliff is displaced (decades)."""

    def expected(self, positions: ArrayLike) -> FloatArray:
        """Expected score, collapsed runs included."""

    def plateau(self, fraction: float) -> tuple[float, float]:
        """The true ends of the plateau, as log10 learning rates."""

    def best(self, fraction: float) -> float:
        """log10 of the true LR*: what :func:`analysis.estimates.optimum.optimum` aims at."""


@dataclass(frozen=True)
class ArmTruth:
    """A ramp, a plateau and a cliff."""

    ramp: float = -5.0
    """log10 of the learning rate half way up the ramp."""
    span: float = 1.19
    """Decades from there to where half of the runs collapse; the plateau is about 0.3 shorter."""
    base: float = 0.18
    rise: float = 0.70
    ramp_scale: float = 0.15
    """Scale of the logistic ramp in decades."""
    decline: float = 0.05
    """Score lost per decade of ``span`` on the way to the cliff."""
    cliff_scale: float = 0.06
    """Scale of the collapse probability in decades: 0.015 sharp, 0.15 soft."""
    cliff_jitter: float = 0.04
    """SD over seeds of the place of the cliff, in decades."""
    drift: float = 0.5
    """Decades by which the curve lies higher after a tenth of the training."""

    def shifted(self, decades: float) -> ArmTruth:
        """The same curve at learning rates ``10**decades`` times higher."""
        return replace(self, ramp=self.ramp + decades)

    def alive(self, positions: ArrayLike) -> FloatArray:
        """Expected score of a run that does not collapse.

        Args:
            positions: log10 learning rates, any shape; the result has the same.
        """
        x = np.asarray(positions, dtype=np.float64) - self.ramp
        risen = self.base + self.rise * expit(x / self.ramp_scale)
        return np.asarray(risen - self.decline * np.clip(x, 0, None), dtype=np.float64)

    def collapse_probability(self, positions: ArrayLike, jitter: ArrayLike = 0.0) -> FloatArray:
        """Probability of a collapse, given how far the seed's cliff is displaced (decades)."""
        x = np.asarray(positions, dtype=np.float64) - self.ramp - self.span
        displaced = x - np.asarray(jitter, dtype=np.float64)
        return np.asarray(expit(displaced / self.cliff_scale), dtype=np.float64)

    def expected(self, positions: ArrayLike) -> FloatArray:
        """Expected score, collapsed runs included at zero, averaged over the jitter."""
        x = np.asarray(positions, dtype=np.float64)
        jitter = self.cliff_jitter * _JITTER_NODES
        collapse = self.collapse_probability(x[..., None], jitter) @ _JITTER_WEIGHTS
        return np.asarray(self.alive(x) * (1 - collapse / _JITTER_WEIGHTS.sum()))

    def plateau(self, fraction: float) -> tuple[float, float]:
        """The true ramp and cliff edge, as log10 learning rates."""
        low, high = _true_plateau(replace(self, ramp=0.0), fraction)
        return low + self.ramp, high + self.ramp

    def best(self, fraction: float) -> float:
        """log10 of the true LR*: the midpoint of the plateau."""
        return sum(self.plateau(fraction)) / 2


@cache
def _true_plateau(truth: ArmTruth, fraction: float) -> tuple[float, float]:
    x = np.arange(truth.ramp - 2, truth.ramp + truth.span + 2, TRUTH_STEP)
    scores = truth.expected(x)
    inside = x[scores >= scores.max() - fraction * (scores.max() - truth.base)]
    return float(inside[0]), float(inside[-1])


@dataclass(frozen=True)
class UShape:
    """A U-shape without collapse: supervised fine-tuning, or a loss with its sign changed.

    Below the vertex by ``depth (exp(k u) - k u - 1) / k^2`` at u decades from it: a parabola for
    skewness k = 0. Public sweeps of supervised fine-tuning fit k = 1 to 5.
    """

    vertex: float = -3.5
    """log10 of the best learning rate."""
    height: float = 0.88
    """Score there."""
    depth: float = 1.2
    """Curvature at the vertex, in score per square decade."""
    skew: float = 0.0
    """k: how much faster the score falls on the high side, per decade."""
    base: float | None = 0.18
    """Score of the untrained model, which no run falls below; None: nobody evaluates it."""
    drift: float = 0.5
    """Decades by which the curve lies higher after a tenth of the training."""
    cliff_jitter: float = 0.0
    """There is no cliff."""

    def shifted(self, decades: float) -> UShape:
        """The same curve at learning rates ``10**decades`` times higher."""
        return replace(self, vertex=self.vertex + decades)

    def alive(self, positions: ArrayLike) -> FloatArray:
        """Expected score at log10 learning rates of any shape."""
        u, k = np.asarray(positions, dtype=np.float64) - self.vertex, self.skew
        bent = np.expm1(np.clip(k * u, None, 50)) - k * u
        fall = u**2 / 2 if k == 0 else bent / k**2
        return np.asarray(np.maximum(self.height - self.depth * fall, self._least))

    @property
    def _least(self) -> float:
        return -np.inf if self.base is None else self.base

    def collapse_probability(self, positions: ArrayLike, jitter: ArrayLike = 0.0) -> FloatArray:
        """Zero: nothing collapses."""
        return np.zeros(np.broadcast_shapes(np.shape(positions), np.shape(jitter)))

    def expected(self, positions: ArrayLike) -> FloatArray:
        """Nothing collapses: the same as of a run that does not."""
        return self.alive(positions)

    def plateau(self, fraction: float) -> tuple[float, float]:
        """The true ends of the plateau, as log10 learning rates.

        Raises:
            ValueError: without a base, or if the curve is not that wide.
        """
        if self.base is None:
            raise ValueError("a U-shape without a base has no plateau")
        x = self.vertex + np.arange(-4, 4, TRUTH_STEP)
        inside = x[self.alive(x) >= self.height - fraction * (self.height - self.base)]
        return float(inside[0]), float(inside[-1])

    def best(self, fraction: float) -> float:
        """log10 of the true LR*: the midpoint of the plateau, or the vertex without a base."""
        return self.vertex if self.base is None else sum(self.plateau(fraction)) / 2
