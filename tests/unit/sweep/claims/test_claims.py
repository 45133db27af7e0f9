from __future__ import annotations

import dataclasses
import itertools
import multiprocessing
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import optuna
import pytest
import sqlalchemy.exc
from optuna.trial import TrialState

from study.config import EarlyStoppingConfig
from study.plan.arms import Arm
from study.plan.experiment import PlannedRun, from_json, to_json
from study.plan.portions import whole
from study.records.record import Record
from study.records.store import ExperimentStore
from study.sweep.claims import storage as storage_module
from study.sweep.claims.claims import Claim, Claims, Pick, first_of
from study.sweep.claims.storage import Storage
from study.sweep.modes.pruning import RatePruner
from study.sweep.schedule import Board
from tests.plans import toy_plan

PLAN = toy_plan()


@pytest.fixture
def store(tmp_path: Path) -> ExperimentStore:
    return ExperimentStore(tmp_path)


def claims_of(store: ExperimentStore) -> Claims:
    return Claims(store, Storage(store), "toy")


def take(claims: Claims, runs: list[PlannedRun] = PLAN.runs, pick: Pick = first_of) -> list[Claim]:
    return claims.take(PLAN.arms, runs, pick)


def three(free: Iterable[PlannedRun]) -> list[PlannedRun]:
    return list(itertools.islice(free, 3))


def free(claims: Claims) -> set[str]:
    """What could be claimed, nothing claimed."""
    offered: list[PlannedRun] = []

    def none(runs: Iterable[PlannedRun]) -> list[PlannedRun]:
        offered.extend(runs)
        return []

    take(claims, pick=none)
    return {run.run_id for run in offered}


def record(run: PlannedRun, **changes: Any) -> Record:
    facts: dict[str, Any] = {f.name: None for f in dataclasses.fields(Record)}
    facts |= {"schema_version": 1, "run_id": run.run_id, "arm": run.arm, "status": "completed"}
    return Record(**{**facts, "status_reason": "", **changes})


def publish(store: ExperimentStore, found: Record) -> None:
    attempt = store.new_attempt(found.arm, found.run_id)
    assert store.publish(found, attempt)


def trials(claims: Claims) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for optuna_study in claims.storage.trials.get_all_studies():
        for trial in claims.storage.trials.get_all_trials(optuna_study._study_id):
            found.setdefault(trial.user_attrs["run_id"], []).append(trial)
    return found


def test_a_claim_is_a_running_trial_in_the_study_of_its_arm_and_phase(
    store: ExperimentStore,
) -> None:
    claims = claims_of(store)
    (claim,) = take(claims)
    ((trial,),) = trials(claims).values()
    (optuna_study,) = claims.storage.trials.get_all_studies()
    assert optuna_study.study_name == f"toy/{claim.run.arm}/search"
    assert trial.state is TrialState.RUNNING
    assert trial.params == {"learning_rate": claim.run.learning_rate}
    assert trial.user_attrs["run_id"] == PLAN.runs[0].run_id
    assert trial.user_attrs["seed"] == PLAN.runs[0].seed
    assert trial.user_attrs["lease"]["pid"] == os.getpid()


def test_only_what_nobody_holds_is_offered(store: ExperimentStore) -> None:
    claims = claims_of(store)
    taken = [claim.run for claim in take(claims, pick=lambda runs: list(runs)[::2])]
    assert taken == PLAN.runs[::2]
    assert free(claims) == {run.run_id for run in PLAN.runs[1::2]}

    assert [claim.run for claim in take(claims)] == [PLAN.runs[1]]
    assert take(claims, pick=lambda runs: []) == []


def test_a_run_that_ends_between_two_looks_is_not_taken_for_a_free_one(
    store: ExperimentStore,
) -> None:
    claims, other = claims_of(store), claims_of(store)
    (claim,) = take(other)
    held_in = claims._held_in

    def others_end_meanwhile(name: str) -> set[str]:
        found = record(claim.run, score_final=0.5)
        publish(store, found)
        other.finish(claim, found)
        return held_in(name)

    claims._held_in = others_end_meanwhile  # type: ignore[method-assign]
    store.write_plan(to_json(PLAN))
    board = Board(store, claims)

    def pick(unheld: Iterable[PlannedRun]) -> list[PlannedRun]:
        return [run for run in unheld if board.is_open(run)]

    assert claims.take(PLAN.arms, [claim.run], pick) == []


def _drain(path: str, queue: Any) -> None:
    claims = claims_of(ExperimentStore(Path(path)))
    while taken := take(claims):
        queue.put(taken[0].run.run_id)
    queue.put(None)
    queue.close()
    queue.join_thread()
    multiprocessing.parent_process().join()  # type: ignore[union-attr]  # leases count while it lives


def test_concurrent_workers_never_share_a_run(store: ExperimentStore) -> None:
    context = multiprocessing.get_context("spawn")
    queue: Any = context.Queue()
    workers = [
        context.Process(target=_drain, args=(str(store.path), queue), daemon=True) for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    taken: list[str] = []
    ended = 0
    while ended < 3:
        item = queue.get(timeout=30)
        ended += item is None
        taken += [item] if item else []
    for worker in workers:
        worker.kill()
        worker.join()
    assert sorted(taken) == sorted(run.run_id for run in PLAN.runs)


def test_results_are_told_whole_and_failures_free_the_run(store: ExperimentStore) -> None:
    claims = claims_of(store)
    first, second, third = take(claims, pick=three)
    claims.report(first, 10, 0.2)
    found = record(first.run, score_final=0.25, flags=["saturated"])
    claims.finish(first, found)
    claims.finish(second, record(second.run, score_final=None, status="no_signal"))
    claims.give_back(third, "failed", "it broke", spent=True)
    told = trials(claims)
    (trial,) = told[first.run.run_id]
    assert (trial.state, trial.value) == (TrialState.COMPLETE, 0.25)
    assert trial.user_attrs["record"] == dataclasses.asdict(found)
    assert trial.intermediate_values == {10: 0.2}
    (trial,) = told[second.run.run_id]
    assert (trial.state, trial.user_attrs["status"]) == (TrialState.FAIL, "no_signal")
    (trial,) = told[third.run.run_id]
    assert trial.state is TrialState.FAIL and "record" not in trial.user_attrs
    assert {k: trial.user_attrs[k] for k in ("status", "status_reason", "spent")} == {
        "status": "failed",
        "status_reason": "it broke",
        "spent": True,
    }
    assert third.run.run_id in free(claims)


def test_a_second_result_of_a_run_is_told_apart(store: ExperimentStore) -> None:
    claims = claims_of(store)
    (claim,) = take(claims)
    first = record(claim.run, score_final=0.2)
    claims_of(store).settle(PLAN, {claim.run.run_id: first})  # a launch that found the first result
    claims.finish(claim, first, first=False)
    ((trial, told),) = trials(claims).values()
    assert (trial.state, trial.user_attrs["status"]) == (TrialState.FAIL, "superseded")
    assert "record" not in trial.user_attrs
    assert told.value == 0.2


def test_who_lost_its_claim_and_was_first_is_told_for(store: ExperimentStore) -> None:
    slept, awake = claims_of(store), claims_of(store)
    (lost,) = take(slept)
    awake.give_back(lost, "killed")  # what a worker does that finds the lease run out
    (claim,) = take(awake)
    assert claim.run == lost.run
    found = record(lost.run, score_final=0.5)
    publish(store, found)
    slept.finish(lost, found)
    awake.finish(claim, found, first=False)
    assert [(t.state.name, t.value) for t in trials(awake)[lost.run.run_id]] == [
        ("FAIL", None),
        ("COMPLETE", 0.5),
    ]


def test_early_stopping_sees_the_reports_of_the_arm(store: ExperimentStore) -> None:
    claims = claims_of(store)
    settings = EarlyStoppingConfig(grace_steps=10, keep=0.6, window=1)
    pruner = RatePruner(settings, PLAN.arms["full"].learning_rates)
    full = [run for run in PLAN.runs if run.arm == "full" and run.seed == 0]
    good, bad = take(claims, full[:2], three)
    claims.report(good, 10, 0.5)
    claims.report(bad, 10, 0.2)
    assert claims.stops_early(bad, pruner) is None  # a rate that nobody has begun may be better
    (better,) = take(claims, full[2:], three)
    claims_of(store).report(better, 10, 0.6)
    reason = claims.stops_early(bad, pruner)
    assert reason is not None
    assert "number 3 of 3 at step 10: accuracy 0.200" in reason
    claims.finish(bad, record(bad.run, score_final=None, status="pruned"))
    claims.report(bad, 20, 0.1)  # the run is over: no error
    (trial,) = trials(claims)[bad.run.run_id]
    assert trial.state is TrialState.PRUNED


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


def test_a_lost_claim_is_noticed_on_renewal(store: ExperimentStore) -> None:
    claims = claims_of(store)
    lost, kept, _ = take(claims, pick=three)
    assert claims.renew(lost)
    claims_of(store).give_back(lost, "killed")
    lost.renewed_at = kept.renewed_at = -1e9
    assert [claims.renew(c) for c in (lost, kept, lost)] == [False, True, False]


def test_the_plan_travels_in_the_storage(store: ExperimentStore) -> None:
    claims = claims_of(store)
    content = to_json(PLAN)
    claims.studies.describe(PLAN, content, {"full": {"learning_rate": 2e-4}})
    named = {s.study_name: s.user_attrs for s in claims.storage.trials.get_all_studies()}
    assert named.keys() == {"toy/full/search", "toy/lora-r1/search", "toy/plan"}
    assert from_json(whole(named["toy/plan"])) == PLAN
    assert named["toy/plan"]["selections"] == {"full": {"learning_rate": 2e-4}}
    assert named["toy/full/search"] == {
        "experiment": "toy",
        "arm": "full",
        "phase": "search",
        "factors": PLAN.arms["full"].factors,
        "learning_rates": PLAN.arms["full"].learning_rates,
    }


def test_two_experiments_share_a_storage(store: ExperimentStore) -> None:
    storage = Storage(store)
    one, other = Claims(store, storage, "toy"), Claims(store, storage, "toy-2")
    assert take(one)[0].run == take(other)[0].run == PLAN.runs[0]


def test_claims_of_one_study_are_found_in_optuna_s_own_words(store: ExperimentStore) -> None:
    claims = claims_of(store)
    (claim,) = take(claims)
    claims.finish(claim, record(claim.run, score_final=0.7))
    optuna_study = optuna.load_study(
        study_name=f"toy/{claim.run.arm}/search", storage=claims.storage.trials
    )
    assert optuna_study.best_value == 0.7
    assert optuna_study.best_params == {"learning_rate": claim.run.learning_rate}
