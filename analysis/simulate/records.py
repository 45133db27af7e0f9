"""Configurations, plans and records of runs that nobody trained, complete in every field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from analysis.estimates.curve import FloatArray
from study.config import ExperimentConfig, LoraMethod, RunConfig, SeedsConfig, run_config_from_dict
from study.plan.arms import NOT_COMPARED, Arm, arm_factors, check_distinct, flatten
from study.plan.description import ATTENTION, Description, resolve_targets, trainable_params
from study.plan.experiment import Plan, PlannedRun, with_cells
from study.plan.flops import forward_flops_per_token, train_flops_per_token
from study.plan.identity import short_hash
from study.records.record import Record

FINAL_WINDOW = 3
FIRST_REPORT_SEED = 100_000
TOKENS_TRAINED, TOKENS_GENERATED = 20, 12
"""Per episode: prompt and completion, and completion alone."""
STEP_S, MEMORY_BYTES = 0.03, 500_000_000
"""About what a lab run takes."""
DEFAULT_METHOD = {
    "full": {"name": "full", "default_learning_rate": 2e-4},
    "lora": {"name": "lora", "default_learning_rate": 1e-3, "rank": 8},
}
DEFAULTS: dict[str, dict[str, Any]] = {
    "model": {"name": "lab64", "source": "lab"},
    "task": {"name": "arithmetic", "train_prompts": 4096, "max_completion_length": 14},
    "objective": {
        "name": "grpo",
        "learning_rate": 1e-3,
        "steps": 200,
        "prompts_per_step": 8,
        "num_generations": 8,
        "micro_batch_size": None,
        "loss_type": "dr_grpo",
        "scale_rewards": "none",
        "beta": 0.0,
        "epsilon": 0.2,
        "epsilon_high": 0.2,
        "num_iterations": 1,
        "importance_sampling_level": "token",
        "mask_truncated_completions": False,
        "lr_scheduler_type": "constant",
        "warmup_steps": 0,
        "weight_decay": 0.0,
        "adam_beta1": 0.9,
        "adam_beta2": 0.999,
        "adam_epsilon": 1e-8,
        "max_grad_norm": 1.0,
        "temperature": 1.0,
        "no_signal_steps": 20,
    },
    "evaluation": {
        "eval_every": 20,
        "eval_prompts": 512,
        "final_window": FINAL_WINDOW,
        "eval_batch_size": 512,
    },
    "engine": {"name": "packed"},
}


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
    config, model, method = arm.config, arm.model, arm.config.method
    lora = method if isinstance(method, LoraMethod) else None
    steps = config.objective.steps // 2 if diverged else config.objective.steps
    episodes = steps * config.objective.prompts_per_step * config.objective.num_generations
    train = train_flops_per_token(method, arm.target_modules, model)
    adapters = arm.trainable_params if lora else 0
    dtypes = {"base": config.model.dtype, "optimizer": "float32" if lora else config.model.dtype}
    return Record(
        run_id=run.run_id,
        experiment=plan.experiment.name,
        arm=arm.name,
        phase=run.phase,
        factors=arm.factors,
        method=method.name,
        lora_rank=lora.rank if lora else None,
        lora_alpha=lora.alpha if lora else None,
        alpha_rule=lora.alpha_rule if lora else None,
        target_modules=arm.target_modules,
        learning_rate=run.learning_rate,
        prompts_per_step=config.objective.prompts_per_step,
        num_generations=config.objective.num_generations,
        objective=config.objective.name,
        task=config.task.label,
        model=config.model.name,
        model_revision=model.model_revision,
        hidden_size=model.hidden_size,
        seed=run.seed,
        engine=plan.engine,
        dtypes={**dtypes, "adapter": "float32"} if lora else dtypes,
        status="diverged" if diverged else "completed",
        status_reason="simulated collapse" if diverged else "",
        score_metric="eval/accuracy",
        direction="maximize",
        score_final=0.0 if diverged else float(scores[-FINAL_WINDOW:].mean()),
        score_best=float(scores[1:].max()),
        score_base=float(scores[0]),
        score_greedy=0.0 if diverged else greedy,
        final_window=FINAL_WINDOW,
        eval_prompts=config.evaluation.eval_prompts,
        steps_planned=config.objective.steps,
        steps_done=steps,
        episodes=episodes,
        trainable_params=arm.trainable_params,
        total_params=model.total_params + adapters,
        train_tokens=episodes * TOKENS_TRAINED,
        generated_tokens=episodes * TOKENS_GENERATED,
        train_flops=train * episodes * TOKENS_TRAINED,
        rollout_flops=forward_flops_per_token(model) * episodes * TOKENS_TRAINED,
        wall_time_s=STEP_S * steps,
        peak_memory_bytes=MEMORY_BYTES,
        git_commit="simulated",
    )
