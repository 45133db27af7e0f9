"""Everything that is said of two experiments, as one value: tables and JSON are made of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from analysis.claims.comparison import unfinished
from analysis.comparing import text
from analysis.comparing.differences import (
    SettingDifference,
    origin_differences,
    setting_differences,
)
from analysis.comparing.facts import arm_facts
from analysis.comparing.matching import Matching, match
from analysis.comparing.notes import notes
from analysis.comparing.rows import ArmRow, arm_row
from analysis.comparing.side import Side
from analysis.comparing.units import Units, compared_units
from analysis.comparing.verdicts import FACTOR, GAP, RATE, RATIO, CarryOver, Judged, judge
from analysis.estimates.plateau import shared_fraction
from analysis.estimates.search import search_summary
from analysis.reading.sweep import Sweep


@dataclass(frozen=True)
class ExperimentComparison:
    """Two experiments side by side."""

    a: Sweep
    b: Sweep
    settings: tuple[SettingDifference, ...]
    origins: tuple[SettingDifference, ...]
    matching: Matching
    fraction: float
    """Share of the rise below the top at which a plateau ends, the same for every arm."""
    units: Units
    rows: tuple[ArmRow, ...]
    verdicts: tuple[CarryOver, ...]
    notes: tuple[str, ...]


def compare_experiments(a: Sweep, b: Sweep) -> ExperimentComparison:
    """Match the arms of two experiments and compare them.

    Args:
        a: The first experiment, finished or not, ours or imported.
        b: The second.

    Raises:
        ValueError: if both are one directory or hold the same runs, or no arm matches.
    """
    shared = _shared_runs(a, b)
    matching = match(arm_facts(a), arm_facts(b))
    if not matching.pairs:
        raise ValueError(_no_common_arm(matching))
    first, second = Side(a, search_summary(a)), Side(b, search_summary(b))
    fraction = _shared_threshold(first, second, matching)
    units = compared_units(a, b, matching.pairs)
    rows = tuple(arm_row(first, second, pair, fraction, units) for pair in matching.pairs)
    return ExperimentComparison(
        a=a,
        b=b,
        settings=setting_differences(a, b, matching.pairs),
        origins=origin_differences(a, b),
        matching=matching,
        fraction=fraction,
        units=units,
        rows=rows,
        verdicts=tuple(_verdicts(rows, _no_verdicts(a, b, shared))),
        notes=tuple(notes(a, b, rows, shared)),
    )


def _shared_threshold(a: Side, b: Side, matching: Matching) -> float:
    """The plateau fraction f of every number, over the arms that are compared only."""
    found = (
        side.search.curves.get(name)
        for pair in matching.pairs
        for side, name in ((a, pair.a.name), (b, pair.b.name))
    )
    return shared_fraction([curve for curve in found if curve is not None])


def _verdicts(rows: tuple[ArmRow, ...], obstacle: str) -> list[CarryOver]:
    """Every verdict with a stated margin: on LR*, on its ratio to FullFT's, and on the gap."""
    factor = math.log10(FACTOR), f"a factor of {FACTOR:g}"
    rates = [Judged(r.pair.label, r.rate.between, *factor) for r in rows]
    ratios = [Judged(r.pair.label, r.over_full.between, *factor) for r in rows if r.over_full]
    gaps = [
        Judged(
            r.pair.label,
            r.gap.between,
            r.gap_margin,
            "" if r.gap_margin is None else f"±{r.gap_margin:.3f}",
        )
        for r in rows
        if r.gap
    ]
    questions = ((RATE, rates), (RATIO, ratios), (GAP, gaps))
    return [v for question, tested in questions for v in judge(question, tested, obstacle)]


def _no_verdicts(a: Sweep, b: Sweep, shared: int) -> str:
    """Why nothing is decided; empty if nothing stands in the way."""
    if shared:
        return f"{shared} runs are in both experiments, so that A and B are not independent"
    for sweep, side in ((a, "A"), (b, "B")):
        if not sweep.is_experiment:
            return f"{side} is no declared experiment: it is compared without verdicts"
        if unfinished(sweep) is not None:
            return f"{side} is unfinished, {len(sweep.runs)} of {sweep.expected} runs"
    return ""


def _shared_runs(a: Sweep, b: Sweep) -> int:
    """Runs that are in both with one result; two names of one experiment are refused.

    The same run at another time may differ, and two runs may score the same by chance: only where
    most runs of equal ids agree are they taken for the same ones.
    """
    if _place(a) == _place(b):
        raise ValueError(f"A and B are the same experiment, {a.origin}: name two of them")
    keys = ["run_id", "learning_rate", "seed"]
    common = a.runs[[*keys, "score_final"]].merge(b.runs[[*keys, "score_final"]], on=keys)
    same = int((common["score_final_x"] == common["score_final_y"]).sum())
    if 0 < same == len(a.runs) == len(b.runs):
        raise ValueError(
            f"{a.origin} and {b.origin} hold the same {same} runs: a copy is no second experiment"
        )
    return same if 2 * same > len(common) else 0


def _place(sweep: Sweep) -> str:
    return sweep.origin if sweep.path is None else str(sweep.path.resolve())


def _no_common_arm(matching: Matching) -> str:
    first, second = (
        text.few([facts.arm.description for facts in side]) or "none"
        for side in (matching.only_a, matching.only_b)
    )
    rule = "arms match by method, rank, target modules and batch"
    if matching.ambiguous:
        return (
            f"no arm has a single partner: {rule}, and {text.few(matching.ambiguous[0])} are alike"
        )
    return f"no common arm: {rule}; A has {first}, B has {second}"
