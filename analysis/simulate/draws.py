"""Noisy learning-rate sweeps with a known truth, to test estimators and plan experiments with.

A run adds to what its arm scores in expectation (:mod:`.truths`) Gaussian seed noise, partly common
to all runs of its seed, and binomial noise of its evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from analysis.estimates.curve import FloatArray, LrCurve
from analysis.simulate.truths import ArmTruth, Truth, UShape

__all__ = [
    "ArmTruth",
    "Design",
    "UShape",
    "simulate_curve",
    "simulate_pair",
    "simulate_paths",
    "simulate_scores",
]
CENTRED_ON = 0.2
"""Plateau fraction whose midpoint grids are centred on."""


@dataclass(frozen=True)
class Design:
    """How an arm is sampled.

    Raises:
        ValueError: if a count is below 1, or a spread or the spacing is not what it can be.
    """

    seeds: int = 3
    spacing: float = 0.25
    """h, in decades."""
    points: int = 9
    noise: float = 0.01
    """SD over seeds of a run far from collapse; up to three times that where runs collapse."""
    eval_prompts: int | None = 1000
    """Prompts of the final evaluation; None: the score is no share of right answers (a loss)."""
    common: float = 0.3
    """Share of the noise variance that all runs of a seed have in common, over arms too."""
    irregular: float = 0.0
    """How far grid points are displaced at random, in spacings: 0.3 is up to +-0.3 h each."""
    offset: float = 0.0
    """Decades by which the grid misses the middle of the plateau."""

    def __post_init__(self) -> None:
        counts = {"seeds": self.seeds, "points": self.points, "eval_prompts": self.eval_prompts}
        for name, count in counts.items():
            if count is not None and count < 1:
                raise ValueError(f"{name} >= 1 must hold, got {count}")
        if not self.spacing > 0:
            raise ValueError(f"spacing > 0 must hold, got {self.spacing}")
        if not self.noise >= 0:
            raise ValueError(f"noise >= 0 must hold, got {self.noise}")
        for name, share in (("common", self.common), ("2 irregular", 2 * self.irregular)):
            if not 0 <= share <= 1:
                raise ValueError(f"0 <= {name} <= 1 must hold, got {share}")

    def positions(self, middle: float, rng: Generator) -> FloatArray:
        """A grid ``[points]`` around ``middle`` whose place is random within a cell."""
        offsets = np.arange(self.points) - (self.points - 1) / 2 + rng.uniform(-0.5, 0.5)
        if self.irregular:
            offsets = offsets + rng.uniform(-self.irregular, self.irregular, self.points)
        return np.asarray(middle + self.offset + self.spacing * offsets, dtype=np.float64)


def simulate_curve(
    arm: str,
    truth: Truth,
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
    positions = design.positions(truth.best(CENTRED_ON), rng)
    return LrCurve(
        arm=arm,
        learning_rates=tuple(float(x) for x in 10**positions),
        scores=simulate_scores(truth, positions, design, rng, seed_effects),
        seeds=tuple(range(design.seeds)),
        base=truth.base,
        collapsed=np.zeros((design.seeds, design.points), dtype=np.bool_),
    )


def simulate_scores(
    truth: Truth,
    positions: FloatArray,
    design: Design,
    rng: Generator,
    seed_effects: FloatArray | None = None,
) -> FloatArray:
    """Scores ``[seeds, rates]`` of runs at the given log10 learning rates."""
    return simulate_paths(truth, positions, design, rng, seed_effects)[..., 0]


def simulate_paths(
    truth: Truth,
    positions: FloatArray,
    design: Design,
    rng: Generator,
    seed_effects: FloatArray | None = None,
    progress: tuple[float, ...] = (1.0,),
) -> FloatArray:
    """Scores of runs in the course of their training.

    Args:
        truth: What the curve is in expectation at the end.
        positions: ``[rates]`` log10 learning rates.
        design: Seeds and noise.
        rng: Source of every draw.
        seed_effects: ``[seeds]`` standard normal effects; drawn here when absent.
        progress: Shares of the training, in (0, 1], after which runs are evaluated. After a share
            p the curve lies ``-drift log10(p)`` decades higher than at the end; a run keeps its
            noise, and once collapsed stays so.

    Returns:
        ``[seeds, rates, evaluations]``
    """
    shape = (design.seeds, len(positions))
    common = rng.standard_normal(design.seeds) if seed_effects is None else seed_effects
    jitter = truth.cliff_jitter * rng.standard_normal((design.seeds, 1))
    own = rng.standard_normal(shape)
    effects = np.sqrt(design.common) * common[:, None] + np.sqrt(1 - design.common) * own
    lot = rng.random(shape)
    scores = np.empty((*shape, len(progress)))
    for i, share in enumerate(progress):
        then = positions + truth.drift * np.log10(share)
        collapse = truth.collapse_probability(then, jitter)
        alive = truth.alive(then) + design.noise * (1 + 2 * collapse) * effects
        scores[..., i] = np.where(lot < collapse, 0.0, alive)
    if design.eval_prompts is None:
        return scores
    accuracy = np.clip(scores, 0, 1)
    return np.asarray(rng.binomial(design.eval_prompts, accuracy) / design.eval_prompts)


def simulate_pair(
    arm: Truth,
    baseline: Truth,
    design: Design,
    rng: Generator,
    baseline_design: Design | None = None,
) -> tuple[LrCurve, LrCurve]:
    """Draw the search phases of two arms ``lora`` and ``full`` that share their seeds.

    Args:
        arm: Truth of ``lora``.
        baseline: Truth of ``full``.
        design: Of both arms, or of ``lora`` alone.
        rng: Source of every draw.
        baseline_design: Of ``full``, where it differs; with other seeds they share the first ones.
    """
    other = design if baseline_design is None else baseline_design
    effects = rng.standard_normal(max(design.seeds, other.seeds))
    lora = simulate_curve("lora", arm, design, rng, effects[: design.seeds])
    return lora, simulate_curve("full", baseline, other, rng, effects[: other.seeds])
