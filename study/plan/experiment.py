"""The plan of an experiment: arms, grids, and every run with its id."""

from __future__ import annotations

import dataclasses
from dataclasses import asdict, dataclass, field
from typing import Any

from study.config import (
    EarlyStoppingConfig,
    ExperimentConfig,
    SeedsConfig,
    run_config_from_dict,
    with_cell,
)
from study.plan.arms import (
    Arm,
    check_distinct,
    check_early_stopping,
    check_factors,
    check_grids,
    extended,
    flatten,
)
from study.plan.description import Description
from study.plan.identity import arm_identity, identity, short_hash

SCHEMA_VERSION = 1
FIXED = (
    "kind",
    "hypothesis",
    "decision_metric",
    "criterion",
    "factors",
    "margin",
    "extend",
    "early_stopping",
)
"""What an experiment means; it may grow, but these never change."""


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One cell of the plan: an arm at a learning rate and a seed."""

    run_id: str
    arm: str
    phase: str
    """``search`` or ``report``."""
    learning_rate: float
    seed: int


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What ``plan.json`` holds; it only grows."""

    experiment: ExperimentConfig
    engine: str
    """``packed`` or ``trl``, of all arms; of the latest launch where the runs are single ones."""
    arms: dict[str, Arm]
    runs: list[PlannedRun]
    extended: list[str] = field(default_factory=list)
    """Sides (``low``, ``high``) on which the grids have been extended."""
    looks: int = 1
    """1, and 1 more each time a launch added runs: a growing experiment is looked at repeatedly."""
    max_retries: int = 0
    """Further tries of a failed run, as the latest launch set it."""

    def run(self, run_id: str) -> PlannedRun:
        """The planned run of that id."""
        return next(run for run in self.runs if run.run_id == run_id)

    def cells(self, arm: str, phase: str) -> list[PlannedRun]:
        """The runs of one arm in one phase."""
        return [r for r in self.runs if r.arm == arm and r.phase == phase]


def plan_search(experiment: ExperimentConfig, arms: dict[str, Arm], engine: str) -> Plan:
    """The first plan of an experiment: every search cell, seed by seed so that arms keep pace.

    Raises:
        ValueError: if arms differ in anything but the factors, or their grids differ.
    """
    check_distinct(arms)
    if experiment.kind == "experiment":
        check_factors(experiment, arms)
        check_grids(arms, experiment.extend)
        check_early_stopping(experiment.early_stopping, arms)
    plan = Plan(experiment=experiment, engine=engine, arms=arms, runs=[])
    return with_cells(plan, "search", {name: arm.learning_rates for name, arm in arms.items()})


def with_cells(plan: Plan, phase: str, rates: dict[str, list[float]]) -> Plan:
    """The plan with runs for each arm's ``rates`` and every seed of ``phase`` added once."""
    seeds: SeedsConfig = plan.experiment.seeds
    known = {run.run_id for run in plan.runs}
    added: list[PlannedRun] = []
    longest = max((len(r) for r in rates.values()), default=0)
    for seed in getattr(seeds, phase):
        for index in range(longest):
            for name, grid in rates.items():
                if index < len(grid):
                    added.append(planned_run(plan.arms[name], phase, grid[index], seed))
    new = [run for run in added if run.run_id not in known]
    return dataclasses.replace(plan, runs=[*plan.runs, *new])


def planned_run(arm: Arm, phase: str, learning_rate: float, seed: int) -> PlannedRun:
    """The run of one cell, with its id."""
    config = with_cell(arm.config, learning_rate, seed)
    run_id = short_hash(identity(config, arm.model, arm.target_modules, phase))
    return PlannedRun(
        run_id=run_id, arm=arm.name, phase=phase, learning_rate=learning_rate, seed=seed
    )


def merge(old: Plan, new: Plan) -> Plan:
    """The grown plan: old runs first, then what ``new`` adds; engine and retries are ``new``'s.

    Raises:
        ValueError: if ``new`` changes the meaning of the experiment instead of growing it.
    """
    _check_same_meaning(old, new)
    arms = dict(old.arms)
    for name, arm in new.arms.items():
        if name not in old.arms:
            arm = extended(arm, old.extended, new.experiment.extend)
        known = arms.get(name, arm)
        grid = sorted({*known.learning_rates, *arm.learning_rates})
        arms[name] = dataclasses.replace(arm, learning_rates=grid)
    seeds = SeedsConfig(
        search=_union(old.experiment.seeds.search, new.experiment.seeds.search),
        report=_union(old.experiment.seeds.report, new.experiment.seeds.report),
    )
    overrides = {**old.experiment.arms, **new.experiment.arms}
    experiment = dataclasses.replace(new.experiment, arms=overrides, seeds=seeds)
    grown = dataclasses.replace(
        old, experiment=experiment, engine=new.engine, arms=arms, max_retries=new.max_retries
    )
    check_distinct(arms)
    if experiment.kind == "experiment":
        check_factors(experiment, arms)
        check_grids(arms, experiment.extend)
        rates = {name: arm.learning_rates for name, arm in arms.items()}
        grown = with_cells(grown, "search", rates)
    else:
        known_ids = {run.run_id for run in old.runs}
        added = [run for run in new.runs if run.run_id not in known_ids]
        grown = dataclasses.replace(grown, runs=[*old.runs, *added])
    return dataclasses.replace(grown, looks=old.looks + (len(grown.runs) > len(old.runs)))


def _union(old: list[int], new: list[int]) -> list[int]:
    return [*old, *(seed for seed in new if seed not in old)]


def _check_same_meaning(old: Plan, new: Plan) -> None:
    for key in FIXED:
        before, after = getattr(old.experiment, key), getattr(new.experiment, key)
        if before != after:
            raise ValueError(_needs_new_name(old, f"experiment.{key}", before, after))
    for name in old.arms.keys() & new.arms.keys():
        before_arm, after_arm = (
            flatten(arm_identity(a.config, a.model, a.target_modules))
            for a in (old.arms[name], new.arms[name])
        )
        for key in sorted(before_arm.keys() | after_arm.keys()):
            if before_arm.get(key) != after_arm.get(key):
                where = f"arm {name}: {key}"
                raise ValueError(
                    _needs_new_name(old, where, before_arm.get(key), after_arm.get(key))
                )


def _needs_new_name(old: Plan, key: str, before: object, after: object) -> str:
    return (
        f"an experiment may grow but not change: {key} was {before!r} in {old.experiment.name} "
        f"and is {after!r} now; give the changed experiment a new name=..."
    )


def to_json(plan: Plan) -> dict[str, Any]:
    """The content of ``plan.json``."""
    return {"schema_version": SCHEMA_VERSION, **asdict(plan)}


def from_json(data: dict[str, Any]) -> Plan:
    """Read what :func:`to_json` wrote.

    Raises:
        ValueError: for another schema version.
    """
    if data.get("schema_version") != SCHEMA_VERSION:
        raise ValueError(
            f"plan.json has schema_version {data.get('schema_version')!r}, this program reads "
            f"{SCHEMA_VERSION}"
        )
    experiment = dict(data["experiment"])
    experiment["seeds"] = SeedsConfig(**experiment["seeds"])
    if experiment.get("early_stopping") is not None:
        experiment["early_stopping"] = EarlyStoppingConfig(**experiment["early_stopping"])
    arms = {name: _arm_from_json(arm) for name, arm in data["arms"].items()}
    return Plan(
        experiment=ExperimentConfig(**experiment),
        engine=data["engine"],
        arms=arms,
        runs=[PlannedRun(**run) for run in data["runs"]],
        extended=data["extended"],
        looks=data["looks"],
        max_retries=data["max_retries"],
    )


def _arm_from_json(data: dict[str, Any]) -> Arm:
    model = dict(data["model"])
    model["linear_modules"] = {k: (v[0], v[1]) for k, v in model["linear_modules"].items()}
    return Arm(
        **{
            **data,
            "config": run_config_from_dict(data["config"]),
            "model": Description(**model),
        }
    )
