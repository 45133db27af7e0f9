"""The settings of TRL's trainers, all of those that define a result made explicit."""

import dataclasses
from typing import Any

import torch
import trl
from transformers import TrainingArguments
from trl import GRPOConfig, SFTConfig

from study.config import GrpoObjective, RunConfig

OF_ONE_LOSS: dict[str, float] = {
    "sapo_temperature_pos": 1.0,
    "sapo_temperature_neg": 1.05,
    "vespo_k_pos": 2.0,
    "vespo_lambda_pos": 3.0,
    "vespo_k_neg": 3.0,
    "vespo_lambda_neg": 2.0,
}
"""Settings that one loss alone reads, at the values of its authors."""


def trainer_arguments(config: RunConfig, output_dir: str) -> TrainingArguments:
    """Returns the trainer's settings for a run; uses a GPU if there is one.

    Args:
        config: The run.
        output_dir: Directory that the trainer may write to; with these settings it does not.

    Raises:
        ValueError: If the installed TRL does not know a setting, or refuses a value.
    """
    if isinstance(config.objective, GrpoObjective):
        return grpo_arguments(config, output_dir)
    return sft_arguments(config, output_dir)


def grpo_arguments(config: RunConfig, output_dir: str) -> GRPOConfig:
    """Returns the settings of the GRPOTrainer; see :func:`trainer_arguments`."""
    objective = config.objective
    assert isinstance(objective, GrpoObjective)
    return _checked(GRPOConfig, config, output_dir, **_policy(config, objective))


def sft_arguments(config: RunConfig, output_dir: str) -> SFTConfig:
    """Returns the settings of the SFTTrainer; see :func:`trainer_arguments`."""
    return _checked(SFTConfig, config, output_dir, **_likelihood())


def _checked(kind: Any, config: RunConfig, output_dir: str, **own: Any) -> Any:
    values = {**own, **_optimizer(config), **_batch(config), **_program(config)}
    known = {field.name for field in dataclasses.fields(kind)}
    unknown = sorted(set(values) - known)
    if unknown:
        raise ValueError(f"TRL {trl.__version__} does not know the settings {unknown}.")
    try:
        return kind(output_dir=output_dir, **values)
    except (ValueError, TypeError) as error:
        law = " ".join(str(error).split())
        raise ValueError(f"TRL {trl.__version__} refuses the objective: {law}") from error


def _likelihood() -> dict[str, Any]:
    """What defines the likelihood of solutions; rows come tokenized, in their order."""
    return {
        "loss_type": "nll",
        "completion_only_loss": True,
        "assistant_only_loss": False,
        "label_smoothing_factor": 0.0,
        "router_aux_loss_coef": 0.0,  # the loss is the objective's alone, also on MoE models
        "max_length": None,
        "packing": False,
        "padding_free": False,
        "pad_to_multiple_of": None,
        "dataset_kwargs": {"skip_prepare_dataset": True},
        "shuffle_dataset": False,
        "train_sampling_strategy": "sequential",
        "activation_offloading": False,
        "use_liger_kernel": False,
    }


def _policy(config: RunConfig, objective: GrpoObjective) -> dict[str, Any]:
    """What defines the policy gradient; a batch is generated whole, then split."""
    rows = objective.rows_per_step
    return {
        "steps_per_generation": rows // (objective.micro_batch_size or rows),
        "shuffle_dataset": True,
        "data_seed": config.seed,
        "loss_type": objective.loss_type,
        **OF_ONE_LOSS,
        "scale_rewards": objective.scale_rewards,
        "beta": objective.beta,
        "epsilon": objective.epsilon,
        "epsilon_high": objective.epsilon_high,
        "delta": None,
        "num_iterations": objective.num_iterations,
        "importance_sampling_level": objective.importance_sampling_level,
        "mask_truncated_completions": objective.mask_truncated_completions,
        "multi_objective_aggregation": "sum_then_normalize",
        "use_bias_correction_kl": True,  # weigh the penalty by the probability ratio
        "off_policy_mask_threshold": None,
        "top_entropy_quantile": objective.top_entropy_quantile,
        "entropy_coef": 0.0,
        "use_adaptive_entropy": False,
        "router_aux_loss_coef": 0.0,  # the loss is the objective's alone, also on MoE models
        "cast_lm_head_to_fp32": False,
        "sync_ref_model": False,
        "disable_dropout": True,  # with it, the policy that trains is not the one that sampled
        "temperature": objective.temperature,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": None,
        "repetition_penalty": 1.0,
        "max_completion_length": config.task.max_completion_length,
        "num_generations": objective.num_generations,
        "pad_to_multiple_of": None,
        "generation_kwargs": None,
        "use_transformers_continuous_batching": False,
        "use_vllm": False,
        "log_completions": False,
    }


def _optimizer(config: RunConfig) -> dict[str, Any]:
    """AdamW, its schedule, and the precision it works in."""
    objective = config.objective
    return {
        "optim": "adamw_torch_fused",
        "learning_rate": objective.learning_rate,
        "lr_scheduler_type": objective.lr_scheduler_type,
        "warmup_steps": objective.warmup_steps,
        "weight_decay": objective.weight_decay,
        "adam_beta1": objective.adam_beta1,
        "adam_beta2": objective.adam_beta2,
        "adam_epsilon": objective.adam_epsilon,
        "max_grad_norm": objective.max_grad_norm,
        "bf16": False,  # no autocast: the model's own precision is the precision of the run
        "fp16": False,
        "use_cpu": not torch.cuda.is_available(),
    }


def _batch(config: RunConfig) -> dict[str, Any]:
    """Rows of a step and of a forward pass."""
    objective = config.objective
    rows = objective.rows_per_step
    micro = objective.micro_batch_size or rows
    return {
        "per_device_train_batch_size": micro,
        "gradient_accumulation_steps": rows // micro,
        "max_steps": objective.steps,
        "seed": config.seed,
        "remove_unused_columns": False,
        "dataloader_num_workers": 0,
        "dataloader_pin_memory": False,
    }


def _program(config: RunConfig) -> dict[str, Any]:
    """What does not change a result: no files, no network, no bars, one log line a step."""
    return {
        "gradient_checkpointing": False,
        "logging_strategy": "steps",
        "logging_steps": 1,
        "logging_nan_inf_filter": False,  # it would log an average in place of a NaN loss
        "save_strategy": "no",
        "eval_strategy": "no",
        "report_to": "none",
        "push_to_hub": False,
        "disable_tqdm": True,
        "log_level": "error",
        "skip_memory_metrics": True,
        "trust_remote_code": config.model.trust_remote_code,
    }
