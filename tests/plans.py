"""Small plans for tests, made without Hydra, torch or model files."""

from __future__ import annotations

import dataclasses
from typing import Any

from analysis.simulate.defaults import DEFAULTS
from study.config import (
    ArithmeticTaskConfig,
    EngineConfig,
    EvaluationConfig,
    ExperimentConfig,
    FullMethod,
    GrpoObjective,
    LoraMethod,
    MethodConfig,
    ModelConfig,
    RunConfig,
    SeedsConfig,
)
from study.plan.arms import Arm, arm_factors
from study.plan.description import Description, resolve_targets, trainable_params
from study.plan.experiment import Plan, PlannedRun, plan_search
from study.records.record import Record

FULL_RATES = [2e-5, 2e-4, 2e-3]
LORA_RATES = [2e-4, 2e-3, 2e-2]


def description(**changes: Any) -> Description:
    """Two blocks of hidden size 8 with an MLP of 16, vocabulary 10, tied head.

    Linear weights per block: 4 x 8 x 8 + 3 x 8 x 16 = 640; embedding 80; parameters 1,360.
    """
    shapes: dict[str, tuple[int, int]] = {}
    for block in range(2):
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            shapes[f"model.layers.{block}.self_attn.{name}"] = (8, 8)
        for name in ("gate_proj", "up_proj"):
            shapes[f"model.layers.{block}.mlp.{name}"] = (16, 8)
        shapes[f"model.layers.{block}.mlp.down_proj"] = (8, 16)
    facts: dict[str, Any] = {
        "model_revision": "abc",
        "hidden_size": 8,
        "vocab_size": 10,
        "linear_modules": shapes,
        "total_params": 1360,
        "max_prompt_tokens": 9,
        "unknown_characters": "",
        "data_revision": "def",
        "packed_refusal": "",
    }
    return Description(**{**facts, **changes})


def objective(**changes: Any) -> GrpoObjective:
    """Three steps of four prompts in groups of two."""
    short = {"steps": 3, "prompts_per_step": 4, "num_generations": 2, "no_signal_steps": 3}
    return GrpoObjective(**{**DEFAULTS["objective"], **short, **changes})


def full() -> FullMethod:
    """Full fine-tuning."""
    return FullMethod(name="full", default_learning_rate=2e-4)


def lora(rank: int = 1, **changes: Any) -> LoraMethod:
    """LoRA on all layers."""
    return LoraMethod(name="lora", default_learning_rate=1e-3, rank=rank, **changes)


def run_config(method: MethodConfig | None = None, **changes: Any) -> RunConfig:
    """A run of three steps on arithmetic."""
    parts: dict[str, Any] = {
        "model": ModelConfig(name="double", source="lab"),
        "method": method or lora(),
        "task": ArithmeticTaskConfig(name="arithmetic", train_prompts=64, max_completion_length=8),
        "objective": objective(),
        "evaluation": EvaluationConfig(
            eval_every=1, eval_prompts=16, final_window=1, eval_batch_size=16
        ),
        "engine": EngineConfig(name="trl"),
        "seed": 0,
        "save": "none",
    }
    return RunConfig(**{**parts, **changes})


def experiment(**changes: Any) -> ExperimentConfig:
    """Two arms, two search and two report seeds."""
    parts: dict[str, Any] = {
        "name": "toy",
        "hypothesis": "h",
        "decision_metric": "m",
        "criterion": "c",
        "arms": {"full": ["method=full"], "lora-r1": ["method=lora", "method.rank=1"]},
        "factors": ["method"],
        "seeds": SeedsConfig(search=[0, 1], report=[100, 101]),
    }
    return ExperimentConfig(**{**parts, **changes})


def arm(name: str, config: RunConfig, rates: list[float], factors: list[str] | None = None) -> Arm:
    """An arm of the described double model."""
    model = description()
    targets = resolve_targets(config.method, model)
    return Arm(
        name=name,
        config=config,
        factors=arm_factors(config, factors or ["method"]),
        learning_rates=rates,
        model=model,
        target_modules=targets,
        trainable_params=trainable_params(config.method, targets, model),
    )


def toy_plan(full_rates: list[float] = FULL_RATES, engine: str = "trl", **changes: Any) -> Plan:
    """12 search runs: two arms x three learning rates x two seeds."""
    by = EngineConfig(name=engine)
    arms = {
        "full": arm("full", run_config(full(), engine=by), full_rates),
        "lora-r1": arm("lora-r1", run_config(lora(), engine=by), LORA_RATES),
    }
    return plan_search(experiment(**changes), arms, engine)


def record_of(run: PlannedRun, score: float | None, **changes: Any) -> Record:
    """The record of a run with this score, without any measurements."""
    known: dict[str, Any] = {f.name: None for f in dataclasses.fields(Record)}
    status = "no_signal" if score is None else "completed"
    facts = {**dataclasses.asdict(run), "status": status, "score_final": score, **changes}
    return Record(**{**known, **facts})
