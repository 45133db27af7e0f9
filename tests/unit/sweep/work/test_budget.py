"""Sweeps with a budget, by workers with the torch-free engine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from study.compose import compose
from study.config import BudgetConfig, SeedsConfig
from study.plan.budget import run_flops
from study.records.record import Record
from study.records.store import ExperimentStore
from study.sweep.launch.assemble import assemble_single
from study.sweep.schedule import read_state
from tests.unit.sweep.workers import ROOT, assert_every_planned_run_once, drain, prepared


def results(store: ExperimentStore) -> dict[str, Record]:
    return read_state(store).records


@pytest.mark.parametrize("engine", ["trl", "packed"])
def test_a_budget_of_runs_ends_the_sweep_and_a_larger_one_goes_on(
    tmp_path: Path, engine: str
) -> None:
    store = prepared(tmp_path / "toy", engine=engine)
    drain(store, budget=BudgetConfig(runs=5))
    first = results(store)
    assert len(first) == 5
    drain(store, budget=BudgetConfig(runs=5))
    assert results(store) == first
    drain(store, budget=BudgetConfig(runs=13))
    assert len(results(store)) == 13
    assert first.items() <= results(store).items()
    drain(store)
    assert_every_planned_run_once(store)


def test_a_budget_ends_with_the_runs_of_the_plan_in_their_order(tmp_path: Path) -> None:
    store = prepared(tmp_path / "toy")
    drain(store, budget=BudgetConfig(runs=5))
    assert set(results(store)) == {run.run_id for run in read_state(store).plan.runs[:5]}


def test_flops_of_results_never_exceed_their_budget(tmp_path: Path) -> None:
    store = prepared(tmp_path / "toy")
    arms = read_state(store).plan.arms
    dearest = max(run_flops(arm) for arm in arms.values())
    drain(store, budget=BudgetConfig(flops=2.5 * dearest))
    spent = [r.train_flops + r.rollout_flops for r in results(store).values()]
    # The double's runs take a fraction of what was expected, so more of them fit than two.
    assert len(spent) > 2
    assert sum(spent) <= 2.5 * dearest < sum(spent) + dearest


def test_failed_attempts_cost_no_part_of_a_budget_of_runs(tmp_path: Path) -> None:
    """Seed 13 always fails: its runs are tried, given up, and the others take their places."""
    store = prepared(tmp_path / "toy", seeds=SeedsConfig(search=[13, 0], report=[100]))
    drain(store, budget=BudgetConfig(runs=4))
    state = read_state(store)
    assert len(state.records) == 4
    assert {record.seed for record in state.records.values()} == {0}
    assert len(state.given_up) == 6


def test_a_worker_begins_nothing_after_its_hours(tmp_path: Path) -> None:
    store = prepared(tmp_path / "toy")
    drain(store, budget=BudgetConfig(hours=1e-9))
    assert results(store) == {}


WORK = """
import sys
from pathlib import Path
if __name__ == "__main__":  # every child imports this file, and needs nothing of it
    from study.config import BudgetConfig
    from study.records.store import ExperimentStore
    from tests.unit.sweep.workers import drain
    drain(ExperimentStore(Path(sys.argv[1])), workers=3, budget=BudgetConfig(runs=7))
"""


@pytest.mark.timeout(120)
def test_workers_that_claim_at_the_same_moment_share_one_budget(tmp_path: Path) -> None:
    store = prepared(tmp_path / "toy")
    script = tmp_path / "work.py"
    script.write_text(WORK)
    environment = {**os.environ, "ENGINE_DOUBLE_STEP_S": "0.02", "PYTHONPATH": str(ROOT)}
    workers = [
        subprocess.Popen([sys.executable, str(script), str(store.path)], env=environment)
        for _ in range(3)
    ]
    assert [worker.wait(100) for worker in workers] == [0, 0, 0]
    assert len(results(store)) == 7


def test_a_budget_is_set_on_the_command_line() -> None:
    budget = compose(["budget.runs=20", "budget.hours=1.5", "budget.flops=1e15"]).budget
    assert budget == BudgetConfig(runs=20, hours=1.5, flops=1e15)
    assert compose([]).budget == BudgetConfig()
    with pytest.raises(ValueError, match=r"budget.run is not a key of BudgetConfig.*'runs'"):
        compose(["budget.run=20"])
    with pytest.raises(ValueError, match=r"budget.runs > 0 must hold, got runs=0"):
        compose(["budget.runs=0"])


def test_a_single_run_has_no_budget() -> None:
    with pytest.raises(ValueError, match="budget is only read by a sweep"):
        assemble_single(compose(["budget.runs=1"]))
