"""Numbers as text: estimates with their intervals, or with the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from analysis.claims.verdict import Verdict
from analysis.estimates.stats import MIN_SEEDS, Estimate
from analysis.reading.arms import rate_text, signed_text

EQUAL, NOTED = "all values equal", "see notes"
"""Why an estimate from enough seeds has no interval."""


def score_text(estimate: Estimate | None) -> str:
    """``0.495 [0.488, 0.502]``."""
    return estimate_text(estimate, lambda x: f"{x:z.3f}", EQUAL)


def percent_text(estimate: Estimate | None) -> str:
    """``61.1 [60.5, 61.6] %``; a dash for none."""
    if estimate is None:
        return "-"
    return estimate_text(estimate, lambda x: f"{100 * x:z.1f}", EQUAL, " %")


def quotient_text(estimate: Estimate | None) -> str:
    """``0.0158 [0.0149, 0.0168]``, to three digits; a dash for none."""
    return "-" if estimate is None else estimate_text(estimate, lambda x: f"{x:.3g}", EQUAL)


def difference_text(estimate: Estimate | None) -> str:
    """``-0.010 [-0.021, +0.001]``."""
    return estimate_text(estimate, lambda x: signed_text(x, 3), EQUAL)


def rate_estimate_text(estimate: Estimate | None) -> str:
    """``2.7e-4 [1.8e-4, 4.1e-4]``."""
    return estimate_text(estimate, rate_text, NOTED)


def ratio_text(estimate: Estimate | None) -> str:
    """``10.2 [6.8, 15.3]``, and two decimals below 2: ``1.62 [1.31, 2.01]``."""
    decimals = 2 if estimate is not None and 0 < estimate.point < 2 else 1
    return estimate_text(estimate, lambda x: f"{x:.{decimals}f}", NOTED)


def estimate_text(
    estimate: Estimate | None, show: Callable[[float], str], why: str, unit: str = ""
) -> str:
    """The point with its interval, or with the reason why none may be stated.

    Args:
        estimate: A point that is not finite reads ``none``.
        show: A number as text.
        why: The reason where the seeds are enough.
        unit: Behind the number.
    """
    if estimate is None or not math.isfinite(estimate.point):
        return "none"
    if estimate.interval is None:
        few = f"n = {estimate.n}" if estimate.n < MIN_SEEDS else ""
        return f"{show(estimate.point)}{unit} (no interval, {few or why})"
    low, high = estimate.interval
    return f"{show(estimate.point)} [{show(low)}, {show(high)}]{unit}"


def verdict_estimate(verdict: Verdict) -> str:
    """A verdict's estimate with its interval and unit; its reason says why there is none."""
    if verdict.estimate is None or not math.isfinite(verdict.estimate):
        return "no estimate"
    low, high = verdict.interval or (None, None)
    estimate = Estimate(verdict.estimate, low, high, verdict.n_seeds, verdict.confidence)
    return UNITS.get(verdict.unit, _plain)(estimate)


def _plain(estimate: Estimate) -> str:
    return estimate_text(estimate, lambda x: f"{x:.3g}", NOTED)


def _decades(estimate: Estimate) -> str:
    return estimate_text(estimate, lambda x: signed_text(x, 2), NOTED, " decades")


def _slope(estimate: Estimate) -> str:
    return "slope " + estimate_text(estimate, lambda x: f"{x:+.2g}", NOTED)


UNITS: dict[str, Callable[[Estimate], str]] = {
    "difference": difference_text,
    "ratio": ratio_text,
    "decades": _decades,
    "slope": _slope,
    "share": percent_text,
}
"""How an estimate reads, by :attr:`Verdict.unit`."""


def quantity_text(value: float | None) -> str:
    """A large number to three digits: ``131,712`` or ``1.60e12``; a dash for none."""
    if value is None or math.isnan(value):
        return "-"
    if value < 1e9:
        return f"{value:,.0f}"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def seconds_text(value: float | None) -> str:
    """``90 s`` or ``12 min`` or ``3.4 h``; a dash for none."""
    if value is None or math.isnan(value):
        return "-"
    if value < 120:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


def listed(parts: Sequence[str]) -> str:
    """``a, b and c``."""
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else "".join(parts)


def plural(count: int, noun: str) -> str:
    """``1 run``, ``2 runs`` or ``10,000 runs``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
