"""The two ends of the plateau of learning-rate curves.

Positions are log10 of the learning rate, in decades. A curve is fitted by the best unimodal
one (Barlow et al. 1972: isotonic regression on both sides of a mode) and cut at a threshold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from analysis.estimates.curve import BoolArray, FloatArray

TIE = 1e-12
"""Squared errors that differ by less, relative to the curve's sum of squares, are equal."""


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
    cliff_inner: float
    """Last grid point of the plateau: the inner end of the cell that brackets the cliff."""
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
        scores: ``[rates]``, in the order of the learning rates, or ``[curves, rates]``.

    Returns:
        Fitted scores of the same shape.
    """
    rows = np.atleast_2d(np.asarray(scores, dtype=np.float64))
    fits = rows.copy()  # most curves of good sweeps are unimodal, and need no fit
    wrong = ~_is_unimodal(rows)
    if wrong.any():
        fits[wrong] = _unimodal_fits(rows[wrong])
    return fits.reshape(np.shape(scores))


def _is_unimodal(rows: FloatArray) -> BoolArray:
    steps = np.diff(rows, axis=1)
    fallen = np.logical_or.accumulate(steps < 0, axis=1)
    return np.asarray(~(fallen & (steps > 0)).any(axis=1), dtype=np.bool_)


def _unimodal_fits(rows: FloatArray) -> FloatArray:
    """The fit of every row: all modes of all rows at once."""
    rates = rows.shape[1]
    rises = _isotonic_prefixes(rows)
    falls = _isotonic_prefixes(rows[:, ::-1])[:, ::-1, ::-1]  # [rows, first rate, rates]
    modes = np.arange(rates)
    behind = np.minimum(modes + 1, rates - 1)
    rising = modes[None, :] <= modes[:, None]  # [mode, rate]
    fits = np.where(rising, rises, falls[:, behind])
    errors = ((fits - rows[:, None, :]) ** 2).sum(axis=2)
    slack = TIE * (rows**2).sum(axis=1, keepdims=True)
    best = (errors <= errors.min(axis=1, keepdims=True) + slack).argmax(axis=1)
    return np.asarray(fits[np.arange(len(rows)), best], dtype=np.float64)


def _isotonic_prefixes(rows: FloatArray) -> FloatArray:
    """Isotonic least squares fits of all prefixes, ``[rows, last rate, rates]``.

    By the max-min formula: the fit at i is the largest, over starts a <= i, of the smallest mean
    from a to some b >= i. Entries behind a prefix are meaningless.
    """
    count, rates = rows.shape
    index = np.arange(rates)
    sums = np.concatenate([np.zeros((count, 1)), rows.cumsum(axis=1)], axis=1)
    lengths = np.maximum(index[None, :] - index[:, None] + 1, 1)
    means = (sums[:, None, 1:] - sums[:, :-1, None]) / lengths  # [rows, start, end]
    means[:, index, index] = rows  # free of the rounding of sums
    fits = np.empty((count, rates, rates))
    smallest = np.full((count, rates, rates), np.inf)  # [rows, start, last rate]
    for i in range(rates - 1, -1, -1):
        smallest[:, :, i:] = np.minimum(smallest[:, :, i:], means[:, :, i, None])
        fits[:, :, i] = smallest[:, : i + 1].max(axis=1)
    return fits


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
    return cut(positions, unimodal_fit(scores), base, fraction)


def cut(positions: FloatArray, fit: FloatArray, base: float, fraction: float) -> Edges:
    """Cut a curve that is unimodal already; see :func:`find_edges`."""
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
        cliff_inner=float(positions[last]),
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
