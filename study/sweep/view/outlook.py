"""How far a sweep is, in numbers: read again at the cost of the runs that are still open."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from study.plan.budget import mean_seconds, run_flops
from study.plan.experiment import Plan, PlannedRun
from study.records.files import mtime_ns
from study.records.record import Record
from study.records.store import ExperimentStore
from study.sweep.modes.search import to_come
from study.sweep.schedule import State, read_plan, spent
from study.sweep.work.badge import badges

RATE_WINDOW_S = 3600.0
"""Runs per hour are counted over so long, or over the living workers' time if that is shorter."""


@dataclass(frozen=True, kw_only=True)
class Best:
    """The best mean search score of an arm so far: the best of several rates, so optimistic."""

    score: float
    learning_rate: float
    seeds: int
    """Seeds with a score at that rate."""
    rates: int
    """Rates with a score that it is the best of."""


@dataclass(frozen=True, kw_only=True)
class ArmOutlook:
    """One arm."""

    arm: str
    planned: int
    done: int
    running: int
    best: Best | None
    failed_attempts: int
    given_up: int


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """A sweep at one moment."""

    name: str
    arms: list[ArmOutlook]
    to_come: int
    """Runs that results will add to the plan."""
    workers: list[dict[str, Any]]
    """Badges of the living workers, on this machine and on others."""
    runs_per_hour: float | None
    """None where no worker lives or none has brought a result yet."""
    seconds_left: float | None
    """From the measured time of a run of each arm; None until one was measured, or without
    workers."""

    @property
    def done(self) -> int:
        """Runs with a record."""
        return sum(arm.done for arm in self.arms)

    @property
    def planned(self) -> int:
        """Runs of the plan as it will be."""
        return sum(arm.planned for arm in self.arms) + self.to_come

    @property
    def open(self) -> int:
        """Planned runs that neither have a record nor are given up."""
        return sum(arm.planned - arm.done - arm.given_up for arm in self.arms)

    @property
    def over(self) -> bool:
        """Whether nothing more is to be expected; runs given up may keep others from coming."""
        return not self.open and not (self.to_come and self.workers)


class Watch:
    """Reads a sweep again and again, from anywhere that sees its directory; writes nothing."""

    def __init__(self, store: ExperimentStore, wanted: Collection[str] | None = None) -> None:
        """Reads plan and records.

        Args:
            store: The experiment.
            wanted: The only run ids that count; None: all.

        Raises:
            ValueError: if the directory holds no plan.
        """
        self._store, self._wanted = store, wanted
        self._records: dict[str, Record] = {}
        self._ended_at: dict[str, float] = {}
        self._failed: Counter[str] = Counter()
        """Failed attempts by run."""
        self._given_up: set[str] = set()
        self._stamp: tuple[int, int] | None = None
        self._plan = read_plan(store)
        self.update_s = 0.0
        """Seconds that the latest look took."""

    def look(self) -> Outlook:
        """The sweep as it is now."""
        began = time.monotonic()
        state, shown = self._state(), badges(self._store)
        outlook = self._outlook(state, shown)
        self.update_s = time.monotonic() - began
        return outlook

    def _state(self) -> State:
        stamp = self._store.plan_stamp()
        if stamp != self._stamp:
            self._stamp, self._plan = stamp, read_plan(self._store)
            self._given_up.clear()
        begun = {run_id for arm in self._plan.arms for run_id in self._store.begun(arm)}
        for run in self._plan.runs:
            if run.run_id in begun and run.run_id not in self._records:
                self._look_at(run)
        state = State(plan=self._plan, records=self._records, given_up=self._given_up)
        return state.only(self._wanted)

    def _look_at(self, run: PlannedRun) -> None:
        record = self._store.record(run.arm, run.run_id)
        if record is not None:
            self._records[run.run_id] = record
            written = mtime_ns(self._store.run_dir(run.arm, run.run_id) / "record.json")
            self._ended_at[run.run_id] = (written or 0) / 1e9
        tries = self._store.attempts(run.arm, run.run_id)
        self._failed[run.run_id] = len(tries)
        if record is None and spent(tries) > self._plan.max_retries:
            self._given_up.add(run.run_id)
        else:
            self._given_up.discard(run.run_id)

    def _outlook(self, state: State, shown: list[dict[str, Any]]) -> Outlook:
        ours = {run.run_id: run for run in state.plan.runs}
        running = [row for badge in shown for row in badge["runs"] if row["run_id"] in ours]
        future = to_come(state.plan, state.records)
        left = _seconds_left(state, running, future)
        return Outlook(
            name=state.plan.experiment.name,
            arms=self._arms(state, Counter(row["arm"] for row in running)),
            to_come=future,
            workers=shown,
            runs_per_hour=self._rate(state, shown),
            seconds_left=left / len(shown) if left is not None and shown else None,
        )

    def _arms(self, state: State, running: Mapping[str, int]) -> list[ArmOutlook]:
        planned: dict[str, list[str]] = {arm: [] for arm in state.plan.arms}
        for run in state.plan.runs:
            planned[run.arm].append(run.run_id)
        return [
            ArmOutlook(
                arm=arm,
                planned=len(ids),
                done=sum(run_id in state.records for run_id in ids),
                running=running.get(arm, 0),
                best=best_so_far([state.records[i] for i in ids if i in state.records]),
                failed_attempts=sum(self._failed[run_id] for run_id in ids),
                given_up=len(state.given_up.intersection(ids)),
            )
            for arm, ids in planned.items()
        ]

    def _rate(self, state: State, shown: list[dict[str, Any]]) -> float | None:
        if not shown:
            return None
        now = time.time()
        since = max(now - RATE_WINDOW_S, min(float(badge["started"]) for badge in shown))
        ended = sum(self._ended_at[run_id] >= since for run_id in state.records)
        # A worker's clock may be ahead of ours.
        return ended / (now - since) * 3600 if ended and now > since else None


def best_so_far(records: Collection[Record]) -> Best | None:
    """The rate of best mean search score, ties to the lower; None while no run has a score."""
    scores: dict[float, list[float]] = {}
    for record in records:
        if record.phase == "search" and record.score_final is not None:
            scores.setdefault(record.learning_rate, []).append(record.score_final)
    if not scores:
        return None
    means = {rate: statistics.fmean(values) for rate, values in scores.items()}
    rate = min(means, key=lambda r: (-means[r], r))
    return Best(score=means[rate], learning_rate=rate, seeds=len(scores[rate]), rates=len(scores))


def _seconds_left(state: State, running: list[dict[str, Any]], future: int) -> float | None:
    """Seconds for one worker: open runs at their arm's measured time, less what is done of them."""
    seconds = seconds_by_arm(state.plan, state.records)
    if not seconds:
        return None
    total = sum(seconds[run.arm] for run in state.open_runs)
    total += future * statistics.fmean(seconds.values())
    started = {row["run_id"]: row for row in running}
    for run in state.open_runs:
        row = started.get(run.run_id)
        if row is not None:
            total -= seconds[run.arm] * row["step"] / row["steps"]
    return total


def seconds_by_arm(plan: Plan, records: Mapping[str, Record]) -> dict[str, float]:
    """Seconds of a run of each arm; where none was measured, by its FLOPs from those that were.

    Empty while no run was measured.
    """
    measured = {arm: s for arm, s in mean_seconds(records).items() if arm in plan.arms}
    if not measured:
        return {}
    per_flop = sum(measured.values()) / sum(run_flops(plan.arms[arm]) for arm in measured)
    return {name: measured.get(name, per_flop * run_flops(arm)) for name, arm in plan.arms.items()}
