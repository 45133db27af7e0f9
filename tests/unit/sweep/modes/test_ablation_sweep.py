"""An ablation carried out by workers, with the torch-free engine."""

from __future__ import annotations

from pathlib import Path

from study.plan.ablate import runs_in_all, steps
from study.plan.experiment import Plan, plan_search, to_json
from study.plan.growth import merge
from study.plan.lattice import arm_overrides
from study.plan.select import Selection
from study.records.store import ExperimentStore
from study.sweep.schedule import read_state
from tests.plans import arm, lora, run_config
from tests.unit.plan.ablations import ablation
from tests.unit.sweep.workers import drain

FACTORS = ["method.rank", "objective.learning_rate"]
ENDS = {
    "default": ["objective.learning_rate=2e-4"],
    "tuned": ["method.rank=2", "objective.learning_rate=2e-3"],
}


def ablation_of_the_rate() -> Plan:
    """To the double, only the learning rate matters: a decade below the best, and the best."""
    found = ablation(factors=FACTORS, arms=ENDS)
    arms = {
        name: arm(
            name,
            run_config(lora(2 if "method.rank=2" in overrides else 1)),
            [2e-3 if ENDS["tuned"][1] in overrides else 2e-4],
            FACTORS,
        )
        for name, overrides in arm_overrides(found).items()
    }
    return plan_search(found, arms, "trl")


def path(store: ExperimentStore) -> list[str]:
    state = read_state(store)
    selections = {arm: Selection(**data) for arm, data in store.read_selections().items()}
    return [step.arm for step in steps(state.plan, state.records, selections)]


def test_workers_go_the_path_and_leave_when_it_has_ended(tmp_path: Path) -> None:
    store, plan = ExperimentStore(tmp_path / "toy"), ablation_of_the_rate()
    store.write_plan(to_json(plan))
    drain(store)
    state = read_state(store)
    assert len(state.records) == len(state.plan.runs) == sum(runs_in_all(plan))
    assert path(store) == ["default.learning_rate", "tuned"]
    reported = {run.arm for run in state.plan.runs if run.phase == "report"}
    assert reported == {"default", "default.learning_rate", "tuned"}
    store.write_plan(to_json(merge(state.plan, plan)))  # the same launch again
    drain(store)
    again = read_state(store)
    assert (again.plan.runs, again.plan.looks) == (state.plan.runs, 1)
