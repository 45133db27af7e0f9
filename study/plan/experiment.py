"""The plan of an experiment: arms, grids, and every run with its id."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property
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
    Arm,
    check_distinct,
    check_early_stopping,
    check_factors,
    check_grids,
    check_refine,
)
from study.plan.description import Description
from study.plan.identity import identity, short_hash
from study.plan.lattice import lattice_of

SCHEMA_VERSION = 1
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
    """1, and 1 more each time a launch added runs, or seeds or trials that will: an experiment that
    grows after somebody saw its results is looked at repeatedly."""
    max_retries: int = 0
    """Further tries of a failed run, as the latest launch set it."""
    storage: str | None = None
    """URL of the Optuna storage, without its password; None: the journal beside the plan."""
    id: str = ""
    """Drawn when the plan is first written: tells sweeps of one name in one storage apart."""

    @cached_property
    def phases(self) -> list[tuple[str, str]]:
        """Every arm with each phase in which it has runs."""
        return list(dict.fromkeys((run.arm, run.phase) for run in self.runs))

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
    check_arms(experiment, arms)
    if experiment.kind == "experiment":
        check_early_stopping(experiment, arms)
    plan = Plan(experiment=experiment, engine=engine, arms={}, reserve=arms, runs=[])
    if experiment.best is not None:
        return plan
    lattice = lattice_of(experiment)
    return searching(plan, list(arms) if lattice is None else lattice.first)


def check_arms(experiment: ExperimentConfig, arms: dict[str, Arm]) -> None:
    """Refuse arms that are the same, differ in more than the factors, or search unequally.

    Raises:
        ValueError: naming what differs.
    """
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
        id=data.get("id", ""),
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
