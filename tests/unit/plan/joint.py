"""Joint searches whose truth is known, run to their end without training anything."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from study.config import BestConfig, EarlyStoppingConfig, ExperimentConfig, ModelConfig, SeedsConfig
from study.plan import best
from study.plan.arms import Arm
from study.plan.experiment import Plan, PlannedRun, plan_search
from study.records.record import Record
from study.sweep.launch.choices import with_choices
from study.sweep.modes.search import grow
from tests.plans import arm, experiment, lora, objective, record_of, run_config

CHOICES: dict[str, list[Any]] = {
    "method.rank": [1, 2, 4],
    "objective.prompts_per_step": [4, 8, 16],
}
LOW, HIGH = 1e-4, 1e-2
TOP = (4, 8, 2e-3)
"""Rank, prompts per step and learning rate of the best score, 0.9."""

Score = Callable[[PlannedRun], float | None]


def settings(**changes: Any) -> BestConfig:
    """Nine combinations, twelve trials, two finalists."""
    parts: dict[str, Any] = {
        "choices": CHOICES,
        "low": LOW,
        "high": HIGH,
        "trials": 12,
        "finalists": 2,
    }
    return BestConfig(**{**parts, **changes})


def joint(found: BestConfig | None = None, **changes: Any) -> Plan:
    """A joint search before its first trial, one search and two report seeds."""
    seeds = changes.pop("seeds", SeedsConfig(search=[0], report=[100, 101]))
    config = experiment(best=found or settings(), arms={}, factors=[], seeds=seeds, **changes)
    config = with_choices(config)
    return plan_search(config, arms(config), "trl")


def arms(config: ExperimentConfig) -> dict[str, Arm]:
    """The arms of a joint search."""
    assert config.best is not None
    low, high = config.best.low or LOW, config.best.high or HIGH
    made: dict[str, Arm] = {}
    for name, overrides in config.arms.items():
        values = dict(override.split("=") for override in overrides)
        run = run_config(
            lora(int(values["method.rank"])),
            objective=objective(prompts_per_step=int(values["objective.prompts_per_step"])),
            model=ModelConfig(name="lab32", source="lab"),
        )
        made[name] = arm(name, run, [low, high], config.factors)
    return made


def truth(run: PlannedRun) -> float:
    """0.9 at the top, less by the squared distance in doublings and decades from it."""
    rank, prompts = map(float, re.findall(r"-(\d+)", run.arm))
    off = (
        0.05 * math.log2(rank / TOP[0]) ** 2
        + 0.05 * math.log2(prompts / TOP[1]) ** 2
        + 0.5 * math.log10(run.learning_rate / TOP[2]) ** 2
    )
    return 0.9 - off


def run_to_the_end(
    plan: Plan, score: Score = truth, room: int = 2, records: Mapping[str, Record] | None = None
) -> tuple[Plan, dict[str, Record]]:
    """Run whatever is planned, with ``room`` runs under way, until nothing is open."""
    found = dict(records or {})
    while True:
        plan, _ = grow(plan, found, {}, room)
        waiting = [run for run in plan.runs if run.run_id not in found]
        if not waiting:
            return plan, found
        found |= {run.run_id: record_of(run, score(run)) for run in waiting[:room]}


def stopping(**changes: Any) -> EarlyStoppingConfig:
    """Half of the runs stop at step 1, 2, 4."""
    return EarlyStoppingConfig(**{"grace_steps": 1, "keep": 0.5, "window": 1, **changes})


def regret(plan: Plan, records: Mapping[str, Record]) -> float:
    """What the best trial lacks to the best score there is, without noise."""
    tried = [run for run in plan.runs if run.phase == "search"]
    return 0.9 - max(truth(run) for run in tried if run.run_id in records)


def with_seed(plan: Plan, name: str) -> Plan:
    """The same search under another name, so with other suggestions."""
    return dataclasses.replace(plan, experiment=dataclasses.replace(plan.experiment, name=name))


def trials(plan: Plan) -> list[tuple[str, float]]:
    """Where it has looked, in order."""
    return [trial.point for trial in best.trials(plan)]
