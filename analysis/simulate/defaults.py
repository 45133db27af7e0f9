"""The configuration that simulated runs have unless their arms say otherwise."""

from __future__ import annotations

from typing import Any

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
        "final_window": 3,
        "eval_batch_size": 512,
    },
    "engine": {"name": "packed"},
}
