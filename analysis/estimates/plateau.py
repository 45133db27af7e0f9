"""Where the plateau of a learning-rate curve begins and ends.

A tuned learning rate is not a peak: scores rise along a ramp, stay on a plateau, and fall off a
cliff where runs collapse. The plateau is the set of learning rates whose expected score,
collapsed runs included, is at least ``top - fraction * (top - base)``; its ends are the *ramp*
edge and the *cliff* edge. Positions are log10 of the learning rate, in decades.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import chdtri

from analysis.estimates.curve import BoolArray, FloatArray, LrCurve
from analysis.estimates.edges import Edges, cut, find_edges, top_score, unimodal_fit
from analysis.estimates.stats import MIN_SEEDS, PooledSd, pooled_sd

FRACTION = 0.2
"""Share of the rise below the top at which the plateau ends."""
MIN_RATES = 5
MAX_EDGE_GAP = 0.53
"""Widest cell, in decades, that may bracket an edge: log10(10/3) = 0.523 of a 1-3-10 grid."""
FLAT_ERRORS = 3.0
"""Standard errors of the mean curve within which a threshold is lost in noise. Three run SDs would
refuse three in four simulated sweeps with noisy runs, whose intervals cover all the same."""
MISFIT = 0.25
"""Distance of the mean curve from its unimodal fit, in rises, that is called not unimodal."""
STEEP_DROP = 0.5
"""Fall inside one cell, in rises, beyond which the edge may hide anywhere in the cell."""
COLLAPSE_DROP = 0.9
"""Fall inside one cell, in rises, that is a collapse: to about the base, or below it."""
AGREEING_SEEDS = 0.7
"""Share of the seeds whose cliff lies in the cell of the mean curve's: the cliff is one place."""
MAX_EDGELESS_SEEDS = 1 / 3


@dataclass(frozen=True)
class Plateau:
    """One arm's plateau: the point from the mean curve, the spread from single-seed curves."""

    curve: LrCurve
    mean: Edges
    ramps: FloatArray
    """``[seeds]`` ramp edges of the single-seed curves."""
    cliffs: FloatArray
    """``[seeds]`` cliff edges of the single-seed curves."""
    ramp_unresolved: bool
    """The edge is sharper than the grid: seeds agree on a cell, not on a place inside it."""
    cliff_unresolved: bool
    flags: tuple[str, ...]

    @property
    def centres(self) -> FloatArray:
        """``[seeds]`` midpoints of the single-seed curves."""
        return (self.ramps + self.cliffs) / 2

    @property
    def spacing(self) -> float:
        """Largest gap of the grid in decades."""
        return spacing(self.curve.positions)

    @property
    def cliff_hidden(self) -> bool:
        """Whether runs collapse somewhere inside one cell, on which the seeds agree.

        Interpolation puts such a cliff near the inner end of its cell: a bias that only a ratio to
        an arm of the same kind is free of.
        """
        if self.mean.cliff_drop <= COLLAPSE_DROP:
            return False
        inner = self.mean.cliff_inner
        agree = (self.cliffs >= inner) & (self.cliffs <= inner + self.mean.cliff_gap)
        return self.cliff_unresolved or float(agree.mean()) >= AGREEING_SEEDS


def spacing(positions: FloatArray) -> float:
    """Largest gap of a grid in decades (conservative on an irregular one)."""
    return float(np.diff(positions).max()) if len(positions) > 1 else 0.0


def mean_error(curve: LrCurve, fit: FloatArray) -> float:
    """Standard error of the mean curve at the rates where runs do not collapse.

    From the median over rates of the seed variance, divided by the median of chi-square over its
    degrees of freedom: unlike a pooled SD it bears a few cells in which only some runs collapsed
    without diverging, which no status tells apart from noise.

    Args:
        curve: The arm.
        fit: ``[rates]`` unimodal fit of its mean.

    Returns:
        The error in score units; NaN with one seed or if runs collapse everywhere.
    """
    if curve.n_seeds < 2:
        return math.nan
    alive = ~curve.collapsed.any(axis=0)
    if curve.base is not None:
        worst = min(curve.base, float(curve.scores.min()))
        alive &= fit > (curve.base + worst) / 2
    if not alive.any():
        return math.nan
    df = curve.n_seeds - 1
    median = float(np.median(curve.scores[:, alive].var(axis=0, ddof=1)))
    return math.sqrt(median * df / float(chdtri(df, 0.5)) / curve.n_seeds)


def shared_fraction(curves: Iterable[LrCurve]) -> float:
    """The fraction that all arms of a comparison use: 0.2, less where curves are shallow.

    In a shallow U-shape (supervised fine-tuning) no run falls by 20 % of the rise, and half the
    way from the top to the higher end takes its place. An arm whose higher end is not measurably
    below its top keeps out of this: it has an edge optimum, and would drag the threshold of every
    arm into the noise.

    Args:
        curves: Every arm that is compared; one without a base has no plateau and no say.

    Returns:
        A number in (0, 0.2].
    """
    return min((FRACTION, *filter(None, map(_shallow_fraction, curves))))


def _shallow_fraction(curve: LrCurve) -> float | None:
    if curve.base is None:
        return None
    means = curve.means
    fit = unimodal_fit(means)
    top = top_score(fit)
    half_fall = 0.5 * (top - max(float(fit[0]), float(fit[-1])))
    noise = mean_error(curve, fit)
    if math.isnan(noise):  # one seed: what the fit leaves over is all there is to judge by
        noise = float(np.sqrt(((means - fit) ** 2).mean()))
    # The slack keeps rounding of a curve without noise from counting as a fall.
    if top <= curve.base or half_fall <= FLAT_ERRORS * noise + 1e-9 * abs(top):
        return None
    return half_fall / (top - curve.base)


@lru_cache(maxsize=128)  # every pair of arms asks again; a curve is hashed by identity
def find_plateau(curve: LrCurve, fraction: float) -> Plateau:
    """Locate the plateau of an arm and say what is wrong with it.

    Args:
        curve: The arm.
        fraction: From :func:`shared_fraction` over every arm of the comparison.

    Raises:
        ValueError: if the fraction is not in (0, 1), or the curve has no base.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"0 < fraction < 1 must hold, got {fraction}")
    if curve.base is None:
        raise ValueError(
            f"a plateau needs the score of the untrained model, arm {curve.arm} has none"
        )
    x = curve.positions
    fits = unimodal_fit(np.vstack([curve.means, curve.scores]))
    mean, *single = (cut(x, fit, curve.base, fraction) for fit in fits)
    ramps = np.array([edges.ramp for edges in single])
    cliffs = np.array([edges.cliff for edges in single])
    h = spacing(x)
    ramp_unresolved = _is_unresolved(mean.ramp_drop, ramps, h)
    cliff_unresolved = _is_unresolved(mean.cliff_drop, cliffs, h)
    flags = _flags(curve, curve.base, mean, single, fraction)
    if ramp_unresolved or cliff_unresolved:
        flags = (*flags, "unresolved")
    return Plateau(curve, mean, ramps, cliffs, ramp_unresolved, cliff_unresolved, flags)


def _is_unresolved(drop: float, edges: FloatArray, h: float) -> bool:
    return len(edges) > 1 and drop > STEEP_DROP and float(edges.std(ddof=1)) < h / 4


def _flags(
    curve: LrCurve, base: float, mean: Edges, single: Sequence[Edges], fraction: float
) -> tuple[str, ...]:
    edgeless_ramp = sum(not edges.ramp_found for edges in single)
    edgeless_cliff = sum(not edges.cliff_found for edges in single)
    too_many = MAX_EDGELESS_SEEDS * len(single)
    rise = mean.top - base
    few_points = (
        len(mean.fit) < MIN_RATES
        or int((mean.fit >= mean.threshold).sum()) < 2
        or max(mean.ramp_gap, mean.cliff_gap) > MAX_EDGE_GAP
    )
    noise = mean_error(curve, mean.fit)
    misfit = float(np.abs(curve.means - mean.fit).max())
    rules = {
        "few_seeds": curve.n_seeds < MIN_SEEDS,
        "edge_low": not mean.ramp_found or edgeless_ramp > too_many,
        "edge_high": not mean.cliff_found or edgeless_cliff > too_many,
        "edge_seed": edgeless_ramp + edgeless_cliff > 0,
        "few_points": few_points,
        "flat": rise <= 0 or fraction * rise < FLAT_ERRORS * noise,
        "not_unimodal": misfit > MISFIT * abs(rise),
    }
    return tuple(flag for flag, holds in rules.items() if holds)


def plateau_cells(curve: LrCurve, fraction: float) -> list[FloatArray]:
    """Scores at the rates of the plateau where no run collapsed, ``[seeds]`` each.

    Without a base there is no plateau: the best rate and its neighbours, unless a run diverged.
    """
    lost: BoolArray = curve.collapsed
    if curve.base is None:
        rates = np.arange(len(curve.learning_rates))
        inside = np.abs(rates - curve.means.argmax()) <= 1
    else:
        edges = find_edges(curve.positions, curve.means, curve.base, fraction)
        inside = edges.fit >= edges.threshold
        lost = lost | (curve.scores < (edges.top + curve.base) / 2)
    return [curve.scores[:, k] for k in np.flatnonzero(inside & ~lost.any(axis=0))]


def noise_floor(arms: Iterable[tuple[LrCurve, float]]) -> PooledSd | None:
    """Run SD of an experiment, pooled over the collapse-free plateau cells of all its arms.

    Args:
        arms: Every arm with the fraction of its plateau.

    Returns:
        The floor, or None if fewer than six cells carry one: "unavailable", to be said as such.
    """
    return pooled_sd(cell for curve, fraction in arms for cell in plateau_cells(curve, fraction))
