"""Who works on what: one Optuna study per arm and phase, one trial per attempt at a run.

Claims live in this storage, results in the store; where the two disagree the record wins. A claim
is a trial made in state RUNNING under the storage's lock, with a lease of the process that holds
it; a run is free if no such trial of it is fresh. Nothing waits in the storage, so a claim costs
the same in a plan of a hundred runs and of ten thousand.
"""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import TrialState

from study.plan.arms import Arm
from study.plan.experiment import Plan, PlannedRun
from study.records.record import Record
from study.records.store import ExperimentStore
from study.sweep.claims.leases import (
    RENEW_EVERY_S,
    Lives,
    Suspects,
    is_elsewhere,
    is_fresh,
    new_lease,
    process_lives,
)
from study.sweep.claims.storage import RunningTrial, Storage, patiently
from study.sweep.claims.studies import Studies
from study.sweep.claims.trials import attributes, new_trial, outcome
from study.sweep.modes.pruning import RatePruner

RESTORED_AT_ONCE = 200
"""Trials that are made again under one lock."""


@dataclass(kw_only=True)
class Claim:
    """One worker's hold on one run."""

    run: PlannedRun
    trial_id: int
    renewed_at: float
    lost: bool = False
    """Another worker took the run over."""


Pick = Callable[[Iterable[PlannedRun]], list[PlannedRun]]
"""Which of the runs that nobody holds, given in their order, a worker takes; called under the lock.

Whether a run has a record by now is its question, to be asked of a run when it is given: earlier,
one that ends between the two looks would pass for a run that nobody has begun."""


def first_of(unheld: Iterable[PlannedRun]) -> list[PlannedRun]:
    """The first run that nobody holds, if there is one."""
    return list(itertools.islice(unheld, 1))


class Claims:
    """The storage's view of an experiment."""

    def __init__(self, store: ExperimentStore, storage: Storage, experiment: str) -> None:
        """Builds the view.

        Args:
            store: The experiment's directory, whose records win.
            storage: Where claims are kept.
            experiment: The experiment's name: studies are called ``EXPERIMENT/ARM/PHASE``.
        """
        self.storage = storage
        self.store = store
        self._experiment = experiment
        self.studies = Studies(storage, experiment)
        self._token = uuid.uuid4().hex
        self._suspects = Suspects()
        self._held: set[int] = set()
        """Trials that were claimed with this token and have not ended."""

    @patiently
    def take(
        self,
        arms: Mapping[str, Arm],
        runs: Sequence[PlannedRun],
        pick: Pick = first_of,
    ) -> list[Claim]:
        """Claim those of ``runs`` that ``pick`` chooses among those that nobody holds.

        Args:
            arms: Arms of the plan.
            runs: Runs that had no result when they were last looked at.
            pick: The choice.
        """
        with self.storage.lock(self._experiment):
            claims = [self._claim(run, arms[run.arm]) for run in pick(self._unheld(runs))]
        # Only now: those of a pack that was made by half are nobody's, and ended by the next look.
        self._held |= {claim.trial_id for claim in claims}
        return claims

    @patiently
    def held(self, plan: Plan) -> set[str]:
        """Runs of the plan that any worker holds, by id."""
        names = (f"{self._experiment}/{arm}/{phase}" for arm, phase in plan.phases)
        return set().union(*(self._held_in(name) for name in names))

    def _unheld(self, runs: Iterable[PlannedRun]) -> Iterator[PlannedRun]:
        """Runs that nobody holds; each study is looked at once, when it is first asked for."""
        held: dict[str, set[str]] = {}
        for run in runs:
            name = self.studies.name_of(run)
            if name not in held:
                held[name] = self._held_in(name)
            if run.run_id not in held[name]:
                yield run

    def _held_in(self, name: str) -> set[str]:
        """Runs of a study that somebody holds; stale claims are ended on the way."""
        lives = cache(process_lives)  # one worker holds many runs
        held: set[str] = set()
        for trial in self.storage.running(self.studies.id_of(name)):
            if self._is_held(trial, lives):
                held.add(trial.run_id)
            else:
                self._reap(name, trial)
        return held

    def _is_held(self, trial: RunningTrial, lives: Lives) -> bool:
        if trial.lease["claimant"] == self._token:
            # One of ours that we do not know: its making was repeated after a broken connection.
            return trial.trial_id in self._held
        if is_fresh(trial.lease, lives):
            return True
        return is_elsewhere(trial.lease) and not self._suspects.is_dead(
            trial.trial_id, trial.lease, self.storage.back_at
        )

    def _reap(self, name: str, trial: RunningTrial) -> None:
        """End a stale claim."""
        arm = self.studies.arm_of(name)
        record = self.store.record(arm, trial.run_id)
        if record is None or trial.run_id in self._told(name):
            self.storage.end(trial.trial_id, TrialState.FAIL, {"status": "killed", "spent": False})
        else:  # its holder died between record and tell
            self.store.clear_published(arm, trial.run_id)
            self._tell(trial.trial_id, record)

    def _told(self, name: str) -> set[str]:
        """Runs of a study whose record a trial holds."""
        trials = self.storage.trials.get_all_trials(self.studies.id_of(name), deepcopy=False)
        ended = (trial for trial in trials if trial.state.is_finished())
        return {str(t.user_attrs["run_id"]) for t in ended if "record" in t.user_attrs}

    def _claim(self, run: PlannedRun, arm: Arm) -> Claim:
        trial = new_trial(run, arm, TrialState.RUNNING, lease=self._lease())
        study_id = self.studies.id_of(self.studies.name_of(run))
        trial_id = self.storage.make(study_id, trial)
        return Claim(run=run, trial_id=trial_id, renewed_at=time.monotonic())

    def _lease(self) -> dict[str, Any]:
        return {**new_lease(), "claimant": self._token}

    @patiently
    def renew(self, claim: Claim) -> bool:
        """Say that the run is still worked on (cheap when called often); False if it was lost."""
        if claim.lost or time.monotonic() - claim.renewed_at < RENEW_EVERY_S:
            return not claim.lost
        try:
            self.storage.trials.set_trial_user_attr(claim.trial_id, "lease", self._lease())
        except UpdateFinishedTrialError:
            claim.lost = True
        claim.renewed_at = time.monotonic()
        return not claim.lost

    @patiently
    def finish(self, claim: Claim, record: Record, *, first: bool = True) -> None:
        """The run has a record: tell its score, or that it has none.

        Args:
            claim: The claim.
            record: The run's record.
            first: False if another worker's result of the run was published before this one. If
                that worker had lost its claim, it could not tell it, and it is told here.
        """
        if first or claim.run.run_id not in self._told(self.studies.name_of(claim.run)):
            self._tell(claim.trial_id, record)
        else:
            reason = "another worker took the run over and was first"
            status = {"status": "superseded", "status_reason": reason}
            self.storage.end(claim.trial_id, TrialState.FAIL, status)
        self._held.discard(claim.trial_id)

    @patiently
    def give_back(
        self, claim: Claim, status: str, reason: str = "", *, spent: bool = False
    ) -> None:
        """The attempt brought no result; the run is free again.

        Args:
            claim: The claim.
            status: Status of the attempt.
            reason: Why, in a sentence.
            spent: Whether the attempt counts against the run's retries.
        """
        because = {"status_reason": reason} if reason else {}
        told = {"status": status, "spent": spent, **because}
        self.storage.end(claim.trial_id, TrialState.FAIL, told)
        self._held.discard(claim.trial_id)

    @patiently
    def report(self, claim: Claim, step: int, accuracy: float) -> None:
        """Keep the held-out accuracy of a run after ``step`` optimizer steps."""
        self.storage.report(claim.trial_id, step, accuracy)

    @patiently
    def stops_early(self, claim: Claim, pruner: RatePruner) -> str | None:
        """Why ``pruner`` ends a run, after what was reported of its arm; None if it goes on."""
        name = self.studies.name_of(claim.run)
        optuna_study = optuna.load_study(study_name=name, storage=self.storage.trials)
        return pruner.reason(optuna_study, self.storage.trials.get_trial(claim.trial_id))

    @patiently
    def curves(self, plan: Plan) -> dict[str, dict[int, float]]:
        """Accuracies by step of every search run, by id; of several attempts the latest."""
        names = {self.studies.name_of(run) for run in plan.runs if run.phase == "search"}
        return {
            str(trial.user_attrs["run_id"]): trial.intermediate_values
            for name in sorted(names)
            for trial in self.storage.trials.get_all_trials(
                self.studies.id_of(name), deepcopy=False
            )
            if trial.intermediate_values
        }

    @patiently
    def settle(self, plan: Plan, records: Mapping[str, Record]) -> None:
        """Bring the storage in line with the records, at the start of a launch.

        Claims of the dead are ended, and records that no trial holds (the storage is new, was
        lost, or its writer died) get one.
        """
        for name, phase in plan.phases:
            cells = plan.cells(name, phase)
            ended = [(run, records[run.run_id]) for run in cells if run.run_id in records]
            while self._settle_some(plan.arms[name], phase, ended):
                pass

    def _settle_some(
        self, arm: Arm, phase: str, ended: Sequence[tuple[PlannedRun, Record]]
    ) -> bool:
        """Settle one study; whether more is left: a server takes back a lock that is held long."""
        study_name = f"{self._experiment}/{arm.name}/{phase}"
        with self.storage.lock(self._experiment):
            self._held_in(study_name)
            told = self._told(study_name)
            untold = [(run, record) for run, record in ended if run.run_id not in told]
            # A holder may sleep in the middle of telling: its trial gets what it would have told.
            running = self.storage.running(self.studies.id_of(study_name))
            claimed = {trial.run_id: trial.trial_id for trial in running}
            for run, record in untold[:RESTORED_AT_ONCE]:
                if run.run_id in claimed:
                    self._tell(claimed[run.run_id], record)
                else:
                    self._restore(run, arm, record)
        return len(untold) > RESTORED_AT_ONCE

    @patiently
    def reopen(self, run: PlannedRun, arm: Arm) -> None:
        """Say that a run is forgiven its spent retries."""
        trial = new_trial(run, arm, TrialState.FAIL, status="reopened", spent=False)
        study_id = self.studies.id_of(self.studies.name_of(run))
        self.storage.trials.create_new_trial(study_id, template_trial=trial)

    def _restore(self, run: PlannedRun, arm: Arm, record: Record) -> None:
        state, values = outcome(record)
        trial = new_trial(run, arm, state, values, **attributes(record))
        trial.intermediate_values = self.store.accuracies(run.arm, run.run_id)
        study_id = self.studies.id_of(self.studies.name_of(run))
        self.storage.trials.create_new_trial(study_id, template_trial=trial)

    def _tell(self, trial_id: int, record: Record) -> None:
        state, values = outcome(record)
        self.storage.end(trial_id, state, attributes(record), values)
