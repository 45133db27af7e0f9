"""The best learning rate of an arm, and its ratio to another arm's, with 90 % intervals.

LR* is the log-midpoint of the plateau (see :mod:`.plateau`). The ratio of two arms is the
ratio of their midpoints, hence the geometric mean of the ratio of their ramps and of their
cliffs; where those two differ the curves are not shifted copies and "one ratio" is a convention.

Points come from the seed-mean curve (those of ramp ratios from single-seed curves, where nothing
collapses and they vary less), spread from single-seed curves by Student's t, and a grid term
(:mod:`.grid_terms`) stands for the edge's unknown place between two grid points. A quadratic
through the maximum is not used where a plateau can be cut: the cliff biases it by up to a quarter
of a decade. It serves where the untrained model was never evaluated (:mod:`.parabola`).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from analysis.estimates.curve import FloatArray, LrCurve
from analysis.estimates.grid_terms import (
    centre_ratio_term,
    centre_term,
    edge_terms,
    flank_ratio_terms,
    vertex_ratio_term,
    vertex_term,
)
from analysis.estimates.located import ASSUMED_SPREAD, AssumedEstimate, LrRatio, Optimum
from analysis.estimates.parabola import Parabola, find_parabola
from analysis.estimates.plateau import Plateau, find_plateau
from analysis.estimates.stats import (
    CONFIDENCE,
    Contrast,
    Estimate,
    variance_of_mean,
    welch_difference,
    z_quantile,
)

__all__ = [
    "AssumedEstimate",
    "LrRatio",
    "Optimum",
    "assumed_ratio",
    "log_ratio",
    "lr_ratio",
    "optimum",
    "width_contrast",
]

UNSTATED = frozenset({"few_seeds", "few_points", "flat"})
"""With one of these flags no interval is stated."""
EDGES = frozenset({"edge_low", "edge_high"})
NOTHING = Estimate(math.nan, None, None, 0)


def optimum(curve: LrCurve, fraction: float) -> Optimum:
    """LR*, plateau edges and width of an arm.

    Args:
        curve: The arm.
        fraction: From ``shared_fraction`` over every arm of the comparison; not read where the
            curve has no base.

    Returns:
        The optimum, flagged; an estimate that may not be stated has no interval.

    Raises:
        ValueError: if the fraction is not in (0, 1).
    """
    if curve.base is None:
        return _vertex_optimum(find_parabola(curve))
    plateau = find_plateau(curve, fraction)
    mean, flags = plateau.mean, plateau.flags
    stated = UNSTATED.isdisjoint(flags)
    ramp_ok, cliff_ok = stated and "edge_low" not in flags, stated and "edge_high" not in flags
    widths = plateau.cliffs - plateau.ramps
    ramp_term, cliff_term = edge_terms(plateau)
    width_term = math.hypot(ramp_term, cliff_term)
    flat = "flat" in flags
    low, high = (float(x) for x in np.log10((curve.learning_rates[0], curve.learning_rates[-1])))
    ramp, cliff = (low, high) if flat else (mean.ramp, mean.cliff)
    centre = math.nan if flat else mean.centre
    both = ramp_ok and cliff_ok
    return Optimum(
        arm=curve.arm,
        lr=from_decades(_one_arm(centre, plateau.centres, centre_term(plateau), stated=both)),
        ramp=from_decades(_one_arm(ramp, plateau.ramps, ramp_term, stated=ramp_ok)),
        cliff=from_decades(_one_arm(cliff, plateau.cliffs, cliff_term, stated=cliff_ok)),
        width=_one_arm(cliff - ramp, widths, width_term, stated=both),
        top=mean.top,
        threshold=mean.threshold,
        fit=tuple(float(value) for value in mean.fit),
        flags=flags,
    )


def _vertex_optimum(found: Parabola) -> Optimum:
    stated = (UNSTATED | EDGES).isdisjoint(found.flags)
    point = math.nan if "flat" in found.flags else found.vertex
    nothing = replace(NOTHING, n=found.curve.n_seeds)
    return Optimum(
        arm=found.curve.arm,
        lr=from_decades(_one_arm(point, found.vertices, vertex_term(found), stated=stated)),
        ramp=nothing,
        cliff=nothing,
        width=nothing,
        top=found.height,
        threshold=math.nan,
        fit=tuple(float(value) for value in found.fit),
        flags=found.flags,
    )


def _one_arm(point: float, per_seed: FloatArray, gamma: float, *, stated: bool) -> Estimate:
    n = len(per_seed)
    if not stated:
        return Estimate(point, None, None, n)
    return Contrast(point, math.sqrt(variance_of_mean(per_seed)), n - 1, n, gamma).estimate()


def from_decades(log10: Estimate) -> Estimate:
    """Exponentiate an estimate on the log10 axis."""
    interval = log10.interval
    low, high = (None, None) if interval is None else (10 ** interval[0], 10 ** interval[1])
    return replace(log10, point=10**log10.point, low=low, high=high)


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
        the ratio of the other flank. If either arm has no base, both go by their parabolas: two
        estimators aim at different places.

    Raises:
        ValueError: if the fraction is not in (0, 1).
    """
    if arm.base is None or baseline.base is None:
        return _vertex_ratio(find_parabola(arm), find_parabola(baseline))
    a, b = find_plateau(arm, fraction), find_plateau(baseline, fraction)
    flags = _union(a.flags, b.flags)
    ramp_ok, cliff_ok = "edge_low" not in flags, "edge_high" not in flags
    ramp_term, cliff_term = flank_ratio_terms(a, b)
    ramp = _stated(_difference(a.ramps, b.ramps, ramp_term), ramp_ok, flags)
    cliffs = replace(_difference(a.cliffs, b.cliffs, cliff_term), point=a.mean.cliff - b.mean.cliff)
    cliff = _stated(cliffs, cliff_ok, flags)
    width = _stated(_widths(a, b), ramp_ok and cliff_ok, flags)
    if _shape_differs(ramp, cliff, width):
        flags = (*flags, "shape_differs")
    return LrRatio(
        arm=arm.arm,
        baseline=baseline.arm,
        centre=from_decades(_stated(_centres(a, b), ramp_ok and cliff_ok, flags)),
        ramp=from_decades(ramp),
        cliff=from_decades(cliff),
        width_difference=width,
        flags=flags,
    )


def _vertex_ratio(a: Parabola, b: Parabola) -> LrRatio:
    flags = _union(a.flags, b.flags)
    contrast = _vertices(a, b)
    nothing = replace(NOTHING, n=contrast.n)
    centre = _stated(contrast, EDGES.isdisjoint(flags), flags)
    names = a.curve.arm, b.curve.arm
    return LrRatio(*names, from_decades(centre), nothing, nothing, nothing, flags)


def _union(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))


def log_ratio(arm: LrCurve, baseline: LrCurve, fraction: float) -> Contrast:
    """The ratio of centres as a difference in decades, before flags are heeded.

    For planning and for tests of equality: its ``seeds_for`` tells how many seeds would decide.
    """
    if arm.base is None or baseline.base is None:
        return _vertices(find_parabola(arm), find_parabola(baseline))
    return _centres(find_plateau(arm, fraction), find_plateau(baseline, fraction))


def width_contrast(arm: LrCurve, baseline: LrCurve, fraction: float) -> Contrast:
    """Width of the arm's plateau minus the baseline's in decades, before flags are heeded.

    Raises:
        ValueError: if a curve has no base, hence no plateau.
    """
    return _widths(find_plateau(arm, fraction), find_plateau(baseline, fraction))


def assumed_ratio(
    lora: LrCurve, full: LrCurve, fraction: float, tau: float = ASSUMED_SPREAD
) -> AssumedEstimate:
    """The ratio with an interval from an assumed spread: for sweeps of one or two seeds.

    Half width in decades, z being the normal quantile and n the seeds of an arm:
    z sqrt(tau^2 (1/n + 1/n') + grid term^2). Every steep edge counts as unresolved, since one
    seed cannot tell.

    Args:
        lora: The arm in the numerator.
        full: The arm in the denominator.
        fraction: From ``shared_fraction``.
        tau: SD over seeds of one arm's LR* in decades.

    Returns:
        The ratio in linear units, labelled as assumed; without an interval where an edge, a flat
        curve or a coarse grid would forbid one with any number of seeds.

    Raises:
        ValueError: if tau is not positive or the fraction is not in (0, 1).
    """
    if not tau > 0:
        raise ValueError(f"an assumed spread must be positive, got {tau}")
    ratio = lr_ratio(lora, full, fraction)
    flags = set(ratio.flags) - {"few_seeds"}
    none = AssumedEstimate(ratio.centre.point, None, None, ratio.centre.n, tau=tau)
    if not (UNSTATED | EDGES).isdisjoint(flags):
        return none
    if "parabola" in flags:
        gamma = vertex_ratio_term(find_parabola(lora), find_parabola(full))
    else:
        arms = find_plateau(lora, fraction), find_plateau(full, fraction)
        gamma = centre_ratio_term(*arms, assume_steep=True)
    spread = tau * math.sqrt(1 / lora.n_seeds + 1 / full.n_seeds)
    factor = 10 ** (z_quantile(CONFIDENCE) * math.hypot(spread, gamma))
    return replace(none, low=none.point / factor, high=none.point * factor)


def _centres(a: Plateau, b: Plateau) -> Contrast:
    """Difference of the midpoints: point from the mean curves, spread from the seeds' curves."""
    spread = _difference(a.centres, b.centres, centre_ratio_term(a, b))
    return replace(spread, point=a.mean.centre - b.mean.centre)


def _widths(a: Plateau, b: Plateau) -> Contrast:
    spread = _difference(a.cliffs - a.ramps, b.cliffs - b.ramps, flank_ratio_terms(a, b)[1])
    return replace(spread, point=a.mean.width - b.mean.width)


def _vertices(a: Parabola, b: Parabola) -> Contrast:
    spread = _difference(a.vertices, b.vertices, vertex_ratio_term(a, b))
    return replace(spread, point=a.vertex - b.vertex)


def _difference(a: FloatArray, b: FloatArray, gamma: float) -> Contrast:
    return replace(welch_difference(a, b), grid_term=gamma)


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
