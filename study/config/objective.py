"""What a run optimises."""

from __future__ import annotations

import math
from dataclasses import dataclass

from study.config.laws import require, require_one_of

LOSS_TYPES = ("grpo", "bnpo", "dr_grpo", "dapo")
SCALE_REWARDS = ("none", "group", "batch")
SCHEDULES = ("constant", "linear", "cosine", "constant_with_warmup")


@dataclass(kw_only=True)
class GrpoObjective:
    """GRPO; every setting that defines the loss is explicit (field names are those of TRL)."""

    name: str
    """``grpo``."""
    learning_rate: float
    """Peak learning rate of AdamW; A and B share it under LoRA."""
    steps: int
    """Optimizer steps."""
    prompts_per_step: int
    """Distinct prompts per optimizer step: the batch size of the paper's curves."""
    num_generations: int
    """Completions per prompt: the group size."""
    micro_batch_size: int | None
    """Completions per forward pass; null: the whole step at once."""
    loss_type: str
    """``grpo``, ``bnpo``, ``dr_grpo`` or ``dapo``: the normaliser of the token loss."""
    scale_rewards: str
    """``none``: mean-centred advantages; ``group`` or ``batch``: divided by that SD."""
    beta: float
    """Weight of the KL penalty to the base policy."""
    epsilon: float
    """Lower clip range of the probability ratio."""
    epsilon_high: float
    """Upper clip range of the probability ratio."""
    num_iterations: int
    """Optimizer passes over one batch of completions."""
    importance_sampling_level: str
    """``token`` or ``sequence``."""
    mask_truncated_completions: bool
    """Leave completions without an end token out of the loss."""
    lr_scheduler_type: str
    """``constant``, ``linear``, ``cosine``, ``constant_with_warmup``; the horizon is ``steps``."""
    warmup_steps: int
    """Steps of linear warm-up."""
    weight_decay: float
    """AdamW weight decay."""
    adam_beta1: float
    """AdamW beta 1."""
    adam_beta2: float
    """AdamW beta 2."""
    adam_epsilon: float
    """AdamW epsilon."""
    max_grad_norm: float
    """Gradient norm clip of the run; 0 switches it off."""
    temperature: float
    """Sampling temperature, in training and in sampled evaluation."""
    no_signal_steps: int
    """A run whose first so many steps hold no group of unequal rewards ends as ``no_signal``."""

    def __post_init__(self) -> None:
        rate = self.learning_rate
        require(math.isfinite(rate) and rate > 0, "objective.learning_rate > 0", learning_rate=rate)
        for name in ("steps", "prompts_per_step", "num_iterations", "no_signal_steps"):
            value = getattr(self, name)
            require(value >= 1, f"objective.{name} >= 1", **{name: value})
        require(
            self.num_generations >= 2,
            "objective.num_generations >= 2 (a group of one has no advantage)",
            num_generations=self.num_generations,
        )
        require_one_of("objective.loss_type", self.loss_type, LOSS_TYPES)
        require_one_of("objective.scale_rewards", self.scale_rewards, SCALE_REWARDS)
        require_one_of("objective.lr_scheduler_type", self.lr_scheduler_type, SCHEDULES)
        level = self.importance_sampling_level
        require_one_of("objective.importance_sampling_level", level, ("token", "sequence"))
        for name in ("beta", "weight_decay", "warmup_steps", "max_grad_norm"):
            value = getattr(self, name)
            require(value >= 0, f"objective.{name} >= 0", **{name: value})
        for name in ("epsilon", "epsilon_high", "temperature", "adam_epsilon"):
            value = getattr(self, name)
            require(value > 0, f"objective.{name} > 0", **{name: value})
        for name in ("adam_beta1", "adam_beta2"):
            value = getattr(self, name)
            require(0 <= value < 1, f"0 <= objective.{name} < 1", **{name: value})
        self._check_warmup()
        self._check_batch()

    def _check_warmup(self) -> None:
        warms_up = self.lr_scheduler_type != "constant"
        if self.warmup_steps > 0 and not warms_up:
            raise ValueError(
                "objective.warmup_steps is not read under lr_scheduler_type=constant, got "
                f"{self.warmup_steps}; use constant_with_warmup"
            )
        if self.warmup_steps == 0 and self.lr_scheduler_type == "constant_with_warmup":
            raise ValueError("lr_scheduler_type=constant_with_warmup needs warmup_steps >= 1")

    def _check_batch(self) -> None:
        rows, micro = self.completions_per_step, self.micro_batch_size
        if micro is not None and (micro < 1 or rows % micro != 0):
            raise ValueError(
                "objective.micro_batch_size must divide prompts_per_step x num_generations = "
                f"{self.prompts_per_step} x {self.num_generations} = {rows}, got {micro}"
            )

    @property
    def completions_per_step(self) -> int:
        """Completions behind one optimizer step."""
        return self.prompts_per_step * self.num_generations
