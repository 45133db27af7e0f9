"""Search modes carried out by real workers: growth, pruning, kills, and continuing later."""

from __future__ import annotations

import dataclasses
import math
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from study.config import BudgetConfig, EarlyStoppingConfig, RefineConfig, SeedsConfig
from study.plan import best
from study.plan.experiment import Plan, to_json
from study.plan.growth import merge
from study.records.store import ExperimentStore
from study.sweep.schedule import State, read_plan, read_state
from tests.plans import toy_plan
from tests.unit.plan.joint import joint, settings, stopping
from tests.unit.sweep.workers import drain, start_worker, wait_for_records

TRIALS, FINALISTS = 12, 2


def prepared(path: Path, plan: Plan) -> ExperimentStore:
    store = ExperimentStore(path)
    store.write_plan(to_json(plan))
    return store


def joint_store(path: Path, **changes: Any) -> ExperimentStore:
    stops: EarlyStoppingConfig | None = changes.pop("early_stopping", None)
    plan = joint(settings(trials=TRIALS, finalists=FINALISTS, **changes), early_stopping=stops)
    return prepared(path, best.begin(plan))


def finished(store: ExperimentStore) -> State:
    """The state, every planned run having one record and nothing else lying about."""
    state = read_state(store)
    assert state.records.keys() == {run.run_id for run in state.plan.runs}
    on_disk = Counter(p.parent.name for p in store.path.glob("*/*/record.json"))
    assert on_disk == Counter(state.records.keys())
    return state


def drained(store: ExperimentStore, **how: Any) -> ExperimentStore:
    drain(store, **how)
    return store


def _decades(rate: float) -> float:
    return math.log10(rate / 2e-3)


def test_a_worker_carries_a_joint_search_to_its_winner(tmp_path: Path) -> None:
    state = finished(drained(joint_store(tmp_path)))
    points = [trial.point for trial in best.trials(state.plan)]
    assert len(points) == len(set(points)) == TRIALS
    assert len(state.plan.runs) == TRIALS + FINALISTS * 2
    found = best.winner(state.plan, state.records)
    assert found is not None
    # The engine's double scores 0.7 at 2e-3, less with the square of the distance in decades.
    nearest = min(points, key=lambda point: abs(_decades(point[1])))
    assert abs(_decades(found.learning_rate)) <= abs(_decades(nearest[1])) + 0.01


def test_more_trials_later_continue_and_repeat_nothing(tmp_path: Path) -> None:
    store = drained(joint_store(tmp_path))
    before = finished(store)
    more = joint(settings(trials=TRIALS + 3, finalists=FINALISTS))
    store.write_plan(to_json(merge(read_plan(store), best.begin(more))))
    after = finished(drained(store))
    assert len(best.trials(after.plan)) == TRIALS + 3
    assert {k: after.records[k] for k in before.records} == before.records


def test_poor_trials_are_stopped_and_never_win(tmp_path: Path) -> None:
    store = joint_store(tmp_path, early_stopping=stopping())
    state = finished(drained(store))
    stopped = [r for r in state.records.values() if r.status == "pruned"]
    assert stopped
    assert all("after" in r.status_reason or "seed" in r.status_reason for r in stopped)
    assert all(r.phase == "search" for r in stopped)
    found = best.winner(state.plan, state.records)
    assert found is not None
    report = [r for r in state.records.values() if r.phase == "report"]
    assert {r.status for r in report} == {"completed"}


def packed_joint_store(path: Path) -> ExperimentStore:
    store = joint_store(path)
    plan = read_plan(store)
    by = {name: _packed(arm) for name, arm in best.arms_of(plan).items()}
    arms = {name: by[name] for name in plan.arms}
    reserve = {name: by[name] for name in plan.reserve}
    store.write_plan(
        to_json(dataclasses.replace(plan, engine="packed", arms=arms, reserve=reserve))
    )
    return store


def test_a_packed_worker_asks_for_trials_as_places_become_free(tmp_path: Path) -> None:
    state = finished(drained(packed_joint_store(tmp_path), pack_size=3))
    lanes = [r.probes["lanes"] for r in state.records.values()]
    assert max(lanes) == 3


def _packed(arm: Any) -> Any:
    engine = dataclasses.replace(arm.config.engine, name="packed")
    return dataclasses.replace(arm, config=dataclasses.replace(arm.config, engine=engine))


@pytest.mark.timeout(180)
def test_a_killed_worker_costs_a_joint_search_neither_trials_nor_doubles(tmp_path: Path) -> None:
    store = joint_store(tmp_path / "runs")
    for kill in range(3):
        worker = start_worker(store, tmp_path / f"worker{kill}.py")
        wait_for_records(store, worker, 3 * kill + 1)
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    state = finished(drained(store))
    assert len(best.trials(state.plan)) == TRIALS
    assert len(state.plan.runs) == TRIALS + FINALISTS * 2


@pytest.mark.timeout(180)
def test_two_workers_ask_for_no_trial_twice_and_none_too_many(tmp_path: Path) -> None:
    store = joint_store(tmp_path / "runs")
    workers = [start_worker(store, tmp_path / f"w{i}.py", workers=2) for i in range(2)]
    assert [worker.wait() for worker in workers] == [0, 0]
    state = finished(store)
    assert len({trial.point for trial in best.trials(state.plan)}) == TRIALS
    trained = (tmp_path / "trained.txt").read_text().split()
    assert sorted(trained) == sorted(state.records)


def test_a_run_that_always_fails_does_not_hold_a_joint_search_up(tmp_path: Path) -> None:
    plan = best.begin(joint(settings(trials=4), seeds=SeedsConfig(search=[0, 16], report=[100])))
    store = drained(prepared(tmp_path, plan))  # seed 16 runs out of memory, always
    state = read_state(store)
    assert len(best.trials(state.plan)) == 4
    assert len(state.given_up) == 4


def test_a_joint_search_asks_for_no_trial_that_its_budget_keeps_from_beginning(
    tmp_path: Path,
) -> None:
    store = packed_joint_store(tmp_path)
    drain(store, budget=BudgetConfig(runs=len(read_plan(store).runs)), pack_size=4)
    assert len(read_state(store).open_runs) == 1  # what is tried next, should the budget grow


def test_a_worker_refines_grids_and_reports_at_the_better_rate(tmp_path: Path) -> None:
    plan = toy_plan([1e-5, 1e-4, 1e-3], refine=RefineConfig(points=2))
    state = finished(drained(prepared(tmp_path, plan)))
    assert {arm: len(rates) for arm, rates in state.plan.refined.items()} == {
        "full": 2,
        "lora-r1": 2,
    }
    assert len(state.plan.runs) == 2 * (3 + 2) * 2 + 2 * 2
    selections = ExperimentStore(tmp_path).read_selections()
    # The engine's double scores best at 2e-4 under full fine-tuning: between the grid's rates.
    assert selections["full"]["learning_rate"] in state.plan.refined["full"]
    assert {run.learning_rate for run in state.plan.cells("full", "report")} == {
        selections["full"]["learning_rate"]
    }
