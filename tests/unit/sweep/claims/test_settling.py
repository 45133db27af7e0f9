"""Claims of the dead, of broken connections, and of storages that were lost."""

from __future__ import annotations

import multiprocessing
import os
from dataclasses import asdict
from pathlib import Path

import pytest
import sqlalchemy.exc
from optuna.trial import TrialState

from study.plan.arms import Arm
from study.plan.experiment import PlannedRun
from study.records.store import ExperimentStore
from study.sweep.claims import claims as claims_module
from study.sweep.claims import leases
from study.sweep.claims import storage as storage_module
from study.sweep.claims.claims import Claim, Claims
from study.sweep.claims.leases import new_lease
from tests.unit.sweep.claims.claiming import (
    PLAN,
    claims_of,
    free,
    publish,
    record,
    take,
    three,
    trials,
)


def _take_and_die(path: str) -> None:
    assert take(claims_of(ExperimentStore(Path(path))))
    os._exit(9)


def let_a_worker_die(store: ExperimentStore) -> None:
    child = multiprocessing.get_context("spawn").Process(
        target=_take_and_die, args=(str(store.path),)
    )
    child.start()
    child.join()
    assert child.exitcode == 9


def test_claims_of_dead_processes_are_ended_at_once(store: ExperimentStore) -> None:
    let_a_worker_die(store)
    claims = claims_of(store)
    (claim,) = take(claims)
    assert claim.run == PLAN.runs[0]
    dead, mine = trials(claims)[claim.run.run_id]
    assert (dead.state, dead.user_attrs["status"]) == (TrialState.FAIL, "killed")
    assert mine.state is TrialState.RUNNING


def test_who_died_between_record_and_tell_is_told_for(store: ExperimentStore) -> None:
    let_a_worker_die(store)
    publish(store, record(PLAN.runs[0], score_final=0.5))
    claims = claims_of(store)
    take(claims, [run for run in PLAN.runs[1:] if run.arm == PLAN.runs[0].arm])
    (trial,) = trials(claims)[PLAN.runs[0].run_id]
    assert (trial.state, trial.value) == (TrialState.COMPLETE, 0.5)


def test_a_storage_that_was_lost_is_made_again_from_the_records(store: ExperimentStore) -> None:
    found = {run.run_id: record(run, score_final=0.1 + i / 100) for i, run in enumerate(PLAN.runs)}
    claims = claims_of(store)
    claims.settle(PLAN, found)
    claims.settle(PLAN, found)  # a second time changes nothing
    assert {k: [t.value for t in v] for k, v in trials(claims).items()} == {
        run_id: [found[run_id].score_final] for run_id in found
    }


def test_a_holder_that_sleeps_while_it_tells_is_told_for(store: ExperimentStore) -> None:
    sleeper, run = claims_of(store), PLAN.runs[0]
    (claim,) = take(sleeper)
    found = record(run, score_final=0.5)
    publish(store, found)
    sleeper.storage.trials.set_trial_user_attr(claim.trial_id, "record", asdict(found))

    launch = claims_of(store)
    launch.settle(PLAN, {run.run_id: found})
    sleeper.finish(claim, found)  # it wakes

    (trial,) = trials(launch)[run.run_id]
    assert (trial.state, trial.value) == (TrialState.COMPLETE, 0.5)
    assert trial.user_attrs["status"] == "completed"


def test_a_claim_whose_making_was_repeated_is_held_once(store: ExperimentStore) -> None:
    claims = claims_of(store)
    (claim,) = take(claims)
    claims._held.clear()  # as if the connection had broken before the answer came
    (again,) = take(claims)
    assert again.run == claim.run
    states = [trial.state for trial in trials(claims)[claim.run.run_id]]
    assert states == [TrialState.FAIL, TrialState.RUNNING]


def test_what_a_broken_connection_left_of_a_pack_is_claimed_again(
    store: ExperimentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims, made = claims_of(store), 0
    claim = Claims._claim

    def breaks_at_the_second(self: Claims, run: PlannedRun, arm: Arm) -> Claim:
        nonlocal made
        made += 1
        if made == 2:
            raise sqlalchemy.exc.OperationalError("", {}, Exception("gone"))
        return claim(self, run, arm)

    monkeypatch.setattr(storage_module, "RETRY_EVERY_S", 0.0)
    monkeypatch.setattr(Claims, "_claim", breaks_at_the_second)
    assert [c.run for c in take(claims, pick=three)] == PLAN.runs[:3]
    states = [trial.state.name for trial in trials(claims)[PLAN.runs[0].run_id]]
    assert states == ["FAIL", "RUNNING"]


def test_a_claim_that_was_made_twice_is_told_once(store: ExperimentStore) -> None:
    run = PLAN.runs[0]
    let_a_worker_die(store)  # after it made the claim a second time, and told that one
    publish(store, record(run, score_final=0.5))
    claims = claims_of(store)
    claims._restore(run, PLAN.arms[run.arm], record(run, score_final=0.5))
    take(claims, [other for other in PLAN.runs[1:] if other.arm == run.arm])
    first, second = trials(claims)[run.run_id]
    assert (first.state, "record" in first.user_attrs) == (TrialState.FAIL, False)
    assert second.value == 0.5


def test_a_run_of_another_machine_is_free_only_after_it_was_watched(
    store: ExperimentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    away, here = claims_of(store), claims_of(store)
    (claim,) = take(away)
    gone = {**new_lease(), "claimant": "away", "host": "elsewhere", "expires": 0.0}
    away.storage.trials.set_trial_user_attr(claim.trial_id, "lease", gone)
    assert claim.run.run_id not in free(here)
    monkeypatch.setattr(leases, "WATCHED_S", 0.0)
    assert claim.run.run_id in free(here)


def test_many_records_are_told_in_portions_of_a_lock(
    store: ExperimentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims_module, "RESTORED_AT_ONCE", 2)
    records = {run.run_id: record(run, score_final=0.5) for run in PLAN.runs[:7]}
    claims_of(store).settle(PLAN, records)
    claims_of(store).settle(PLAN, records)
    told = [t.user_attrs["run_id"] for found in trials(claims_of(store)).values() for t in found]
    assert sorted(told) == sorted(records)
