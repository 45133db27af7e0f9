"""Best learning rates of two experiments on one plateau threshold: LR*, ratios, ratio of ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.claims.comparison import Comparison, stopped_early, unfinished
from analysis.comparing import text
from analysis.comparing.numbers import (
    Quantity,
    from_contrast,
    gravest,
    independent_difference,
    nothing,
)
from analysis.estimates.curve import LrCurve
from analysis.estimates.optimum import LrRatio, log_ratio, lr_ratio, optimum
from analysis.estimates.plateau import shared_fraction
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import Estimate
from analysis.reading.sweep import Sweep

UNFINISHED = "unfinished"


@dataclass(frozen=True)
class Flanks:
    """A ratio of two LR*, and those of their plateaus' ends."""

    centre: Quantity
    ramp: Quantity
    cliff: Quantity
    shape_differs: bool
    """The curves are not shifted copies: the centre is a convention."""


def shared_threshold(a: SearchSummary, b: SearchSummary, arms: Sequence[tuple[str, str]]) -> float:
    """The plateau fraction f of every number of the comparison, over its arms only."""
    curves = [
        summary.curves[name]
        for summary, names in ((a, {x for x, _ in arms}), (b, {y for _, y in arms}))
        for name in names & set(summary.curves)
    ]
    return shared_fraction(curves)


def best_rate(sweep: Sweep, search: SearchSummary, arm: str, fraction: float) -> Quantity:
    """LR* of an arm, or a bound where its plateau leaves the grid."""
    curve = search.curves.get(arm)
    if curve is None:
        return nothing(no_curve(sweep))
    found = optimum(curve, fraction)
    reason = "" if found.lr.interval else gravest(found.flags) or "every seed gave the same LR*"
    if not math.isfinite(found.lr.point):
        return nothing(reason)
    bounds = {"edge_high": "at least", "edge_low": "at most"}
    named = [bound for flag, bound in bounds.items() if flag in found.flags]
    return Quantity(found.lr, reason, bound=named[0] if len(named) == 1 else "")


def no_baseline(sweep: Sweep) -> str:
    """Why an arm is compared with no FullFT arm."""
    stopped = stopped_early(sweep)
    if stopped is not None:
        return stopped.reason.rstrip(".")
    return "no FullFT arm that differs in the method alone"


def no_curve(sweep: Sweep) -> str:
    """Why an arm has no learning-rate curve."""
    if sweep.stops_early:
        return "the search stops early, so curves are not estimated"
    if unfinished(sweep) is not None:
        return "unfinished: its search lacks runs"
    return "its search lacks scores at some learning rate and seed"


def rate_ratio(
    first: LrCurve | None, second: LrCurve | None, fraction: float, reasons: tuple[str, str]
) -> Flanks:
    """``second`` over ``first`` in LR*, unpaired, with the ratio of ramps and of cliffs.

    Args:
        first: The curve in the denominator; None where there is none.
        second: The curve in the numerator.
        fraction: From :func:`shared_threshold`.
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


def over_full(
    sweep: Sweep, search: SearchSummary, pair: Comparison | None, fraction: float
) -> Quantity:
    """LR* of a LoRA arm over that of the FullFT arm of its own experiment."""
    if pair is None or pair.baseline is None:
        return nothing(no_baseline(sweep))
    if pair.obstacle is not None and pair.obstacle.flag != UNFINISHED:
        return nothing(pair.obstacle.reason.rstrip("."))
    lora, full = (search.curves.get(name) for name in pair.names)
    return rate_ratio(full, lora, fraction, (no_curve(sweep), no_curve(sweep))).centre


def ratio_of_ratios(first: Quantity, second: Quantity) -> Quantity:
    """``second / first`` of two LoRA/FullFT ratios; their four arms share no run."""
    if first.contrast is None or second.contrast is None:
        sides = zip((first, second), "AB", strict=True)
        reasons = {side: q.reason for q, side in sides if q.contrast is None}
        text = "; ".join(f"{side}: {reason}" for side, reason in reasons.items())
        if not (math.isfinite(first.point) and math.isfinite(second.point)):
            return nothing(text)
        n = min(q.estimate.n for q in (first, second) if q.estimate is not None)
        return Quantity(Estimate(second.point / first.point, None, None, n), text)
    return from_contrast(independent_difference(second.contrast, first.contrast), decades=True)
