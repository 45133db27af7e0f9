from __future__ import annotations

import dataclasses
import multiprocessing
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from optuna.trial import TrialState

from study.config import EarlyStoppingConfig
from study.plan.experiment import PlannedRun, to_json
from study.records.store import ExperimentStore
from study.sweep.modes.pruning import RatePruner
from study.sweep.schedule import Board
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
    first = record(PLAN.runs[0], score_final=0.2)
    claims_of(store).settle(PLAN, {first.run_id: first})  # a launch that found the first result
    (claim,) = take(claims)
    claims.finish(claim, first, first=False)
    ((told, trial),) = trials(claims).values()
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


def test_a_lost_claim_is_noticed_on_renewal(store: ExperimentStore) -> None:
    claims = claims_of(store)
    lost, kept, _ = take(claims, pick=three)
    assert claims.renew(lost)
    claims_of(store).give_back(lost, "killed")
    lost.renewed_at = kept.renewed_at = -1e9
    assert [claims.renew(c) for c in (lost, kept, lost)] == [False, True, False]
