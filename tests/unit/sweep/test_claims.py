from __future__ import annotations

import dataclasses
import multiprocessing
import os
import socket
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from optuna.trial import TrialState

from study.config import EarlyStoppingConfig
from study.plan.experiment import PlannedRun
from study.records.record import Record
from study.records.store import ExperimentStore
from study.sweep.claims import Claims, lease_is_fresh
from study.sweep.pruning import RatePruner
from tests.plans import toy_plan


@pytest.fixture
def store(tmp_path: Path) -> ExperimentStore:
    return ExperimentStore(tmp_path)


def enqueue_all(store: ExperimentStore) -> Claims:
    plan, claims = toy_plan(), Claims(store)
    for run in plan.runs:
        claims.enqueue(run, plan.arms[run.arm], 1)
    return claims


def record(run_id: str, **changes: Any) -> Record:
    facts: dict[str, Any] = {f.name: None for f in dataclasses.fields(Record)}
    return Record(
        **{**facts, "run_id": run_id, "status": "completed", "status_reason": "", **changes}
    )


def trials(claims: Claims) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for optuna_study in claims._storage.get_all_studies():
        for trial in claims._storage.get_all_trials(optuna_study._study_id):
            found.setdefault(trial.user_attrs["run_id"], []).append(trial)
    return found


def test_one_optuna_study_per_arm_and_phase_one_trial_per_run(store: ExperimentStore) -> None:
    claims, plan = enqueue_all(store), toy_plan()
    names = {s.study_name for s in claims._storage.get_all_studies()}
    assert names == {"full/search", "lora-r1/search"}
    for run in plan.runs:
        (trial,) = trials(claims)[run.run_id]
        assert trial.params == {"learning_rate": run.learning_rate}
        assert trial.user_attrs["seed"] == run.seed


def _drain(path: str, queue: Any) -> None:
    claims, plan = Claims(ExperimentStore(Path(path))), toy_plan()
    while taken := claims.take(plan.runs):
        queue.put(taken[0].run.run_id)
    queue.put(None)
    time.sleep(0.5)  # stay alive so that the leases count as held


def test_concurrent_workers_never_share_a_run(store: ExperimentStore) -> None:
    enqueue_all(store)
    context = multiprocessing.get_context("spawn")
    queue: Any = context.Queue()
    workers = [context.Process(target=_drain, args=(str(store.path), queue)) for _ in range(3)]
    for worker in workers:
        worker.start()
    taken: list[str] = []
    ended = 0
    while ended < 3:
        item = queue.get(timeout=15)
        ended += item is None
        taken += [item] if item else []
    for worker in workers:
        worker.join()
    assert sorted(taken) == sorted(run.run_id for run in toy_plan().runs)


def test_results_are_told_and_failures_end_the_trial(store: ExperimentStore) -> None:
    claims, plan = enqueue_all(store), toy_plan()
    first, second, third = claims.take(plan.runs, lambda waiting: waiting[:3])
    claims.finish(first, record(first.run.run_id, score_final=0.25))
    claims.finish(second, record(second.run.run_id, score_final=None, status="no_signal"))
    claims.give_back(third, "failed")
    told = trials(claims)
    assert told[first.run.run_id][0].value == 0.25
    assert told[second.run.run_id][0].user_attrs["status"] == "no_signal"
    assert told[third.run.run_id][0].user_attrs["status"] == "failed"
    ended = {c.run.run_id for c in (first, second, third)}
    assert claims.live() == {run.run_id for run in plan.runs} - ended


def test_the_record_wins_where_the_storage_disagrees(store: ExperimentStore) -> None:
    claims, plan = enqueue_all(store), toy_plan()
    waiting, (running,) = plan.runs[1], claims.take(plan.runs)
    records = {
        waiting.run_id: record(waiting.run_id, score_final=0.1),
        running.run.run_id: record(running.run.run_id, score_final=0.2),
    }
    claims.settle(records)
    told = trials(claims)
    assert told[waiting.run_id][0].value == 0.1
    assert told[running.run.run_id][0].value == 0.2
    claims.finish(running, records[running.run.run_id])  # told twice: no error, no change
    assert told[running.run.run_id][0].value == 0.2


def test_several_are_taken_at_once_and_only_what_waits_is_offered(store: ExperimentStore) -> None:
    claims, plan = enqueue_all(store), toy_plan()
    offered: list[list[str]] = []

    def every_other(waiting: list[PlannedRun]) -> list[PlannedRun]:
        offered.append([run.run_id for run in waiting])
        return waiting[::2]

    taken = [claim.run for claim in claims.take(plan.runs, every_other)]
    assert taken == plan.runs[::2]
    assert [claim.run for claim in claims.take(plan.runs[:4], every_other)] == [plan.runs[1]]
    assert offered[1] == [run.run_id for run in plan.runs[1:4:2]]
    assert claims.take(plan.runs, lambda waiting: []) == []


def test_early_stopping_sees_the_reports_of_the_arm(store: ExperimentStore) -> None:
    claims, plan = enqueue_all(store), toy_plan()
    pruner = RatePruner(EarlyStoppingConfig(grace_steps=10, keep=0.6, window=1))
    full = [run for run in plan.runs if run.arm == "full" and run.seed == 0]
    good, bad, better = claims.take(full, lambda waiting: waiting[:3])
    claims.report(good, 10, 0.5)
    Claims(store).report(better, 10, 0.6)
    assert claims.stops_early(good, pruner) is None  # its arm has a rate that is under way
    claims.report(bad, 10, 0.2)
    assert claims.stops_early(good, pruner) is None
    reason = claims.stops_early(bad, pruner)
    assert reason is not None
    assert "number 3 of 3 at step 10: accuracy 0.200" in reason
    claims.finish(bad, record(bad.run.run_id, score_final=None, status="pruned"))
    claims.report(bad, 20, 0.1)  # the run is over: no error
    (trial,) = trials(claims)[bad.run.run_id]
    assert trial.state is TrialState.PRUNED


def _take_and_die(path: str) -> None:
    claims = Claims(ExperimentStore(Path(path)))
    assert claims.take(toy_plan().runs)
    os._exit(9)


def test_claims_of_dead_processes_are_ended(store: ExperimentStore) -> None:
    claims, plan = enqueue_all(store), toy_plan()
    child = multiprocessing.get_context("spawn").Process(
        target=_take_and_die, args=(str(store.path),)
    )
    child.start()
    child.join()
    assert child.exitcode == 9
    assert claims.live() == {run.run_id for run in plan.runs[1:]}
    assert trials(claims)[plan.runs[0].run_id][0].user_attrs["status"] == "killed"


def test_a_lease_is_held_by_that_very_process() -> None:
    me = psutil.Process()
    lease = {"host": socket.gethostname(), "pid": me.pid, "started": me.create_time()}
    assert lease_is_fresh({**lease, "expires": 0})
    later = time.time() + 100
    assert not lease_is_fresh({**lease, "started": me.create_time() - 1000, "expires": later})


def test_a_lease_from_elsewhere_counts_by_its_age() -> None:
    lease = {"host": "elsewhere", "pid": 1, "started": 0.0}
    assert lease_is_fresh({**lease, "expires": time.time() + 1})
    assert not lease_is_fresh({**lease, "expires": time.time() - 1})


def test_a_lost_claim_is_noticed_on_renewal(store: ExperimentStore) -> None:
    claims, plan = enqueue_all(store), toy_plan()
    (claim,) = claims.take(plan.runs)
    assert claims.renew(claim)
    Claims(store).give_back(claim, "killed")
    claim.renewed_at = 0.0
    assert not claims.renew(claim)


def test_a_torn_journal_is_repaired_with_a_copy(store: ExperimentStore) -> None:
    claims, plan = enqueue_all(store), toy_plan()
    assert claims.take(plan.runs)
    torn = store.journal_path.read_bytes()[:-15]
    store.journal_path.write_bytes(torn)
    again = Claims(store)
    assert store.journal_path.with_suffix(".torn").read_bytes() == torn
    assert again.live() <= {run.run_id for run in plan.runs}
    assert again.take(plan.runs)
    Claims(store).live()  # readable for ever after
