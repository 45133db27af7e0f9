"""What a record says of a run besides whose it is and what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from study.config import GrpoObjective, LoraMethod, RunConfig
from study.plan.description import Description


def run_facts(
    config: RunConfig,
    model: Description,
    target_modules: Sequence[str],
    trainable_params: int,
) -> dict[str, Any]:
    """Fields of a :class:`study.records.record.Record` that follow from what was planned.

    Args:
        config: Of the run, with its learning rate and seed.
        model: That it trains.
        target_modules: Full names of the adapted layers.
        trainable_params: By the closed form.
    """
    method, objective = config.method, config.objective
    lora = method if isinstance(method, LoraMethod) else None
    grpo = objective if isinstance(objective, GrpoObjective) else None
    return {
        "method": method.name,
        "lora_rank": lora.rank if lora else None,
        "lora_alpha": lora.alpha if lora else None,
        "alpha_rule": lora.alpha_rule if lora else None,
        "target_modules": list(target_modules),
        "learning_rate": objective.learning_rate,
        "prompts_per_step": objective.prompts_per_step,
        "num_generations": grpo.num_generations if grpo else None,
        "objective": objective.name,
        "task": config.task.label,
        "model": config.model.name,
        "model_revision": model.model_revision,
        "hidden_size": model.hidden_size,
        "seed": config.seed,
        "score_metric": "eval/accuracy",
        "direction": "maximize",
        "final_window": config.evaluation.final_window,
        "eval_prompts": config.evaluation.eval_prompts,
        "steps_planned": objective.steps,
        "trainable_params": trainable_params,
        "total_params": model.total_params,
    }
