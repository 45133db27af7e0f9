"""Who works on what: one Optuna study per arm and phase, one trial per run and try.

Claims live in this storage, results in the store; where the two disagree the record wins. Trials
are created under the store's lock and taken by the storage's own WAITING -> RUNNING transition,
which succeeds for one worker only.
"""

from __future__ import annotations

import socket
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
import psutil
from filelock import FileLock
from optuna.distributions import FloatDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from study.plan.arms import Arm
from study.plan.experiment import PlannedRun
from study.records.record import Record
from study.records.store import ExperimentStore
from study.sweep.pruning import RatePruner

optuna.logging.set_verbosity(optuna.logging.WARNING)

LEASE_GRACE_S = 60.0
"""A lease taken on another machine counts as stale so long after its holder should have seen
progress or given up."""
RENEW_EVERY_S = 20.0


@dataclass(kw_only=True)
class Claim:
    """One worker's hold on one run."""

    run: PlannedRun
    trial_id: int
    renewed_at: float
    lost: bool = False
    """Another worker took the run over."""


Pick = Callable[[list[PlannedRun]], list[PlannedRun]]
"""Which of the waiting runs a worker takes; called under the store's lock."""


def first_of(waiting: list[PlannedRun]) -> list[PlannedRun]:
    """The run that has waited longest, if there is one."""
    return waiting[:1]


class Claims:
    """The storage's view of a plan."""

    def __init__(self, store: ExperimentStore, lease_s: float = LEASE_GRACE_S) -> None:
        self._store = store
        self._lease_s = lease_s
        repair_journal(store.journal_path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            backend = JournalFileBackend(str(store.journal_path), _KernelLock(store.journal_path))
            self._storage = JournalStorage(backend)
        self._study_ids: dict[str, int] = {}

    def enqueue(self, run: PlannedRun, arm: Arm, attempt: int) -> None:
        """Make a run available to workers. Call under the store's lock."""
        grid = FloatDistribution(arm.learning_rates[0], arm.learning_rates[-1], log=True)
        trial = optuna.trial.create_trial(
            state=TrialState.WAITING,
            params={"learning_rate": run.learning_rate},
            distributions={"learning_rate": grid},
            user_attrs={
                "run_id": run.run_id,
                "seed": run.seed,
                "phase": run.phase,
                "attempt": attempt,
            },
        )
        self._storage.create_new_trial(self._study_id(_study_name(run)), template_trial=trial)

    def take(self, runs: Sequence[PlannedRun], pick: Pick = first_of) -> list[Claim]:
        """Claim those of ``runs`` that ``pick`` chooses among the waiting ones, in their order."""
        with self._store.lock():
            waiting = self._by_run_id(TrialState.WAITING)
            chosen = pick([run for run in runs if run.run_id in waiting])
            claims = (self._take(run, waiting[run.run_id]) for run in chosen)
            return [claim for claim in claims if claim is not None]

    def _take(self, run: PlannedRun, waiting: list[FrozenTrial]) -> Claim | None:
        for trial in waiting:
            claim = Claim(run=run, trial_id=trial._trial_id, renewed_at=0.0)
            # The lease first: a worker killed in between leaves the trial waiting.
            if self.renew(claim) and self._set_state(claim.trial_id, TrialState.RUNNING):
                return claim
        return None

    def renew(self, claim: Claim) -> bool:
        """Say that the run is still worked on (cheap when called often); False if it was lost."""
        if claim.lost:
            return False
        if claim.renewed_at and time.monotonic() - claim.renewed_at < RENEW_EVERY_S:
            return True
        claim.renewed_at = time.monotonic()
        try:
            self._storage.set_trial_user_attr(claim.trial_id, "lease", _lease(self._lease_s))
        except optuna.exceptions.UpdateFinishedTrialError:
            claim.lost = True
        return not claim.lost

    def finish(self, claim: Claim, record: Record) -> None:
        """The run has a record: tell its score, or that it has none."""
        self._tell(claim.trial_id, record)

    def give_back(self, claim: Claim, status: str) -> None:
        """The attempt brought no result; the trial ends and :meth:`live` forgets the run."""
        self._set_state(claim.trial_id, TrialState.FAIL, status=status)

    def report(self, claim: Claim, step: int, accuracy: float) -> None:
        """Tell early stopping the held-out accuracy of a run after ``step`` optimizer steps."""
        try:
            self._storage.set_trial_intermediate_value(claim.trial_id, step, accuracy)
        except optuna.exceptions.UpdateFinishedTrialError:
            return  # another worker took the run over; it is stopped by that one

    def stops_early(self, claim: Claim, pruner: RatePruner) -> str | None:
        """Why ``pruner`` ends a run, after what was reported of its arm; None if it goes on."""
        name = _study_name(claim.run)
        optuna_study = optuna.load_study(study_name=name, storage=self._storage)
        return pruner.reason(optuna_study, self._storage.get_trial(claim.trial_id))

    def live(self) -> set[str]:
        """Run ids that wait or are worked on; stale claims are ended on the way."""
        alive: set[str] = set(self._by_run_id(TrialState.WAITING))
        for run_id, trials in self._by_run_id(TrialState.RUNNING).items():
            for trial in trials:
                if lease_is_fresh(trial.user_attrs["lease"]):
                    alive.add(run_id)
                else:
                    self._set_state(trial._trial_id, TrialState.FAIL, status="killed")
        return alive

    def settle(self, records: dict[str, Record]) -> None:
        """Trials whose run has a record but that do not know: the record wins."""
        for state in (TrialState.WAITING, TrialState.RUNNING):
            for run_id, trials in self._by_run_id(state).items():
                if run_id in records:
                    for trial in trials:
                        self._tell(trial._trial_id, records[run_id])

    def _tell(self, trial_id: int, record: Record) -> None:
        state = TrialState.FAIL if record.score_final is None else TrialState.COMPLETE
        if record.status == "pruned":
            state = TrialState.PRUNED
        values = None if record.score_final is None else [record.score_final]
        attributes = {"status": record.status, "status_reason": record.status_reason}
        self._set_state(trial_id, state, values, **attributes)

    def _set_state(
        self,
        trial_id: int,
        state: TrialState,
        values: list[float] | None = None,
        **attributes: str,
    ) -> bool:
        """Set attributes, then the state; False if the trial was taken or ended by others."""
        try:
            for key, value in attributes.items():
                self._storage.set_trial_user_attr(trial_id, key, value)
            return bool(self._storage.set_trial_state_values(trial_id, state, values))
        except optuna.exceptions.UpdateFinishedTrialError:
            return False

    def _by_run_id(self, state: TrialState) -> dict[str, list[FrozenTrial]]:
        found: dict[str, list[FrozenTrial]] = {}
        for optuna_study in self._storage.get_all_studies():
            trials = self._storage.get_all_trials(
                optuna_study._study_id, deepcopy=False, states=(state,)
            )
            for trial in trials:
                found.setdefault(str(trial.user_attrs["run_id"]), []).append(trial)
        return found

    def _study_id(self, name: str) -> int:
        if name not in self._study_ids:
            try:
                found = self._storage.get_study_id_from_name(name)
            except KeyError:
                found = self._storage.create_new_study([StudyDirection.MAXIMIZE], name)
            self._study_ids[name] = found
        return self._study_ids[name]


def _study_name(run: PlannedRun) -> str:
    return f"{run.arm}/{run.phase}"


class _KernelLock(JournalFileOpenLock):
    """A lock that the kernel releases when its holder dies.

    Optuna's own lock files outlive a killed worker and stop everybody for half a minute.
    """

    def __init__(self, journal: Path) -> None:
        self._lock = FileLock(journal.with_suffix(".lock"))

    def acquire(self) -> bool:
        """Wait for the lock."""
        self._lock.acquire()
        return True

    def release(self) -> None:
        """Let others have it."""
        self._lock.release()


def repair_journal(journal: Path) -> None:
    """Cut off a last line that a full disk or a killed writer left unfinished; keep a copy.

    Optuna would glue the next entry to it, and then never read the journal again. What the line
    said is restored from plan and records.
    """
    with FileLock(journal.with_suffix(".lock")):
        if not journal.exists():
            return
        content = journal.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            journal.with_suffix(".torn").write_bytes(content)
            journal.write_bytes(whole)


def _lease(lasting_s: float) -> dict[str, Any]:
    process = psutil.Process()
    return {
        "host": socket.gethostname(),
        "pid": process.pid,
        "started": process.create_time(),
        "expires": time.time() + lasting_s,
    }


def lease_is_fresh(lease: dict[str, Any]) -> bool:
    """Whether the process that took the lease still lives; by its age if on another machine."""
    if lease["host"] != socket.gethostname():
        return time.time() < float(lease["expires"])
    return process_lives(int(lease["pid"]), float(lease["started"]))


def process_lives(pid: int, started: float) -> bool:
    """Whether that very process lives; pids are reused, so its start time counts too."""
    try:
        process = psutil.Process(pid)
        return abs(process.create_time() - started) < 1.0 and process.status() != "zombie"
    except psutil.NoSuchProcess:
        return False
