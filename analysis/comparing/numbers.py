"""Numbers that carry their interval or the reason why they have none."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from analysis.claims.pairwise import linear
from analysis.estimates.stats import MIN_SEEDS, Contrast, Estimate

REASONS = {
    "flat": "the scores rise too little over the untrained model for their noise",
    "edge_high": "the plateau reaches the high end of the grid: extend it upwards",
    "edge_low": "the plateau reaches the low end of the grid: extend it downwards",
    "few_points": "too few learning rates, or too coarse a grid beside the plateau",
    "few_seeds": f"fewer than {MIN_SEEDS} search seeds",
}
"""Why a learning rate has no interval, the gravest first."""


@dataclass(frozen=True)
class Quantity:
    """A number that is printed: an estimate, or the reason why there is none or no interval."""

    estimate: Estimate | None
    reason: str = ""
    """Why there is no estimate, or none with an interval; empty if there is one."""
    contrast: Contrast | None = None
    """What the estimate came from, where it can be tested or subtracted (decades for rates)."""
    bound: str = ""
    """``at least`` or ``at most`` where the estimate is a bound."""

    @property
    def point(self) -> float:
        """The number; NaN where there is none."""
        return math.nan if self.estimate is None else self.estimate.point

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval, or None with a :attr:`reason`."""
        return None if self.estimate is None else self.estimate.interval


def nothing(reason: str) -> Quantity:
    """No number, for this reason."""
    return Quantity(None, reason)


def from_contrast(contrast: Contrast, *, decades: bool = False) -> Quantity:
    """A contrast as it is printed.

    Args:
        contrast: The number with its spread.
        decades: Whether it is the log10 of what is printed.
    """
    estimate = linear(contrast) if decades else contrast.estimate()
    return Quantity(estimate, _no_interval(estimate), contrast)


def _no_interval(estimate: Estimate) -> str:
    if estimate.interval is not None:
        return ""
    if estimate.n < MIN_SEEDS:
        return f"fewer than {MIN_SEEDS} seeds"
    return "every seed gave the same value, so the spread is unknown"


def independent_difference(second: Contrast, first: Contrast) -> Contrast:
    """``second - first`` of two numbers that share no run, with Satterthwaite's df (1946).

    Two ratios each made of two arms come out as Welch's test over four arms does: Satterthwaite's
    formula nests. Grid terms are of different grids and add in quadrature.
    """
    variances = second.standard_error**2, first.standard_error**2
    degrees = second.df, first.df
    total = sum(variances)
    df = min(degrees)
    if total > 0 and df > 0:
        parts = sum(v**2 / d for v, d in zip(variances, degrees, strict=True))
        df = float(np.clip(total**2 / parts, df, sum(degrees)))
    return Contrast(
        point=second.point - first.point,
        standard_error=math.sqrt(total),
        df=df,
        n=min(second.n, first.n),
        grid_term=math.hypot(second.grid_term, first.grid_term),
    )


def lacking(first: Quantity, second: Quantity) -> str:
    """Why nothing, or no interval, lies between two numbers without a contrast on some side."""
    sides = (("A", first), ("B", second))
    reasons = {side: q.reason for side, q in sides if q.contrast is None}
    if len(reasons) == 2 and len(set(reasons.values())) == 1:
        return f"A and B: {first.reason}"
    return "; ".join(f"{side}: {reason}" for side, reason in reasons.items())


def gravest(flags: tuple[str, ...]) -> str:
    """Why a learning rate with these flags has no interval; empty if nothing forbids one."""
    if {"edge_low", "edge_high"} <= set(flags) and "flat" not in flags:
        return "the plateau reaches both ends of the grid: extend it on both sides"
    return next((reason for flag, reason in REASONS.items() if flag in flags), "")
