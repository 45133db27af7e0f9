"""What the optimizer of a run does, whatever the run optimises."""

from __future__ import annotations

import math
from dataclasses import dataclass

from study.config.laws import require, require_one_of

SCHEDULES = ("constant", "linear", "cosine", "constant_with_warmup")


@dataclass(kw_only=True)
class Objective:
    """What a run optimises: the part that every objective has."""

    name: str
    """``grpo`` or ``sft``."""
    learning_rate: float
    """Peak learning rate of AdamW; A and B share it under LoRA."""
    steps: int
    """Optimizer steps."""
    prompts_per_step: int
    """Distinct prompts per optimizer step: the batch size of the paper's curves."""
    micro_batch_size: int | None
    """Sequences per forward pass; null: the whole step at once."""
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
    """Sampling temperature of the held-out evaluation, and of training where it samples."""

    def __post_init__(self) -> None:
        rate = self.learning_rate
        require(math.isfinite(rate) and rate > 0, "objective.learning_rate > 0", learning_rate=rate)
        for name in ("steps", "prompts_per_step"):
            value = getattr(self, name)
            require(value >= 1, f"objective.{name} >= 1", **{name: value})
        require_one_of("objective.lr_scheduler_type", self.lr_scheduler_type, SCHEDULES)
        for name in ("weight_decay", "warmup_steps", "max_grad_norm"):
            value = getattr(self, name)
            require(value >= 0, f"objective.{name} >= 0", **{name: value})
        for name in ("temperature", "adam_epsilon"):
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
        rows, micro = self.rows_per_step, self.micro_batch_size
        if micro is not None and (micro < 1 or rows % micro != 0):
            raise ValueError(
                f"objective.micro_batch_size must divide {self._rows_are()} = {rows}, got {micro}"
            )

    @property
    def rows_per_step(self) -> int:
        """Sequences behind one optimizer step."""
        return self.prompts_per_step

    def _rows_are(self) -> str:
        """How the law of micro-batches names :attr:`rows_per_step`."""
        return "prompts_per_step"
