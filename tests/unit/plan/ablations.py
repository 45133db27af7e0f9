"""Ablations whose truth is known, run to their end without training anything."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from study.config import AblateConfig, ExperimentConfig, RunConfig, SeedsConfig
from study.plan.ablate import grow
from study.plan.arms import Arm
from study.plan.experiment import Plan, PlannedRun, plan_search
from study.plan.lattice import Lattice, arm_overrides, lattice_of
from study.plan.select import Selection
from study.records.record import Record
from tests.plans import arm, experiment, lora, objective, run_config

FACTORS = ["method.rank", "objective.steps", "objective.prompts_per_step"]
"""Called a, b and c below; each is 1, 3 and 4 in the source, doubled in the target."""
ENDS = {
    "default": [],
    "tuned": ["method.rank=2", "objective.steps=6", "objective.prompts_per_step=8"],
}

Truth = Callable[[int, int, int], float]
"""Score of a configuration by which of a, b and c have been changed (0 or 1)."""
Noise = Callable[[PlannedRun], float]


def linear(a: int, b: int, c: int) -> float:
    """10 a + b + 0.1 c."""
    return 10 * a + b + 0.1 * c


def no_noise(run: PlannedRun) -> float:
    return 0.0


def ablation(**changes: Any) -> ExperimentConfig:
    """Three factors between ``default`` and ``tuned``, two search and three report seeds."""
    parts: dict[str, Any] = {
        "arms": ENDS,
        "factors": FACTORS,
        "seeds": SeedsConfig(search=[0, 1], report=[100, 101, 102]),
        "ablate": AblateConfig(source="default", target="tuned", path=True),
    }
    return experiment(**{**parts, **changes})


def configured(overrides: list[str]) -> RunConfig:
    values = dict(override.split("=") for override in overrides)
    steps = int(values.get("objective.steps", 3))
    prompts = int(values.get("objective.prompts_per_step", 4))
    return run_config(
        lora(int(values.get("method.rank", 1))),
        objective=objective(steps=steps, prompts_per_step=prompts),
    )


def all_arms(found: ExperimentConfig, rates: list[float]) -> dict[str, Arm]:
    return {
        name: arm(name, configured(overrides), rates, found.factors)
        for name, overrides in arm_overrides(found).items()
    }


def planned(rates: tuple[float, ...] = (1e-3,), **changes: Any) -> Plan:
    found = ablation(**changes)
    return plan_search(found, all_arms(found, list(rates)), "trl")


def lattice(plan: Plan) -> Lattice:
    found = lattice_of(plan.experiment)
    assert found is not None
    return found


def record(plan: Plan, run: PlannedRun, score: float | None) -> Record:
    known: dict[str, Any] = {f.name: None for f in dataclasses.fields(Record)}
    facts = dataclasses.asdict(run)
    status = "no_signal" if score is None else "completed"
    return Record(**{**known, **facts, "status": status, "score_final": score})


def scored(truth: Truth, noise: Noise = no_noise) -> Callable[[Plan, PlannedRun], float | None]:
    def score(plan: Plan, run: PlannedRun) -> float | None:
        changed = lattice(plan).changed[run.arm]
        a, b, c = (int(factor in changed) for factor in FACTORS)
        return truth(a, b, c) + noise(run)

    return score


def run_to_the_end(
    plan: Plan,
    score: Callable[[Plan, PlannedRun], float | None],
    records: Mapping[str, Record] | None = None,
    selections: Mapping[str, Selection] | None = None,
) -> tuple[Plan, dict[str, Record], dict[str, Selection]]:
    """Run whatever is planned, and grow, until nothing is open."""
    found, chosen = dict(records or {}), dict(selections or {})
    while True:
        plan, fresh = grow(plan, found, chosen)
        chosen |= {choice.arm: choice for choice in fresh}
        waiting = [run for run in plan.runs if run.run_id not in found]
        if not waiting:
            return plan, found, chosen
        found |= {run.run_id: record(plan, run, score(plan, run)) for run in waiting}
