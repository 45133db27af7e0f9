"""How a plan goes on: the search mode of an experiment decides which runs join it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from study.plan import ablate, best, refine, select
from study.plan.experiment import Plan
from study.plan.select import Selection
from study.records.record import Record
from study.sweep.modes.sampling import suggest


def grow(
    plan: Plan,
    records: Mapping[str, Record],
    selections: Mapping[str, Selection],
    room: int = 0,
    given_up: Collection[str] = (),
) -> tuple[Plan, list[Selection]]:
    """The next plan, from what is known.

    Any worker may ask at any time, under the store's lock: equal arguments give equal plans.

    Args:
        plan: The plan so far.
        records: Published records of its runs, by run id.
        selections: Selections that have been written, by arm.
        room: Runs that the asking worker could take beyond those that wait already.
        given_up: Runs whose retries are spent. A joint search goes on without them; elsewhere an
            arm waits for each of its runs.

    Returns:
        The grown plan and the selections that are new and to be written.
    """
    if plan.experiment.ablate is not None:
        return ablate.grow(plan, records, selections)
    if plan.experiment.refine is not None:
        return refine.grow(plan, records, selections)
    if plan.experiment.best is not None:
        return _grow_jointly(plan, records, room, given_up), []
    return select.grow(plan, records, selections)


def _grow_jointly(
    plan: Plan, records: Mapping[str, Record], room: int, given_up: Collection[str]
) -> Plan:
    plan = best.begin(plan)
    count = best.wanted(plan, records, room, given_up)
    if count:
        plan = best.with_trials(plan, suggest(plan, records, count, given_up))
    return best.reporting(plan, records, given_up)


def to_come(plan: Plan, records: Mapping[str, Record]) -> int:
    """Runs that are not planned yet but will be, if every arm or finalist has a score."""
    if plan.experiment.kind != "experiment":
        return 0
    if plan.experiment.ablate is not None:
        return ablate.to_come(plan, records)
    if plan.experiment.best is not None:
        return sum(best.to_come(plan, records.keys()))
    seeds = plan.experiment.seeds
    silent = [arm for arm in plan.arms if not plan.cells(arm, "report")]
    further = sum(refine.to_come(plan).values())
    return further * len(seeds.search) + len(silent) * len(seeds.report)
