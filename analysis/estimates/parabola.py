"""The optimum of a learning-rate curve whose untrained model nobody evaluated.

A plateau needs the score of the untrained model; a foreign sweep of supervised fine-tuning rarely
has it. There the optimum is the vertex of the parabola, on log10 of the learning rate, through the
best point and its two neighbours: good on a shallow U-shape, and biased by up to a quarter of a
decade where runs collapse, so it never replaces the plateau where a base is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from analysis.estimates.curve import FloatArray, LrCurve
from analysis.estimates.edges import unimodal_fit
from analysis.estimates.plateau import (
    FLAT_ERRORS,
    MAX_EDGE_GAP,
    MAX_EDGELESS_SEEDS,
    MISFIT,
    mean_error,
)
from analysis.estimates.stats import MIN_SEEDS


@dataclass(frozen=True)
class Parabola:
    """One arm's vertex: the point from the mean curve, the spread from single-seed curves."""

    curve: LrCurve
    vertex: float
    """log10 of the learning rate; the grid's end where the best point is one."""
    height: float
    """Score at the vertex."""
    vertices: FloatArray
    """``[seeds]`` vertices of the single-seed curves."""
    gap: float
    """Wider of the two cells beside the best point, in decades; 0 at an end of the grid."""
    fit: FloatArray
    """Unimodal fit of the mean curve, ``[rates]``."""
    flags: tuple[str, ...]


@lru_cache(maxsize=128)  # every pair of arms asks again; a curve is hashed by identity
def find_parabola(curve: LrCurve) -> Parabola:
    """Locate the vertex of an arm and say what is wrong with it.

    Args:
        curve: The arm; its base is not read.

    Returns:
        The vertex with the flag ``parabola``. With ``edge_low`` or ``edge_high`` it is the end of
        the grid, and a bound.
    """
    x, means = curve.positions, curve.means
    best = int(means.argmax())
    interior = 0 < best < len(x) - 1
    place, height = vertex(x, means)
    fit = unimodal_fit(means)
    return Parabola(
        curve=curve,
        vertex=place,
        height=height,
        vertices=np.array([vertex(x, row)[0] for row in curve.scores]),
        gap=float(np.diff(x)[best - 1 : best + 1].max()) if interior else 0.0,
        fit=fit,
        flags=_flags(curve, fit, best),
    )


def vertex(positions: FloatArray, scores: FloatArray) -> tuple[float, float]:
    """Place and height of the vertex through the best of the scores and its neighbours.

    Args:
        positions: ``[rates]`` log10 learning rates, ascending.
        scores: ``[rates]``, higher is better.

    Returns:
        The vertex, which lies between the neighbours' midpoints with the best point; the best
        point itself where it is an end of the grid or where all three are equal.
    """
    i = int(scores.argmax())
    x, y = positions[i - 1 : i + 2], scores[i - 1 : i + 2]
    if not 0 < i < len(scores) - 1 or y[0] == y[1] == y[2]:
        return float(positions[i]), float(scores[i])
    rise, fall = (y[1] - y[0]) / (x[1] - x[0]), (y[2] - y[1]) / (x[2] - x[1])
    curvature = (fall - rise) / (x[2] - x[0])  # half the second derivative, negative
    place = (x[0] + x[1]) / 2 - rise / (2 * curvature)  # the slope at a cell's middle is its mean
    height = y[1] - curvature * (place - x[1]) ** 2  # as the slope is 0 at the vertex
    return float(place), float(height)


def _flags(curve: LrCurve, fit: FloatArray, best: int) -> tuple[str, ...]:
    means, last = curve.means, len(curve.learning_rates) - 1
    seeds_best = curve.scores.argmax(axis=1)
    at_low, at_high = (seeds_best == 0).mean(), (seeds_best == last).mean()
    around = slice(max(best - 1, 0), best + 2)
    noise = mean_error(curve, fit)
    low_fall, high_fall = means[best] - means[0], means[best] - means[-1]
    gaps = np.diff(curve.positions[around])
    interior = 0 < best < last
    coarse = last < 2 or (interior and bool(gaps.max() > MAX_EDGE_GAP))
    rules = {
        "parabola": True,
        "few_seeds": curve.n_seeds < MIN_SEEDS,
        "edge_low": best == 0 or at_low > MAX_EDGELESS_SEEDS,
        "edge_high": best == last or at_high > MAX_EDGELESS_SEEDS,
        "edge_seed": bool(at_low + at_high > 0),
        "few_points": coarse or bool(curve.collapsed[:, around].any()),
        "flat": bool(max(low_fall, high_fall) < FLAT_ERRORS * noise) or low_fall == high_fall == 0,
        "not_unimodal": bool(np.abs(means - fit).max() > MISFIT * np.ptp(means)),
    }
    return tuple(flag for flag, holds in rules.items() if holds)
