"""Configurations, plans and records of runs that nobody trained, complete in every field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from analysis.estimates.curve import FloatArray
from analysis.simulate.defaults import DEFAULT_METHOD, DEFAULTS
from study.config import (
    ExperimentConfig,
    LoraMethod,
    RunConfig,
    SeedsConfig,
    run_config_from_dict,
    with_cell,
)
from study.plan.arms import NOT_COMPARED, Arm, arm_factors, check_distinct, flatten
from study.plan.description import ATTENTION, Description, resolve_targets, trainable_params
from study.plan.experiment import Plan, PlannedRun, with_cells
from study.plan.facts import run_facts
from study.plan.flops import Sequences, forward_flops, train_flops
from study.plan.identity import short_hash
from study.records.record import Record

FIRST_REPORT_SEED = 100_000
TOKENS_TRAINED, TOKENS_GENERATED = 20, 12
"""Per episode: prompt and completion, and completion alone."""
STEP_S, MEMORY_BYTES = 0.03, 500_000_000
"""About what a lab run takes."""


def build_arm(
    name: str, overrides: Mapping[str, Any], rates: tuple[float, ...], settings: Mapping[str, int]
) -> Arm:
    """An arm of the default configuration with ``overrides`` by dotted key.

    Args:
        name: Of the arm.
        overrides: ``{"method.rank": 8}`` and so on.
        rates: Its grid, ascending.
        settings: ``steps``, ``eval_every``, ``eval_prompts`` of the experiment.

    Raises:
        ValueError: for a key that no configuration has, or a value it refuses.
    """
    config = _config(overrides, settings)
    model = _description(config.model.name)
    targets = resolve_targets(config.method, model)
    return Arm(
        name=name,
        config=config,
        factors={},
        learning_rates=list(rates),
        model=model,
        target_modules=targets,
        trainable_params=trainable_params(config.method, targets, model),
    )


def _config(overrides: Mapping[str, Any], settings: Mapping[str, int]) -> RunConfig:
    groups = {name: dict(values) for name, values in DEFAULTS.items()}
    method = overrides.get("method.name", "full")
    if method not in DEFAULT_METHOD:
        raise ValueError(f"method.name must be one of {', '.join(DEFAULT_METHOD)}, got {method!r}")
    groups["method"] = dict(DEFAULT_METHOD[method])
    groups["objective"]["steps"] = settings["steps"]
    groups["evaluation"] |= {k: settings[k] for k in ("eval_every", "eval_prompts")}
    for key, value in overrides.items():
        group, _, leaf = key.partition(".")
        if group not in groups or not leaf:
            raise ValueError(f"a key of a run's configuration looks like method.rank, got {key!r}")
        groups[group][leaf] = value
    try:
        return run_config_from_dict({**groups, "seed": 0, "save": "none"})
    except TypeError as error:
        raise ValueError(f"no configuration has these keys: {', '.join(overrides)}") from error


def _description(name: str) -> Description:
    """Two blocks like the lab models': hidden size from the name, an MLP four times as wide."""
    digits = re.search(r"\d+", name)
    hidden = int(digits.group()) if digits else 64
    shapes: dict[str, tuple[int, int]] = {}
    for block in range(2):
        shapes |= {f"model.layers.{block}.self_attn.{leaf}": (hidden, hidden) for leaf in ATTENTION}
        for leaf in ("gate_proj", "up_proj"):
            shapes[f"model.layers.{block}.mlp.{leaf}"] = (4 * hidden, hidden)
        shapes[f"model.layers.{block}.mlp.down_proj"] = (hidden, 4 * hidden)
    return Description(
        model_revision=short_hash(name, 16),
        hidden_size=hidden,
        vocab_size=16,
        linear_modules=shapes,
        total_params=sum(a * b for a, b in shapes.values()) + 16 * hidden,
        max_prompt_tokens=8,
        unknown_characters="",
        data_revision="simulated",
    )


def build_plan(
    name: str, arms: Mapping[str, Arm], search_seeds: int, report_seeds: int, margin: float | None
) -> Plan:
    """The plan of the search phase; the factors are whatever the arms differ in.

    Raises:
        ValueError: if two arms are the same configuration, or a name is none.
    """
    check_distinct(dict(arms))
    factors = _factors(arms)
    report = range(FIRST_REPORT_SEED, FIRST_REPORT_SEED + report_seeds)
    experiment = ExperimentConfig(
        name=name,
        hypothesis="Simulated: the truth is known.",
        decision_metric="held-out sampled accuracy, mean of the last three evaluations",
        criterion="The interval lies inside the margin.",
        arms={arm: [] for arm in arms},
        factors=factors,
        seeds=SeedsConfig(search=list(range(search_seeds)), report=list(report)),
        margin=margin,
    )
    settled = {
        key: replace(arm, factors=arm_factors(arm.config, factors)) for key, arm in arms.items()
    }
    plan = Plan(experiment=experiment, engine="packed", arms=settled, runs=[], max_retries=2)
    return with_cells(plan, "search", {key: arm.learning_rates for key, arm in arms.items()})


def _factors(arms: Mapping[str, Arm]) -> list[str]:
    """Keys in which the arms differ; ``method`` as a whole if the method does."""
    flat = [flatten(asdict(arm.config)) for arm in arms.values()]
    keys = {key for values in flat for key in values} - set(NOT_COMPARED)
    differing = [k for k in sorted(keys) if len({repr(values.get(k)) for values in flat}) > 1]
    if "method.name" in differing:
        return ["method", *(k for k in differing if not k.startswith("method."))]
    return differing


def run_record(
    plan: Plan, arm: Arm, run: PlannedRun, scores: FloatArray, greedy: float, diverged: bool
) -> Record:
    """The record of one run.

    Args:
        plan: Of the experiment.
        arm: Of the run.
        run: Which one.
        scores: Its evaluations, the base's first.
        greedy: Mean greedy accuracy of the last ones.
        diverged: Whether it diverged half way, which scores 0.
    """
    config = with_cell(arm.config, run.learning_rate, run.seed)
    objective = config.objective
    steps = objective.steps // 2 if diverged else objective.steps
    episodes = steps * objective.rows_per_step
    tokens = episodes * TOKENS_TRAINED
    planned = run_facts(config, arm.model, arm.target_modules, arm.trainable_params)
    lengths = [(TOKENS_TRAINED - TOKENS_GENERATED, TOKENS_GENERATED)]
    passes, drawn = (one(lengths) * episodes for one in (Sequences.trained, Sequences.sampled))
    return Record(
        run_id=run.run_id,
        experiment=plan.experiment.name,
        arm=arm.name,
        phase=run.phase,
        factors=arm.factors,
        engine=plan.engine,
        dtypes=_dtypes(config),
        status="diverged" if diverged else "completed",
        status_reason="simulated collapse" if diverged else "",
        score_final=0.0 if diverged else float(scores[-config.evaluation.final_window :].mean()),
        score_best=float(scores[1:].max()),
        score_base=float(scores[0]),
        score_greedy=0.0 if diverged else greedy,
        steps_done=steps,
        episodes=episodes,
        train_tokens=tokens,
        generated_tokens=episodes * TOKENS_GENERATED,
        train_flops=train_flops(config.method, arm.target_modules, arm.model, passes),
        rollout_flops=forward_flops(arm.model, drawn),
        wall_time_s=STEP_S * steps,
        peak_memory_bytes=MEMORY_BYTES,
        git_commit="simulated",
        **planned,
    )


def _dtypes(config: RunConfig) -> dict[str, str]:
    if isinstance(config.method, LoraMethod):
        return {"base": config.model.dtype, "adapter": "float32", "optimizer": "float32"}
    return {"base": config.model.dtype, "optimizer": config.model.dtype}
