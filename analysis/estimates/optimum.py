"""The best learning rate of an arm, and its ratio to another arm's, with 90 % intervals.

LR* is the log-midpoint of the plateau (see :mod:`.plateau`). The ratio of two arms is the
ratio of their midpoints, hence the geometric mean of the ratio of their ramps and of their
cliffs; where those two differ the curves are not shifted copies and "one ratio" is a convention.

Points come from the seed-mean curve, spread from single-seed curves by Student's t, and a grid
term ``gamma`` stands for the edge's unknown place between two grid points (uniform in a cell: SD
h / sqrt(12)). The constants were fixed by simulation; ``tests/unit/analysis`` repeats it. A
quadratic through the maximum is not used: the cliff biases it by up to a quarter of a decade.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from analysis.estimates.curve import FloatArray, LrCurve
from analysis.estimates.plateau import Plateau, find_plateau
from analysis.estimates.stats import Contrast, Estimate, variance_of_mean, welch_difference

UNSTATED = frozenset({"few_seeds", "few_points", "flat"})
"""With one of these flags no interval is stated."""
GRID_TERM_CENTRE = 0.11
GRID_TERM_RAMP = 0.11
GRID_TERM_RAMP_COARSE = 0.15
GRID_TERM_CLIFF = 0.25
GRID_TERM_UNRESOLVED = 0.35
GRID_TERM_RATIO = 0.15
GRID_TERM_RAMP_RATIO = 0.05
GRID_TERM_RAMP_RATIO_COARSE = 0.15
GRID_TERM_CLIFF_RATIO = 0.25
GRID_TERM_CLIFF_RATIO_UNRESOLVED = 0.41
FINE_SPACING = 1 / 3 + 1e-3
"""Largest h of the fine ramp terms, in decades; the slack is for rates of six digits."""


@dataclass(frozen=True)
class Optimum:
    """LR* of one arm with the plateau it is the midpoint of.

    With ``edge_low`` or ``edge_high`` that side's edge is the grid's end, and LR* and width are
    bounds without an interval; with ``flat`` there is no LR* (NaN) and the edges are the range of
    the grid.
    """

    arm: str
    lr: Estimate
    """LR*, as a learning rate."""
    ramp: Estimate
    """Where the plateau begins, as a learning rate."""
    cliff: Estimate
    """Where the plateau ends, as a learning rate."""
    width: Estimate
    """Width of the plateau in decades."""
    top: float
    threshold: float
    """Score that bounds the plateau."""
    fit: tuple[float, ...]
    """Unimodal fit of the mean curve at the grid."""
    flags: tuple[str, ...]


@dataclass(frozen=True)
class LrRatio:
    """Learning rate of an arm over that of a baseline arm; NaN where there is no ratio."""

    arm: str
    baseline: str
    centre: Estimate
    """Ratio of the two LR*: the one that decides."""
    ramp: Estimate
    """Ratio of the ramp edges: the most precise one."""
    cliff: Estimate
    """Ratio of the cliff edges."""
    width_difference: Estimate
    """Width of the arm's plateau minus the baseline's, in decades."""
    flags: tuple[str, ...]
    """Flags of either arm, and ``shape_differs`` if ramp and cliff disagree."""


def optimum(curve: LrCurve, fraction: float) -> Optimum:
    """LR*, plateau edges and width of an arm.

    Args:
        curve: The arm.
        fraction: From ``shared_fraction`` over every arm of the comparison.

    Returns:
        The optimum, flagged; an estimate that may not be stated has no interval.

    Raises:
        ValueError: if the fraction is not in (0, 1).
    """
    plateau = find_plateau(curve, fraction)
    mean, h, flags = plateau.mean, plateau.spacing, plateau.flags
    stated = UNSTATED.isdisjoint(flags)
    ramp_ok, cliff_ok = stated and "edge_low" not in flags, stated and "edge_high" not in flags
    centres = (plateau.ramps + plateau.cliffs) / 2
    widths = plateau.cliffs - plateau.ramps
    ramp_term, cliff_term = _edge_terms(plateau)
    width_term = math.hypot(ramp_term, cliff_term)
    centre_term = max(GRID_TERM_CENTRE * h, h * math.sqrt(plateau.unresolved / 48))
    flat = "flat" in flags
    low, high = (float(x) for x in np.log10((curve.learning_rates[0], curve.learning_rates[-1])))
    ramp, cliff = (low, high) if flat else (mean.ramp, mean.cliff)
    centre = math.nan if flat else mean.centre
    both = ramp_ok and cliff_ok
    return Optimum(
        arm=curve.arm,
        lr=_from_decades(_one_arm(centre, centres, centre_term, stated=both)),
        ramp=_from_decades(_one_arm(ramp, plateau.ramps, ramp_term, stated=ramp_ok)),
        cliff=_from_decades(_one_arm(cliff, plateau.cliffs, cliff_term, stated=cliff_ok)),
        width=_one_arm(cliff - ramp, widths, width_term, stated=both),
        top=mean.top,
        threshold=mean.threshold,
        fit=tuple(float(value) for value in mean.fit),
        flags=flags,
    )


def _edge_terms(plateau: Plateau) -> tuple[float, float]:
    """Grid terms of an arm's own edges, SD in decades.

    They are larger than an edge's share in a ratio, where the bias of the interpolation cancels:
    inside a cell with a sharp fall the place is uniform, and the crossing sits near its inner end.
    """
    h = plateau.spacing
    ramp = GRID_TERM_RAMP if h <= FINE_SPACING else GRID_TERM_RAMP_COARSE
    return (
        h * (GRID_TERM_UNRESOLVED if plateau.ramp_unresolved else ramp),
        h * (GRID_TERM_UNRESOLVED if plateau.cliff_unresolved else GRID_TERM_CLIFF),
    )


def _one_arm(point: float, per_seed: FloatArray, gamma: float, *, stated: bool) -> Estimate:
    n = len(per_seed)
    if not stated:
        return Estimate(point, None, None, n)
    return Contrast(point, math.sqrt(variance_of_mean(per_seed)), n - 1, n, gamma).estimate()


def _from_decades(log10: Estimate) -> Estimate:
    """Exponentiate an estimate on the log10 axis."""
    interval = log10.interval
    low, high = (None, None) if interval is None else (10 ** interval[0], 10 ** interval[1])
    return Estimate(10**log10.point, low, high, log10.n, log10.confidence)


def lr_ratio(arm: LrCurve, baseline: LrCurve, fraction: float) -> LrRatio:
    """Ratio of the best learning rates of two arms, with the ratios of ramps and cliffs.

    Arms are not paired by seed: where a run collapses is its own accident, and pairing costs
    degrees of freedom for nothing.

    Args:
        arm: The arm in the numerator.
        baseline: The arm in the denominator, full fine-tuning as a rule.
        fraction: From ``shared_fraction`` over every arm of the comparison.

    Returns:
        Ratios in linear units. An arm with an edge gives no ratio of centres, no width, and only
        the ratio of the other flank.

    Raises:
        ValueError: if the fraction is not in (0, 1).
    """
    a, b = find_plateau(arm, fraction), find_plateau(baseline, fraction)
    flags = tuple(dict.fromkeys((*a.flags, *b.flags)))
    ramp_ok, cliff_ok = "edge_low" not in flags, "edge_high" not in flags
    ramp_term, cliff_term = _flank_terms(a, b)
    ramp = _stated(_difference(a.ramps, b.ramps, ramp_term), ramp_ok, flags)
    cliff = _stated(_difference(a.cliffs, b.cliffs, cliff_term), cliff_ok, flags)
    widths = _difference(a.cliffs - a.ramps, b.cliffs - b.ramps, cliff_term)
    width = _stated(widths, ramp_ok and cliff_ok, flags)
    if _shape_differs(ramp, cliff, width):
        flags = (*flags, "shape_differs")
    return LrRatio(
        arm=arm.arm,
        baseline=baseline.arm,
        centre=_from_decades(_stated(_centres(a, b), ramp_ok and cliff_ok, flags)),
        ramp=_from_decades(ramp),
        cliff=_from_decades(cliff),
        width_difference=width,
        flags=flags,
    )


def log_ratio(arm: LrCurve, baseline: LrCurve, fraction: float) -> Contrast:
    """The ratio of centres as a difference in decades, before flags are heeded.

    For planning: its ``seeds_for`` tells how many seeds would decide.
    """
    return _centres(find_plateau(arm, fraction), find_plateau(baseline, fraction))


def _centres(a: Plateau, b: Plateau) -> Contrast:
    """Difference of the midpoints: point from the mean curves, spread from the seeds' curves."""
    h = max(a.spacing, b.spacing)
    gamma = max(GRID_TERM_RATIO * h, h * math.sqrt((a.unresolved + b.unresolved) / 48))
    spread = _difference((a.ramps + a.cliffs) / 2, (b.ramps + b.cliffs) / 2, gamma)
    return replace(spread, point=a.mean.centre - b.mean.centre)


def _difference(a: FloatArray, b: FloatArray, gamma: float) -> Contrast:
    return replace(welch_difference(a, b), grid_term=gamma)


def _flank_terms(a: Plateau, b: Plateau) -> tuple[float, float]:
    """Grid terms of the ramp and of the cliff ratio, SD in decades."""
    h = max(a.spacing, b.spacing)
    ramp = GRID_TERM_RAMP_RATIO if h <= FINE_SPACING else GRID_TERM_RAMP_RATIO_COARSE
    sharp = a.cliff_unresolved and b.cliff_unresolved
    return h * ramp, h * (GRID_TERM_CLIFF_RATIO_UNRESOLVED if sharp else GRID_TERM_CLIFF_RATIO)


def _stated(contrast: Contrast, found: bool, flags: tuple[str, ...]) -> Estimate:
    """What may be said of a difference: NaN without edges or on a flat curve."""
    if not found or "flat" in flags:
        return Estimate(math.nan, None, None, contrast.n)
    if not UNSTATED.isdisjoint(flags):
        return Estimate(contrast.point, None, None, contrast.n)
    return contrast.estimate()


def _shape_differs(ramp: Estimate, cliff: Estimate, width: Estimate) -> bool:
    """Whether the curves are demonstrably not shifted copies of each other."""
    r, c, w = ramp.interval, cliff.interval, width.interval
    disjoint = r is not None and c is not None and (r[1] < c[0] or c[1] < r[0])
    return disjoint or (w is not None and not w[0] <= 0 <= w[1])
