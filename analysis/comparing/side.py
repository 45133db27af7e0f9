"""One experiment of a comparison: what it says of each arm, alone and against its own FullFT."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from analysis.claims.comparison import Comparison, comparisons, exploratory, unfinished
from analysis.claims.difference import ScoreDifference, measure
from analysis.comparing.numbers import Quantity, from_contrast, gravest, nothing
from analysis.comparing.rates import rate_ratio
from analysis.estimates.optimum import optimum
from analysis.estimates.search import SearchSummary
from analysis.reading.sweep import Sweep


@dataclass(frozen=True)
class Side:
    """One experiment with what is computed of it once."""

    sweep: Sweep
    search: SearchSummary

    @cached_property
    def pairs(self) -> dict[str, Comparison]:
        """Its LoRA arms, by name, with the FullFT arms they are compared to."""
        return {pair.arm.name: pair for pair in comparisons(self.sweep)}

    def best_rate(self, arm: str, fraction: float) -> Quantity:
        """LR* of an arm, or a bound where its plateau leaves the grid."""
        curve = self.search.curves.get(arm)
        if curve is None:
            return nothing(no_curve(self.sweep))
        found = optimum(curve, fraction)
        reason = "" if found.lr.interval else gravest(found.flags) or "every seed gave the same LR*"
        if not math.isfinite(found.lr.point):
            return nothing(reason)
        bounds = {"edge_high": "at least", "edge_low": "at most"}
        named = [bound for flag, bound in bounds.items() if flag in found.flags]
        return Quantity(found.lr, reason, bound=named[0] if len(named) == 1 else "")

    def over_full(self, arm: str, fraction: float) -> Quantity:
        """LR* of a LoRA arm over that of the FullFT arm of its own experiment."""
        pair = self.pairs.get(arm)
        if pair is None or pair.baseline is None:
            return nothing(no_baseline(self.sweep))
        if pair.obstacle is not None and pair.obstacle.flag != "unfinished":
            return nothing(pair.obstacle.reason.rstrip("."))
        lora, full = (self.search.curves.get(name) for name in pair.names)
        return rate_ratio(full, lora, fraction, (no_curve(self.sweep),) * 2).centre

    def gap(self, arm: str) -> tuple[Quantity, float | None]:
        """Score of a LoRA arm minus FullFT's, and the experiment's margin where it has one."""
        pair = self.pairs.get(arm)
        if pair is None:
            return nothing(no_baseline(self.sweep)), None
        found = measure(self.sweep, pair, self.search)
        margin = found.margin if isinstance(found, ScoreDifference) else None
        if margin is None:  # a gap without anything to judge it by is a gap still
            found = measure(self.sweep, pair, self.search, equality=False)
        if isinstance(found, ScoreDifference):
            return from_contrast(found.contrast), margin
        return nothing(found.reason.rstrip(".")), None


def no_baseline(sweep: Sweep) -> str:
    """Why an arm is compared with no FullFT arm."""
    stopped = exploratory(sweep)
    if stopped is not None:
        return stopped.reason.rstrip(".")
    return "no FullFT arm that differs in the method alone"


def no_curve(sweep: Sweep) -> str:
    """Why an arm has no learning-rate curve."""
    if sweep.selects_only:
        return "the search only selects, so curves are not estimated"
    if unfinished(sweep) is not None:
        return "unfinished: its search lacks runs"
    return "its search lacks scores at some learning rate and seed"
