"""Passes over an experiment: opens, follows and closes W&B runs until they hold what the store has.

A live run is thrown away when its attempt is, and is checked against the published rows before it
counts; whatever a killed mirror left open is removed by the next one. So at any moment the complete
files hold each run once.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from study.plan.experiment import PlannedRun
from study.records.record import Record
from study.records.store import ExperimentStore
from study.sweep.schedule import State, read_state
from study.sweep.work.badge import badges
from study.tracking.marks import Mark, Marks
from study.tracking.runlog import RunLog

LIVE_RUNS = 32
"""Runs that are followed while they train; more are mirrored when they end."""


class Mirror:
    """One process's hand in an experiment's W&B files; it holds the mirror's lock."""

    def __init__(self, store: ExperimentStore, project: str) -> None:
        self.store, self.project = store, project
        self.marks = Marks(store)
        self.live: dict[str, RunLog] = {}
        self.failed: dict[str, str] = {}
        """Why runs could not be mirrored in the latest pass; the next one tries again."""

    def step(self, *, live: bool) -> int:
        """Bring W&B's files in line with the store, those of training runs too if ``live``.

        Returns:
            Number of runs that became complete.
        """
        state, self.failed, fresh = read_state(self.store), {}, 0
        for run in state.plan.runs:
            record = state.records.get(run.run_id)
            if record is not None and run.run_id not in self.marks.by_run:
                fresh += self._guarded(run, self._complete, state, record)
        training = self._training(state) if live else {}
        for run_id in [*self.live]:
            if run_id not in training:
                self._drop(run_id)
        for run_id, metrics in training.items():
            run = state.plan.run(run_id)
            self._guarded(run, self._follow, state, metrics)
        return fresh

    def close(self) -> None:
        """Throw away what is still open."""
        for run_id in [*self.live]:
            self._drop(run_id)

    def _guarded(self, run: PlannedRun, act: Callable[..., None], *arguments: object) -> bool:
        """Whether it went well; one run's failure leaves the others alone."""
        try:
            act(run, *arguments)
        except Exception as error:  # W&B's own errors have no common type
            self.failed[run.run_id] = f"{type(error).__name__}: {error}"
            self._drop(run.run_id)
            return False
        return True

    def _complete(self, run: PlannedRun, state: State, record: Record) -> None:
        metrics = self.store.run_dir(run.arm, run.run_id) / "metrics.jsonl"
        if run.run_id in self.live and not self.live[run.run_id].began(metrics):
            self._drop(run.run_id)  # another attempt was published
        log = self.live.get(run.run_id) or self._open(run, state)
        log.follow(metrics)
        log.end(record)
        del self.live[run.run_id]
        self.marks.add(Mark(run_id=run.run_id, rows=log.rows, directory=log.directory.name))

    def _follow(self, run: PlannedRun, state: State, metrics: Path) -> None:
        if run.run_id in self.live and self.live[run.run_id].source != metrics:
            self._drop(run.run_id)  # another attempt began
        (self.live.get(run.run_id) or self._open(run, state)).follow(metrics)

    def _open(self, run: PlannedRun, state: State) -> RunLog:
        self.live[run.run_id] = RunLog(self.store, state.plan, run, self.project)
        return self.live[run.run_id]

    def _drop(self, run_id: str) -> None:
        if run_id in self.live:
            self.live.pop(run_id).discard()

    def _training(self, state: State) -> dict[str, Path]:
        """Metrics of runs that living workers train and that have no record, at most so many."""
        shown = [row for badge in badges(self.store) for row in badge["runs"]]
        planned = {run.run_id: run for run in state.open_runs}
        found: dict[str, Path] = {}
        for row in shown:
            run = planned.get(row["run_id"])
            metrics = None if run is None else self._latest(run)
            if run is not None and metrics is not None and len(found) < LIVE_RUNS:
                found[run.run_id] = metrics
        return found

    def _latest(self, run: PlannedRun) -> Path | None:
        attempts = self.store.run_dir(run.arm, run.run_id) / "attempts"
        numbers = [int(p.name) for p in attempts.glob("*") if p.name.isdigit()]
        metrics = attempts / str(max(numbers, default=0)) / "metrics.jsonl"
        return metrics if metrics.exists() else None
