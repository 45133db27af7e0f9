"""From search records to the report phase: which learning rate each arm reports at."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from study.plan.arms import extended
from study.plan.experiment import Plan, with_cells
from study.records.record import Record


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The learning rate an arm reports at; written once, to ``selection/<arm>.json``."""

    arm: str
    learning_rate: float
    mean_score: float
    edge: str | None
    """``low`` or ``high`` if the best rate is the first or last of the grid."""
    n_seeds: int
    means: dict[str, float]
    """Mean search score by learning rate (as ``%g``)."""


def select(plan: Plan, arm: str, records: Mapping[str, Record]) -> Selection | None:
    """The grid rate of best mean search score (ties: the lower), once every cell has a record.

    A grid rate, never a fitted vertex. A cell without signal has no part in its rate's mean; a rate
    that early stopping ended on any seed does not compete, since its other seeds' mean would be one
    over fewer seeds. Returns None while cells are missing or when no rate has a score.
    """
    found = competing(plan, arm, records)
    if found is None or not found:
        return None
    means = {rate: statistics.fmean(values) for rate, values in found.items()}
    best = min(means, key=lambda rate: (-means[rate], rate))
    return Selection(
        arm=arm,
        learning_rate=best,
        mean_score=means[best],
        edge=_edge(best, sorted({run.learning_rate for run in plan.cells(arm, "search")})),
        n_seeds=len(found[best]),
        means={f"{rate:g}": mean for rate, mean in sorted(means.items())},
    )


def competing(
    plan: Plan, arm: str, records: Mapping[str, Record]
) -> dict[float, list[float]] | None:
    """Search scores by learning rate, of the rates that compete; None while cells are missing."""
    if not searched(plan, arm, records):
        return None
    cells = plan.cells(arm, "search")
    scores: dict[float, list[float]] = {}
    for run in cells:
        score = records[run.run_id].score_final
        if score is not None:
            scores.setdefault(run.learning_rate, []).append(score)
    stopped = {r.learning_rate for r in cells if records[r.run_id].status == "pruned"}
    return {rate: values for rate, values in scores.items() if rate not in stopped}


def searched(plan: Plan, arm: str, records: Mapping[str, Record]) -> bool:
    """Whether every search cell of the arm has a record."""
    cells = plan.cells(arm, "search")
    return bool(cells) and all(run.run_id in records for run in cells)


def _edge(rate: float, grid: list[float]) -> str | None:
    if len(grid) == 1:
        return None
    return {grid[0]: "low", grid[-1]: "high"}.get(rate)


def grow(
    plan: Plan, records: Mapping[str, Record], selections: Mapping[str, Selection]
) -> tuple[Plan, list[Selection]]:
    """The next plan: grids extended past an edge, or report runs of arms that are decided.

    Returns:
        The grown plan and the selections that are new and to be written.
    """
    grown = extension(plan, records, selections)
    return (grown, []) if grown is not None else reporting(plan, records, selections)


def reporting(
    plan: Plan, records: Mapping[str, Record], selections: Mapping[str, Selection]
) -> tuple[Plan, list[Selection]]:
    """The plan with the report runs of arms that are decided, and the selections that are new."""
    if plan.experiment.kind != "experiment" or not plan.experiment.seeds.report:
        return plan, []
    fresh = _fresh(plan, records, selections)
    decided = {**selections, **fresh}
    rates = {arm: [choice.learning_rate] for arm, choice in decided.items()}
    return with_cells(plan, "report", rates), list(fresh.values())


def extension(
    plan: Plan, records: Mapping[str, Record], selections: Mapping[str, Selection]
) -> Plan | None:
    """The plan with its grids continued past an edge, or as it is while that is undecided.

    Returns:
        None once there is nothing to extend.
    """
    if not plan.experiment.extend or not plan.experiment.seeds.report:
        return None
    side = _side_to_extend(plan, _fresh(plan, records, selections))
    if not all(searched(plan, arm, records) for arm in plan.arms):
        return plan  # an edge anywhere extends all grids, so wait for every arm
    return _extended(plan, side) if side else None


def _fresh(
    plan: Plan, records: Mapping[str, Record], selections: Mapping[str, Selection]
) -> dict[str, Selection]:
    """What arms without a selection would select now, by arm."""
    return {
        arm: choice
        for arm in plan.arms
        if arm not in selections and (choice := select(plan, arm, records)) is not None
    }


def _side_to_extend(plan: Plan, choices: Mapping[str, Selection]) -> str | None:
    sides = {choice.edge for choice in choices.values() if choice.edge}
    return next((s for s in ("low", "high") if s in sides and s not in plan.extended), None)


def _extended(plan: Plan, side: str) -> Plan:
    arms = {name: extended(arm, [side], plan.experiment.extend) for name, arm in plan.arms.items()}
    plan = dataclasses.replace(plan, arms=arms, extended=[*plan.extended, side])
    return with_cells(plan, "search", {name: arm.learning_rates for name, arm in arms.items()})
