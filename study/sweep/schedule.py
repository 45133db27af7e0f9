"""What is left to do, from plan, records and claims; the one place where a plan grows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from study.plan.experiment import Plan, PlannedRun, from_json, to_json
from study.plan.select import Selection, grow
from study.records.record import Record
from study.records.store import ExperimentStore
from study.sweep.claims import Claims


@dataclass(frozen=True, kw_only=True)
class State:
    """A sweep at one moment."""

    plan: Plan
    records: dict[str, Record]
    """Published records of planned runs, by run id."""
    given_up: set[str] = field(default_factory=set)
    """Runs without a record whose retries are spent."""
    alone: set[str] = field(default_factory=set)
    """Runs that were in a pack when it died: each is tried again in a process of its own."""

    def only(self, wanted: Collection[str] | None) -> State:
        """The part of the sweep that concerns the ``wanted`` run ids; all of it for None."""
        if wanted is None:
            return self
        runs = [run for run in self.plan.runs if run.run_id in wanted]
        arms = {run.arm: self.plan.arms[run.arm] for run in runs}
        return State(
            plan=replace(self.plan, runs=runs, arms=arms),
            records={k: r for k, r in self.records.items() if k in wanted},
            given_up=self.given_up & set(wanted),
            alone=self.alone & set(wanted),
        )

    @property
    def open_runs(self) -> list[PlannedRun]:
        """Planned runs that neither have a record nor are given up, in plan order."""
        done = self.records.keys() | self.given_up
        return [run for run in self.plan.runs if run.run_id not in done]


def read_state(store: ExperimentStore) -> State:
    """Plan and records of an experiment, nothing written.

    Raises:
        ValueError: if the directory holds no plan.
    """
    data = store.read_plan()
    if data is None:
        raise ValueError(f"{store.path} is not an experiment: it has no plan.json")
    plan = from_json(data)
    records = published(store, plan.runs)
    tries = {
        run.run_id: store.attempts(run.arm, run.run_id)
        for run in plan.runs
        if run.run_id not in records
    }
    return State(
        plan=plan,
        records=records,
        given_up={run_id for run_id, made in tries.items() if spent(made) > plan.max_retries},
        alone={run_id for run_id, made in tries.items() if any(t.get("pack", 1) > 1 for t in made)},
    )


def published(store: ExperimentStore, runs: Iterable[PlannedRun]) -> dict[str, Record]:
    """Records of those of ``runs`` that have one, by run id."""
    found = {run.run_id: store.record(run.arm, run.run_id) for run in runs}
    return {run_id: record for run_id, record in found.items() if record is not None}


def spent(attempts: Iterable[Mapping[str, Any]]) -> int:
    """Failed attempts that the run itself is to blame for."""
    return sum(1 for attempt in attempts if attempt["spent"])


def refresh(store: ExperimentStore, claims: Claims) -> State:
    """Bring storage and plan in line with the records, and put every open run up for claim.

    Any worker may do this at any time: ids make it idempotent, the store's lock makes it safe.
    """
    with store.lock():
        # Claims before records: a run that ends in between counts as held, never as missing.
        held = claims.live()
        state = read_state(store)
        claims.settle(state.records)
        state = _grown(store, state)
        for run in state.open_runs:
            if run.run_id not in held:
                attempt = len(store.attempts(run.arm, run.run_id)) + 1
                claims.enqueue(run, state.plan.arms[run.arm], attempt)
    return state


def _grown(store: ExperimentStore, state: State) -> State:
    selections = {arm: Selection(**data) for arm, data in store.read_selections().items()}
    plan, fresh = grow(state.plan, state.records, selections)
    for selection in fresh:
        store.write_selection(selection.arm, asdict(selection))
    if plan == state.plan:
        return state
    store.write_plan(to_json(plan))
    # A run that joins the plan may have a record already, from an experiment that grew.
    joined = published(store, plan.runs[len(state.plan.runs) :])
    return replace(state, plan=plan, records=state.records | joined)
