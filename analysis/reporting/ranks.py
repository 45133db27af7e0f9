"""Best learning rates of arms that differ in rank alone, over that of the lowest rank from 4 up.

Below rank 4 published sweeps find smaller optima; from 4 up the claim is that they hardly move.
"""

from __future__ import annotations

from dataclasses import dataclass

from analysis.claims.groups import differing, matched, value
from analysis.estimates.optimum import LrRatio, lr_ratio
from analysis.estimates.search import SearchSummary
from analysis.reading.arms import Arm
from analysis.reading.sweep import Sweep
from analysis.reporting.glossary import meaning

LOWEST_RANK = 4
RANK = "method.rank"
FATAL = ("flat", "edge_low", "edge_high", "few_points", "few_seeds")
"""Flags that leave a ratio without interval, the gravest first."""


@dataclass(frozen=True)
class RankRatio:
    """One arm's best learning rate over that of the reference of its group."""

    group: str
    """What the arms of the group have in common and others have not; empty for a single group."""
    arm: Arm
    reference: Arm
    ratio: LrRatio | None
    """None where an arm has no curve."""

    @property
    def obstacle(self) -> str:
        """Why there is no interval, in words; empty if there is one."""
        if self.ratio is None:
            return "a seed lacks a score at some learning rate"
        if self.ratio.centre.interval is not None:
            return ""
        found = [flag for flag in FATAL if flag in self.ratio.flags]
        return meaning(found[0]) if found else "see notes"


def rank_ratios(sweep: Sweep, search: SearchSummary) -> list[RankRatio]:
    """Every rank above the lowest from 4 up, group by group; empty if no group has two such ranks.

    A search that only selects has no curves, hence no ratios.
    """
    if sweep.selects_only:
        return []
    groups = [
        group
        for group in matched(sweep, (RANK,), among=lambda arm: (arm.rank or 0) >= LOWEST_RANK)
        if len({arm.rank for arm in group}) > 1
    ]
    names = _names(sweep, groups)
    return [
        RankRatio(name, arm, mates[0], _ratio(search, arm, mates[0]))
        for mates, name in zip(groups, names, strict=True)
        for arm in mates[1:]
    ]


def _names(sweep: Sweep, groups: list[tuple[Arm, ...]]) -> list[str]:
    """The settings in which a group differs from others, as text."""
    keys = differing(sweep, [group[0] for group in groups])
    # Their lowest ranks may differ too, which says nothing about the group.
    shown = [key for key in keys if key != RANK]
    return [", ".join(str(value(sweep, group[0], key)) for key in shown) for group in groups]


def _ratio(search: SearchSummary, arm: Arm, reference: Arm) -> LrRatio | None:
    if not {arm.name, reference.name} <= set(search.curves):
        return None
    names = (arm.name, reference.name)
    own, other = (search.curves[name] for name in names)
    return lr_ratio(own, other, search.fraction_of(*names))
