"""From a command line to a checked plan: compose arms, describe models, apply the laws."""

from __future__ import annotations

import itertools
import multiprocessing
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields, replace
from pathlib import Path

from study.compose import compose, override_key, split_sweeps
from study.config import (
    BudgetConfig,
    ExperimentConfig,
    FullMethod,
    LoraMethod,
    MethodConfig,
    RunConfig,
    SeedsConfig,
    StudyConfig,
)
from study.plan.arms import RATE_KEY, Arm, arm_factors, check_rates
from study.plan.best import begin
from study.plan.description import Description, check_rank, resolve_targets, trainable_params
from study.plan.experiment import Plan, plan_search
from study.plan.identity import arm_identity, short_hash
from study.plan.lattice import arm_overrides
from study.plan.packs import EngineChoice, choose_engine, with_engine
from study.records.location import without_password
from study.sweep.claims.database import check_answers
from study.sweep.launch.choices import arm_name, for_every_arm, with_choices
from study.sweep.launch.grids import learning_rate_grids, rate_is_factor
from study.sweep.work.devices import leave_group


@dataclass(frozen=True, kw_only=True)
class Assembled:
    """What a command line asks for."""

    config: StudyConfig
    """The composition without sweeps and arms: settings of the sweep itself."""
    plan: Plan
    engine: EngineChoice
    path: Path
    """Directory of the experiment."""
    fixed: list[str]
    """Overrides without sweeps; worker processes are started with them."""

    @property
    def run_ids(self) -> set[str]:
        """Runs that this command line asks for; the experiment on disk may hold more."""
        return {run.run_id for run in self.plan.runs}


def assemble(arguments: Sequence[str]) -> Assembled:
    """Plan what ``python -m study -m ARGUMENTS`` asks for.

    Raises:
        ValueError: one sentence for anything wrong with the command line, the arms, the model
            or the task; no weights have been read by then.
    """
    fixed, swept = split_sweeps(arguments)
    if "experiment" in swept:
        raise ValueError("one experiment at a time: experiment= takes one name, no list")
    config = compose(fixed)
    _check_storage(config)
    if config.experiment is not None:
        if swept:
            key = next(iter(swept))
            raise ValueError(
                f"experiment={config.experiment.name} names its own arms, so {key} cannot be "
                "swept beside it; add an arm to its file or leave experiment= out"
            )
        planned = _plan_experiment(config, config.experiment, fixed)
    else:
        check_run_keys("a sweep", [f"{key}=" for key in swept])
        _refuse_space(config)
        planned = _plan_adhoc(config, fixed, swept)
    return _named(config, planned, fixed)


def assemble_single(config: StudyConfig) -> Assembled:
    """Plan one run, as ``python -m study ...`` asks for.

    Raises:
        ValueError: as for :func:`assemble`.
    """
    _refuse_space(config)
    if config.budget != BudgetConfig():
        raise ValueError("budget is only read by a sweep (-m): leave it out of a single run")
    _check_storage(config)
    run = config.run()
    description = describe_all({"single": run})["single"]
    arm = make_arm("single", run, [], [run.objective.learning_rate], description)
    name = f"{label(run.method)}-{short_hash(arm_identity(run, arm.model, arm.target_modules), 6)}"
    arm = replace(arm, name=name)
    experiment = _questionless("single", "single", {name: []}, [], [run.seed])
    return _named(config, _planned(config, experiment, {name: arm}), [])


def _check_storage(config: StudyConfig) -> None:
    """A database that takes no connection is refused before a model is described."""
    if not config.dry_run:
        check_answers(config.storage)


def _planned(
    config: StudyConfig, experiment: ExperimentConfig, arms: dict[str, Arm]
) -> tuple[Plan, EngineChoice]:
    engine = choose_engine(config.engine.name, arms)
    return plan_search(experiment, with_engine(arms, engine.name), engine.name), engine


def _named(config: StudyConfig, planned: tuple[Plan, EngineChoice], fixed: list[str]) -> Assembled:
    plan, engine = planned
    if config.name is not None:
        plan = replace(plan, experiment=replace(plan.experiment, name=config.name))
    place = None if config.storage is None else without_password(config.storage)
    plan = replace(plan, max_retries=config.max_retries, storage=place)
    plan = plan if plan.experiment.best is None else begin(plan)
    path = Path(config.runs_dir).expanduser().absolute() / plan.experiment.name
    return Assembled(config=config, plan=plan, engine=engine, path=path, fixed=fixed)


def _plan_experiment(
    config: StudyConfig, experiment: ExperimentConfig, fixed: list[str]
) -> tuple[Plan, EngineChoice]:
    experiment = with_choices(experiment)
    _check_overrides(experiment, fixed)
    for name, overrides in experiment.arms.items():
        excluded = NOT_OF_AN_ARM[1:] if rate_is_factor(experiment) else NOT_OF_AN_ARM
        check_run_keys(f"arm {name!r}", overrides, excluded)
    every = arm_overrides(experiment)
    configs = for_every_arm(lambda _, overrides: compose([*fixed, *overrides]).run(), every)
    grids = learning_rate_grids(config, experiment, configs)
    models = describe_all(configs)
    arms = for_every_arm(
        lambda name, run: make_arm(name, run, experiment.factors, grids[name], models[name]),
        configs,
    )
    return _planned(config, experiment, arms)


def _check_overrides(experiment: ExperimentConfig, fixed: list[str]) -> None:
    """What an arm sets cannot be set for all arms as well, and the grid sets the rate."""
    keys = {override_key(override) for override in fixed}
    for name, overrides in experiment.arms.items():
        clash = sorted(keys & {override_key(override) for override in overrides})
        if clash:
            raise ValueError(
                f"{clash[0]} is set by arm {name!r} of experiment {experiment.name}; it cannot "
                "be overridden for all arms"
            )
    if RATE_KEY in keys:
        raise ValueError(
            f"{RATE_KEY} is searched in experiment {experiment.name}; override "
            "space.learning_rate instead"
        )
    if "seed" in keys:
        raise ValueError("seeds of an experiment are experiment.seeds.search and .report, not seed")


RUN_KEYS = tuple(f.name for f in fields(RunConfig))
NOT_OF_AN_ARM = (RATE_KEY, "seed", "engine", "probes")
"""What varies inside an arm or is one for all, and so cannot be set by one."""


def check_run_keys(who: str, overrides: Sequence[str], excluded: Sequence[str] = ()) -> None:
    """Refuse overrides that would change nothing in a run, or what ``who`` may not set."""
    for override in overrides:
        key = override_key(override)
        group = key.split(".")[0]
        if group not in RUN_KEYS or key in excluded or group in excluded:
            raise ValueError(
                f"{who} can only set keys of a run ({', '.join(RUN_KEYS)}) and not "
                f"{' or '.join(NOT_OF_AN_ARM) if excluded else 'others'}, got {override!r}"
            )


def _refuse_space(config: StudyConfig) -> None:
    """Without an experiment nobody would read the grid."""
    if config.space.learning_rate:
        raise ValueError(
            f"space.learning_rate is only read with experiment=; set {RATE_KEY}=... instead"
        )


def _plan_adhoc(
    config: StudyConfig, fixed: list[str], swept: dict[str, list[str]]
) -> tuple[Plan, EngineChoice]:
    """A bare multirun: the cross product, arms being what is left without rate and seed."""
    keys = [key for key in swept if key not in (RATE_KEY, "seed")]
    overrides: dict[str, list[str]] = {}
    cells: dict[str, list[RunConfig]] = {}
    for values in itertools.product(*(swept[key] for key in keys)):
        chosen = [f"{key}={value}" for key, value in zip(keys, values, strict=True)]
        runs = _cells([*fixed, *chosen], swept)
        name = arm_name(keys, values) or label(runs[0].method)
        if name in cells:
            raise ValueError(
                f"two arms would be called {name!r}; make them an experiment file with names of "
                "their own"
            )
        overrides[name], cells[name] = chosen, runs
    descriptions = describe_all({name: runs[0] for name, runs in cells.items()})
    arms: dict[str, Arm] = {}
    for name, runs in cells.items():
        grid = check_rates(name, list({run.objective.learning_rate: None for run in runs}))
        arms[name] = make_arm(name, runs[0], keys, grid, descriptions[name])
    seeds = list({run.seed: None for runs in cells.values() for run in runs})
    experiment = _questionless("adhoc", "adhoc", overrides, keys, seeds)
    plan, engine = _planned(config, experiment, arms)
    name = f"adhoc-{short_hash(sorted(run.run_id for run in plan.runs), 8)}"
    return replace(plan, experiment=replace(experiment, name=name)), engine


def _cells(overrides: list[str], swept: dict[str, list[str]]) -> list[RunConfig]:
    """One configuration for each swept learning rate and seed."""
    axes = [
        [f"{key}={value}" for value in swept[key]] for key in (RATE_KEY, "seed") if key in swept
    ]
    return [compose([*overrides, *cell]).run() for cell in itertools.product(*axes)]


def _questionless(
    name: str, kind: str, arms: dict[str, list[str]], factors: list[str], seeds: list[int]
) -> ExperimentConfig:
    return ExperimentConfig(
        name=name,
        kind=kind,
        hypothesis="none: runs without a question are drawn without verdicts",
        decision_metric="held-out sampled accuracy",
        criterion="none",
        arms=arms,
        factors=factors,
        seeds=SeedsConfig(search=seeds, report=[]),
    )


def label(method: MethodConfig) -> str:
    """Short name of a method: ``full`` or ``lora-r8``."""
    if isinstance(method, LoraMethod):
        return f"lora-r{method.rank}"
    assert isinstance(method, FullMethod)
    return "full"


def make_arm(
    name: str, run: RunConfig, factors: list[str], rates: list[float], model: Description
) -> Arm:
    """An arm whose model is described, every law between method and model checked.

    Raises:
        ValueError: for a target that matches nothing, an impossible rank, or a task with
            characters that the tokenizer lacks.
    """
    if model.unknown_characters:
        raise ValueError(
            f"the tokenizer of model {run.model.name} lacks characters of task {run.task.name}: "
            f"{model.unknown_characters[:20]!r}"
        )
    targets = resolve_targets(run.method, model)
    check_rank(run.method, targets, model)
    return Arm(
        name=name,
        config=run,
        factors=arm_factors(run, factors),
        learning_rates=rates,
        model=model,
        target_modules=targets,
        trainable_params=trainable_params(run.method, targets, model),
    )


def describe_all(configs: Mapping[str, RunConfig]) -> dict[str, Description]:
    """Describe each arm's model and task in a child that may import torch.

    Arms often differ in their method alone, of which a description says nothing: what they share
    is described once.

    Raises:
        ValueError: what the description refused, of every arm.
    """
    parts = {n: repr((c.model, c.task, c.objective, c.evaluation)) for n, c in configs.items()}
    different = {parts[name]: config for name, config in configs.items()}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        asked = {part: pool.submit(_describe, config) for part, config in different.items()}
        return for_every_arm(lambda _, part: asked[part].result(), parts)


def _describe(config: RunConfig) -> Description:
    leave_group(os.environ)
    from study.train.describe import describe  # torch stays out of the parent

    return describe(config)
