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
    if not searched(plan, arm, records):
        return None
    cells = plan.cells(arm, "search")
    scores: dict[float, list[float]] = {}
    for run in cells:
        score = records[run.run_id].score_final
        scores.setdefault(run.learning_rate, [])
        if score is not None:
            scores[run.learning_rate].append(score)
    stopped = {r.learning_rate for r in cells if records[r.run_id].status == "pruned"}
    complete = {rate: values for rate, values in scores.items() if values and rate not in stopped}
    if not complete:
        return None
    means = {rate: statistics.fmean(values) for rate, values in complete.items()}
    best = min(means, key=lambda rate: (-means[rate], rate))
    return Selection(
        arm=arm,
        learning_rate=best,
        mean_score=means[best],
        edge=_edge(best, sorted(scores)),
        n_seeds=len(complete[best]),
        means={f"{rate:g}": mean for rate, mean in sorted(means.items())},
    )


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
    if plan.experiment.kind != "experiment" or not plan.experiment.seeds.report:
        return plan, []
    fresh = {
        arm: choice
        for arm in plan.arms
        if arm not in selections and (choice := select(plan, arm, records)) is not None
    }
    if plan.experiment.extend:
        side = _side_to_extend(plan, fresh)
        if not all(searched(plan, arm, records) for arm in plan.arms):
            return plan, []  # an edge anywhere extends all grids, so wait for every arm
        if side:
            return _extended(plan, side), []
    decided = {**selections, **fresh}
    rates = {arm: [choice.learning_rate] for arm, choice in decided.items()}
    return with_cells(plan, "report", rates), list(fresh.values())


def _side_to_extend(plan: Plan, choices: Mapping[str, Selection]) -> str | None:
    sides = {choice.edge for choice in choices.values() if choice.edge}
    return next((s for s in ("low", "high") if s in sides and s not in plan.extended), None)


def _extended(plan: Plan, side: str) -> Plan:
    arms = {name: extended(arm, [side], plan.experiment.extend) for name, arm in plan.arms.items()}
    plan = dataclasses.replace(plan, arms=arms, extended=[*plan.extended, side])
    return with_cells(plan, "search", {name: arm.learning_rates for name, arm in arms.items()})
