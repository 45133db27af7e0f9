"""Noisy learning-rate sweeps with a known truth, to test estimators and plan experiments with.

One arm's runs score ``base`` plus a logistic ramp in log10 of the learning rate, decline a little
towards the cliff, and collapse to zero with a probability that is logistic beyond it. A run adds
Gaussian seed noise, partly common to all runs of its seed, and binomial noise of its evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import expit

from analysis.estimates.curve import FloatArray, LrCurve

TRUTH_STEP = 1e-3
"""Resolution, in decades, at which the true plateau is looked up."""
_JITTER_NODES, _JITTER_WEIGHTS = np.polynomial.hermite_e.hermegauss(21)


@dataclass(frozen=True)
class ArmTruth:
    """Expected score of an arm as a function of the learning rate."""

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
        return _true_plateau(self, fraction)


@cache
def _true_plateau(truth: ArmTruth, fraction: float) -> tuple[float, float]:
    x = np.arange(truth.ramp - 2, truth.ramp + truth.span + 2, TRUTH_STEP)
    scores = truth.expected(x)
    inside = x[scores >= scores.max() - fraction * (scores.max() - truth.base)]
    return float(inside[0]), float(inside[-1])


@dataclass(frozen=True)
class Design:
    """How an arm is sampled."""

    seeds: int = 3
    spacing: float = 0.25
    """h, in decades."""
    points: int = 9
    noise: float = 0.01
    """SD over seeds of a run far from collapse; up to three times that where runs collapse."""
    eval_prompts: int = 1000
    common: float = 0.3
    """Share of the noise variance that all runs of a seed have in common, over arms too."""


def simulate_curve(
    arm: str,
    truth: ArmTruth,
    design: Design,
    rng: Generator,
    seed_effects: FloatArray | None = None,
) -> LrCurve:
    """Draw one arm's search phase on a grid whose place is random within a cell.

    Args:
        arm: Its name.
        truth: What the curve is in expectation.
        design: Grid, seeds and noise.
        rng: Source of every draw.
        seed_effects: ``[seeds]`` standard normal effects, shared by arms with the same seeds;
            drawn here when absent.

    Returns:
        The curve; collapsed runs score near zero and are not marked as diverged.
    """
    ramp, cliff = truth.plateau(0.2)
    offsets = np.arange(design.points) - (design.points - 1) / 2 + rng.uniform(-0.5, 0.5)
    positions = np.asarray((ramp + cliff) / 2 + design.spacing * offsets, dtype=np.float64)
    return LrCurve(
        arm=arm,
        learning_rates=tuple(float(x) for x in 10**positions),
        scores=simulate_scores(truth, positions, design, rng, seed_effects),
        seeds=tuple(range(design.seeds)),
        base=truth.base,
        collapsed=np.zeros((design.seeds, design.points), dtype=np.bool_),
    )


def simulate_scores(
    truth: ArmTruth,
    positions: FloatArray,
    design: Design,
    rng: Generator,
    seed_effects: FloatArray | None = None,
) -> FloatArray:
    """Scores ``[seeds, rates]`` of runs at the given log10 learning rates."""
    shape = (design.seeds, len(positions))
    common = rng.standard_normal(design.seeds) if seed_effects is None else seed_effects
    jitter = truth.cliff_jitter * rng.standard_normal((design.seeds, 1))
    collapse = truth.collapse_probability(positions, jitter)
    own = rng.standard_normal(shape)
    effects = np.sqrt(design.common) * common[:, None] + np.sqrt(1 - design.common) * own
    alive = truth.alive(positions) + design.noise * (1 + 2 * collapse) * effects
    accuracy = np.where(rng.random(shape) < collapse, 0.0, np.clip(alive, 0, 1))
    return np.asarray(rng.binomial(design.eval_prompts, accuracy) / design.eval_prompts)


def simulate_pair(
    arm: ArmTruth, baseline: ArmTruth, design: Design, rng: Generator
) -> tuple[LrCurve, LrCurve]:
    """Draw the search phases of two arms ``lora`` and ``full`` that share their seeds."""
    effects = rng.standard_normal(design.seeds)
    lora = simulate_curve("lora", arm, design, rng, effects)
    return lora, simulate_curve("full", baseline, design, rng, effects)
