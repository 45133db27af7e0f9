"""What is left to do, from plan, records and claims; the one place where a plan grows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from study.plan.experiment import Plan, PlannedRun, from_json, to_json
from study.plan.limits import Limits
from study.plan.select import Selection
from study.records.record import Record
from study.records.store import ExperimentStore
from study.sweep.claims.claims import Claims
from study.sweep.modes.search import grow


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
    plan = read_plan(store)
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


def read_plan(store: ExperimentStore) -> Plan:
    """The plan of an experiment.

    Raises:
        ValueError: if the directory holds no plan.
    """
    data = store.read_plan()
    if data is None:
        raise ValueError(f"{store.path} is not an experiment: it has no plan.json")
    return from_json(data)


def published(store: ExperimentStore, runs: Iterable[PlannedRun]) -> dict[str, Record]:
    """Records of those of ``runs`` that have one, by run id."""
    found = {run.run_id: store.record(run.arm, run.run_id) for run in runs}
    return {run_id: record for run_id, record in found.items() if record is not None}


def spent(attempts: Iterable[Mapping[str, Any]]) -> int:
    """Failed attempts that the run itself is to blame for."""
    return sum(1 for attempt in attempts if attempt["spent"])


class Board:
    """What a worker knows of its sweep, kept up to date at a cost that does not grow with it.

    Open runs are looked at in plan order and only as far as somebody asks for free ones, so a
    claim costs the runs that are held and those that ended since, whatever the plan's length.
    """

    def __init__(
        self,
        store: ExperimentStore,
        claims: Claims,
        wanted: Collection[str] | None = None,
        limits: Limits | None = None,
    ) -> None:
        """Reads plan and records.

        Args:
            store: The experiment.
            claims: Its storage.
            wanted: The only run ids that are worked on; None: all.
            limits: Counts the records; None: nothing is limited.

        Raises:
            ValueError: if the directory holds no plan.
        """
        self.store, self.claims = store, claims
        self.records: dict[str, Record] = {}
        self.alone: set[str] = set()
        """Runs that were in a pack when it died: each is tried again in a process of its own."""
        self._given_up: set[str] = set()
        self._limits = limits
        self._wanted = None if wanted is None else set(wanted)
        self._grow_due = True
        self._load()

    def _load(self) -> None:
        """Read the plan; runs that were given up may have been reopened."""
        self._given_up.clear()
        self._stamp = self.store.plan_stamp()
        self.plan = read_plan(self.store)
        self._open = {
            run.run_id: run
            for run in self.plan.runs
            if run.run_id not in self.records
            and (self._wanted is None or run.run_id in self._wanted)
        }
        self._searching = Counter(r.arm for r in self._open.values() if r.phase == "search")

    def refresh(self) -> None:
        """Take in what others have added to the plan, and grow it if it is time."""
        if self.store.plan_stamp() != self._stamp:
            self._load()
        if self._grow_due:
            self.grow()

    def grow(self, room: int = 0) -> None:
        """Let the search mode add runs; any worker may, ids make it idempotent.

        Args:
            room: Runs that this worker could begin beyond those that wait.
        """
        with self.store.lock():
            if self.store.plan_stamp() != self._stamp:
                self._load()
            self.take_stock()
            self._grow_due = False
            selections = self.store.read_selections()
            known = {arm: Selection(**data) for arm, data in selections.items()}
            plan, fresh = grow(self.plan, self.records, known, room, self._given_up)
            for selection in fresh:
                self.store.write_selection(selection.arm, asdict(selection))
            if plan != self.plan:
                write_plan(self.store, self.claims, plan)
                self._load()

    def take_stock(self, held: Collection[str] = ()) -> None:
        """Look at the open runs that were begun: all records published by now are known then.

        Args:
            held: Runs that need no look, since somebody holds them.
        """
        for arm in self.plan.arms:
            begun = (run_id for run_id in self.store.begun(arm) if run_id not in held)
            for run in self.still_open(begun):
                self.is_open(run)

    @property
    def open_count(self) -> int:
        """Runs without a result as far as this worker knows, those included that others hold."""
        return len(self._open)

    @property
    def open_runs(self) -> list[PlannedRun]:
        """These runs, in plan order."""
        return list(self._open.values())

    def still_open(self, run_ids: Iterable[str]) -> list[PlannedRun]:
        """Those of these runs that have no result as far as this worker knows."""
        return [self._open[run_id] for run_id in run_ids if run_id in self._open]

    def is_open(self, run: PlannedRun) -> bool:
        """Whether a run has neither a record nor spent its retries, by a look at its directory."""
        record = self.store.record(run.arm, run.run_id)
        if record is not None:
            self.ended(run, record)
        return record is None and not self._is_given_up(run)

    def ended(self, run: PlannedRun, record: Record) -> None:
        """Take in the record of a run."""
        if self._limits is not None and run.run_id not in self.records:
            self._limits.add(record)
        self.records[run.run_id] = record
        self._close(run)

    def _is_given_up(self, run: PlannedRun) -> bool:
        tries = self.store.attempts(run.arm, run.run_id)
        if any(attempt.get("pack", 1) > 1 for attempt in tries):
            self.alone.add(run.run_id)
        if spent(tries) <= self.plan.max_retries:
            return False
        self._given_up.add(run.run_id)
        self._close(run)
        return True

    def _close(self, run: PlannedRun) -> None:
        if self._open.pop(run.run_id, None) is not None and run.phase == "search":
            self._searching[run.arm] -= 1
            self._grow_due |= not self._searching[run.arm]


def write_plan(store: ExperimentStore, claims: Claims, plan: Plan) -> None:
    """Write a plan to its directory and to the storage; call under the store's lock."""
    content = to_json(plan)
    store.write_plan(content)
    claims.studies.describe(plan, content, store.read_selections())
