"""The two ends of the plateau of one learning-rate curve.

Positions are log10 of the learning rate, in decades. The curve is fitted by the best unimodal
one (Barlow et al. 1972: isotonic regression on both sides of a mode) and cut at a threshold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from analysis.estimates.curve import FloatArray


@dataclass(frozen=True)
class Edges:
    """The plateau of one curve: of the seed mean, or of a single seed."""

    ramp: float
    """log10 of the learning rate where the plateau begins; the grid's end if it does not."""
    cliff: float
    """log10 of the learning rate where the plateau ends; the grid's end if it does not."""
    ramp_drop: float
    """Fall of the fit inside the cell that brackets the ramp edge, in rises; 0 without an edge."""
    cliff_drop: float
    ramp_found: bool
    """Whether the fit crosses the threshold on this side inside the grid."""
    cliff_found: bool
    ramp_gap: float
    """Width of the bracketing cell in decades; 0 without an edge."""
    cliff_gap: float
    top: float
    threshold: float
    fit: FloatArray
    """Unimodal least squares fit, ``[rates]``."""

    @property
    def centre(self) -> float:
        """Midpoint of the plateau in decades."""
        return (self.ramp + self.cliff) / 2

    @property
    def width(self) -> float:
        """Width of the plateau in decades."""
        return self.cliff - self.ramp


def unimodal_fit(scores: FloatArray) -> FloatArray:
    """Least squares fit among the curves that rise to some grid point and fall after it.

    Every mode is tried, as an isotonic rise up to it and an isotonic fall behind it; of equally
    good modes the lowest is kept.

    Args:
        scores: ``[rates]``, in the order of the learning rates.

    Returns:
        ``[rates]`` fitted scores.
    """
    fits = [
        np.concatenate([_rising(scores[: mode + 1]), _rising(scores[mode + 1 :][::-1])[::-1]])
        for mode in range(len(scores))
    ]
    errors = [float(((fit - scores) ** 2).sum()) for fit in fits]
    return fits[int(np.argmin(errors))]


def _rising(scores: FloatArray) -> FloatArray:
    if np.all(scores[1:] >= scores[:-1]):
        return scores  # most prefixes of a ramp need no fit
    return np.asarray(isotonic_regression(scores).x, dtype=np.float64)


def top_score(fit: FloatArray) -> float:
    """Mean of the two largest fitted values: less of a winner's curse than the largest."""
    return float(np.sort(fit)[-2:].mean())


def find_edges(positions: FloatArray, scores: FloatArray, base: float, fraction: float) -> Edges:
    """Cut the unimodal fit of one curve at its threshold.

    Args:
        positions: ``[rates]`` log10 learning rates, ascending.
        scores: ``[rates]``, higher is better.
        base: Score of the untrained model.
        fraction: Share of the rise below the top at which the plateau ends.

    Returns:
        Edges by linear interpolation inside the bracketing cells. A curve that never rises above
        the base has no edge on either side.
    """
    fit = unimodal_fit(scores)
    top = top_score(fit)
    rise = top - base
    threshold = top - fraction * rise
    inside = np.flatnonzero(fit >= threshold)
    first, last = (0, len(fit) - 1) if rise <= 0 else (int(inside[0]), int(inside[-1]))
    ramp, cliff = (
        _crossing(positions, fit, start, step, threshold)
        for start, step in ((first, -1), (last, 1))
    )
    scale = rise if rise > 0 else math.inf
    return Edges(
        ramp=ramp[0],
        cliff=cliff[0],
        ramp_drop=ramp[1] / scale,
        cliff_drop=cliff[1] / scale,
        ramp_found=ramp[2] > 0,
        cliff_found=cliff[2] > 0,
        ramp_gap=ramp[2],
        cliff_gap=cliff[2],
        top=top,
        threshold=threshold,
        fit=fit,
    )


def _crossing(
    positions: FloatArray, fit: FloatArray, start: int, step: int, threshold: float
) -> tuple[float, float, float]:
    """Place of the crossing between grid points start and start + step, its fall and its gap."""
    outer = start + step
    if not 0 <= outer < len(fit):
        return float(positions[start]), 0.0, 0.0
    fall = float(fit[start] - fit[outer])
    gap = float(positions[outer] - positions[start])
    place = float(positions[start]) + gap * float(fit[start] - threshold) / fall
    return place, fall, abs(gap)
