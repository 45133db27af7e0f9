"""Ratios of best learning rates on one plateau threshold, and ratios of such ratios."""

from __future__ import annotations

import math
from dataclasses import dataclass

from analysis.comparing import text
from analysis.comparing.numbers import (
    Quantity,
    from_contrast,
    gravest,
    independent_difference,
    lacking,
    nothing,
)
from analysis.estimates.curve import LrCurve
from analysis.estimates.optimum import LrRatio, log_ratio, lr_ratio, optimum
from analysis.estimates.stats import Estimate


@dataclass(frozen=True)
class Flanks:
    """A ratio of two LR*, and those of their plateaus' ends."""

    centre: Quantity
    ramp: Quantity
    cliff: Quantity
    shape_differs: bool
    """The curves are not shifted copies: the centre is a convention."""


def rate_ratio(
    first: LrCurve | None, second: LrCurve | None, fraction: float, reasons: tuple[str, str]
) -> Flanks:
    """``second`` over ``first`` in LR*, unpaired, with the ratio of ramps and of cliffs.

    Args:
        first: The curve in the denominator; None where there is none.
        second: The curve in the numerator.
        fraction: The plateau threshold, one for both.
        reasons: Why either is None.
    """
    if first is None or second is None:
        missing = [r for curve, r in zip((first, second), reasons, strict=True) if curve is None]
        return _no_flanks("; ".join(dict.fromkeys(missing)))
    if (first.base is None) != (second.base is None):
        return _no_flanks(
            "the untrained model was evaluated on one side only, so LR* is the middle of a plateau "
            "there and the vertex of a parabola here"
        )
    ratio = lr_ratio(second, first, fraction)
    reason = _no_ratio(ratio, first, second, fraction)
    centre = nothing(reason + _one_flank(ratio))
    if math.isfinite(ratio.centre.point):
        contrast = log_ratio(second, first, fraction)
        centre = Quantity(ratio.centre, reason, contrast if ratio.centre.interval else None)
    return Flanks(centre, _flank(ratio.ramp), _flank(ratio.cliff), "shape_differs" in ratio.flags)


def _one_flank(ratio: LrRatio) -> str:
    """The ratio of the ends that both grids hold, where the other ends are outside."""
    for name, estimate in (("ramps", ratio.ramp), ("cliffs", ratio.cliff)):
        if estimate.interval is not None:
            return f" (ratio of the {name} alone: {text.quantity(Quantity(estimate), text.ratio)})"
    return ""


def _no_flanks(reason: str) -> Flanks:
    return Flanks(nothing(reason), nothing(reason), nothing(reason), shape_differs=False)


def _flank(estimate: Estimate) -> Quantity:
    if not math.isfinite(estimate.point):
        return nothing("this end of a plateau is outside its grid")
    return Quantity(estimate, "" if estimate.interval else "see the ratio of the LR*")


def _no_ratio(ratio: LrRatio, first: LrCurve, second: LrCurve, fraction: float) -> str:
    """Which arm keeps the ratio from an interval, and why."""
    if ratio.centre.interval is not None:
        return ""
    found = []
    for curve in (first, second):
        why = gravest(optimum(curve, fraction).flags)
        if why:
            found.append(f"{curve.arm}: {why}")
    return "; ".join(dict.fromkeys(found)) or "every seed gave the same LR*"


def ratio_of_ratios(first: Quantity, second: Quantity) -> Quantity:
    """``second / first`` of two LoRA/FullFT ratios; their four arms share no run."""
    if first.contrast is not None and second.contrast is not None:
        return from_contrast(independent_difference(second.contrast, first.contrast), decades=True)
    if first.estimate is None or second.estimate is None:
        return nothing(lacking(first, second))
    point, n = second.point / first.point, min(first.estimate.n, second.estimate.n)
    return Quantity(Estimate(point, None, None, n), lacking(first, second))
