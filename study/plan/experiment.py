"""The plan of an experiment: arms, grids, and every run with its id."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from study.config import (
    AblateConfig,
    BestConfig,
    EarlyStoppingConfig,
    ExperimentConfig,
    RefineConfig,
    SeedsConfig,
    run_config_from_dict,
    with_cell,
)
from study.plan.arms import (
    RATE_KEY,
    Arm,
    check_distinct,
    check_early_stopping,
    check_factors,
    check_grids,
    check_refine,
    extended,
    flatten,
)
from study.plan.description import Description
from study.plan.identity import arm_identity, identity, short_hash
from study.plan.lattice import lattice_of

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
    "ablate",
    "refine",
)
"""What an experiment means; it may grow, but these never change."""
BLOCKS: dict[str, type] = {
    "seeds": SeedsConfig,
    "early_stopping": EarlyStoppingConfig,
    "ablate": AblateConfig,
    "refine": RefineConfig,
    "best": BestConfig,
}
"""Parts of an experiment that are dataclasses of their own."""


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
    reserve: dict[str, Arm] = field(default_factory=dict)
    """Arms that results may call up: those of an ablation's path before they get their runs, and of
    a joint search before their first trial."""
    refined: dict[str, list[float]] = field(default_factory=dict)
    """Learning rates that ``experiment.refine`` added, by arm; the arms' grids stay equal."""
    looks: int = 1
    """1, and 1 more each time a launch added runs or report seeds: an experiment that grows after
    somebody saw its results is looked at repeatedly."""
    max_retries: int = 0
    """Further tries of a failed run, as the latest launch set it."""
    storage: str | None = None
    """URL of the Optuna storage, without its password; None: the journal beside the plan."""

    def run(self, run_id: str) -> PlannedRun:
        """The planned run of that id."""
        return next(run for run in self.runs if run.run_id == run_id)

    def cells(self, arm: str, phase: str) -> list[PlannedRun]:
        """The runs of one arm in one phase."""
        return [r for r in self.runs if r.arm == arm and r.phase == phase]

    def search_rates(self, arm: str) -> list[float]:
        """The rates that an arm's search runs at: its grid and refined ones, or what was tried."""
        if self.experiment.best is not None:
            return list(dict.fromkeys(run.learning_rate for run in self.cells(arm, "search")))
        return [*self.arms[arm].learning_rates, *self.refined.get(arm, [])]


def plan_search(experiment: ExperimentConfig, arms: dict[str, Arm], engine: str) -> Plan:
    """The first plan of an experiment: every search cell, seed by seed so that arms keep pace.

    Raises:
        ValueError: if arms differ in anything but the factors, or their grids differ.
    """
    _check_arms(experiment, arms)
    if experiment.kind == "experiment":
        check_early_stopping(experiment, arms)
    plan = Plan(experiment=experiment, engine=engine, arms={}, reserve=arms, runs=[])
    if experiment.best is not None:
        return plan
    lattice = lattice_of(experiment)
    return searching(plan, list(arms) if lattice is None else lattice.first)


def _check_arms(experiment: ExperimentConfig, arms: dict[str, Arm]) -> None:
    check_distinct(arms, experiment.factors)
    if experiment.kind == "experiment":
        check_factors(experiment, arms)
        if experiment.best is None:
            check_grids(arms, experiment.extend)
        if experiment.refine is not None:
            check_refine(arms)


def searching(plan: Plan, names: Iterable[str]) -> Plan:
    """The plan with search runs for these arms, called up from the reserve if they are there."""
    known = {**plan.arms, **plan.reserve}
    called = {name: known[name] for name in names}
    plan = dataclasses.replace(
        plan,
        arms={**plan.arms, **called},
        reserve={name: arm for name, arm in plan.reserve.items() if name not in called},
    )
    return with_cells(plan, "search", {name: plan.search_rates(name) for name in called})


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
    new = {run.run_id: run for run in added if run.run_id not in known}
    return dataclasses.replace(plan, runs=[*plan.runs, *new.values()])


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
    _check_storage(old, new)
    before = {**old.arms, **old.reserve}
    arms = dict(before)
    for name, arm in {**new.arms, **new.reserve}.items():
        if name not in before:
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
    started = [name for name in arms if name in old.arms or name in new.arms]
    if experiment.best is not None:
        started = list(old.arms)  # further arms join with the trials that try them
    grown = dataclasses.replace(
        old,
        experiment=experiment,
        engine=new.engine,
        arms={name: arms[name] for name in started},
        reserve={name: arm for name, arm in arms.items() if name not in started},
        max_retries=new.max_retries,
        storage=new.storage,
    )
    _check_arms(experiment, arms)
    if experiment.kind == "experiment":
        grown = searching(grown, started)
    else:
        known_ids = {run.run_id for run in old.runs}
        further = [run for run in new.runs if run.run_id not in known_ids]
        grown = dataclasses.replace(grown, runs=[*old.runs, *further])
    added = len(grown.runs) > len(old.runs) or seeds.report != old.experiment.seeds.report
    return dataclasses.replace(grown, looks=old.looks + added)


def _check_storage(old: Plan, new: Plan) -> None:
    """Workers that claim in two storages would train runs twice; single runs are claimed alone."""
    if old.storage != new.storage and old.experiment.kind != "single":
        raise ValueError(
            f"an experiment keeps its storage: {old.experiment.name} has storage={old.storage}, "
            f"got storage={new.storage}; to move it, stop its workers and change 'storage' in its "
            "plan.json"
        )


def _union(old: list[int], new: list[int]) -> list[int]:
    return [*old, *(seed for seed in new if seed not in old)]


def _check_same_meaning(old: Plan, new: Plan) -> None:
    for key in FIXED:
        before, after = getattr(old.experiment, key), getattr(new.experiment, key)
        if before != after:
            raise ValueError(_needs_new_name(old, f"experiment.{key}", before, after))
    best, later = old.experiment.best, new.experiment.best
    if best != later and (best is None or later is None or not best.grows(later)):
        raise ValueError(_needs_new_name(old, "experiment.best", best, later))
    old_arms, new_arms = ({**plan.arms, **plan.reserve} for plan in (old, new))
    for name in sorted(old_arms.keys() & new_arms.keys()):
        before_arm, after_arm = (
            flatten(_meaning(arms[name], old.experiment)) for arms in (old_arms, new_arms)
        )
        for key in sorted(before_arm.keys() | after_arm.keys()):
            if before_arm.get(key) != after_arm.get(key):
                where = f"arm {name}: {key}"
                raise ValueError(
                    _needs_new_name(old, where, before_arm.get(key), after_arm.get(key))
                )


def _meaning(arm: Arm, experiment: ExperimentConfig) -> dict[str, Any]:
    """What an arm stays: all but its grid, and that too if it is a range or the rate a factor."""
    fixed = RATE_KEY in experiment.factors or experiment.best is not None
    rate = {RATE_KEY: arm.learning_rates} if fixed else {}
    return arm_identity(arm.config, arm.model, arm.target_modules) | rate


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
    for key, block in BLOCKS.items():
        if experiment.get(key) is not None:
            experiment[key] = block(**experiment[key])
    arms, reserve = (
        {name: _arm_from_json(arm) for name, arm in data.get(key, {}).items()}
        for key in ("arms", "reserve")
    )
    return Plan(
        experiment=ExperimentConfig(**experiment),
        engine=data["engine"],
        arms=arms,
        runs=[PlannedRun(**run) for run in data["runs"]],
        extended=data["extended"],
        reserve=reserve,
        refined=data.get("refined", {}),
        looks=data["looks"],
        max_retries=data["max_retries"],
        storage=data.get("storage"),
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
