"""One lane's optimizer: AdamW, its schedule and the clip of its gradient's norm."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import get_scheduler

from study.config import Objective
from study.train.packed.weights import LaneWeights

NORM_FLOOR = 1e-6
"""Added to the gradient norm that the clip divides by, as in ``torch.nn.utils.clip_grad_norm_``."""


class LaneOptimizer:
    """Steps a lane; like TRL's trainer, biases and norms of a full model are not decayed."""

    def __init__(self, weights: LaneWeights, objective: Objective) -> None:
        """Builds the optimizer over the lane's flat vector, which it updates in place.

        Args:
            weights: The lane's weights.
            objective: Learning rate, schedule and AdamW's constants.
        """
        self._weights, self._max_norm = weights, objective.max_grad_norm
        split = weights.decayed
        pieces = [(slice(0, split), objective.weight_decay), (slice(split, None), 0.0)]
        groups = [
            {"params": [_parameter(weights, where)], "weight_decay": decay}
            for where, decay in pieces
            if weights.flat[where].numel()
        ]
        self._optimizer = torch.optim.AdamW(
            groups,
            lr=objective.learning_rate,
            betas=(objective.adam_beta1, objective.adam_beta2),
            eps=objective.adam_epsilon,
            fused=True,
        )
        self._schedule = get_scheduler(
            objective.lr_scheduler_type,
            self._optimizer,
            num_warmup_steps=objective.warmup_steps,
            num_training_steps=objective.steps,
        )

    def step(self) -> tuple[float, float]:
        """Clips, steps and clears the gradient.

        Returns:
            The gradient's norm before the clip, and the learning rate of the step.
        """
        gradient = self._weights.gradient
        norm = nn.utils.get_total_norm(list(self._weights.gradients.values()))
        if self._max_norm > 0:
            gradient.mul_(torch.clamp(self._max_norm / (norm + NORM_FLOOR), max=1.0))
        rate = self._schedule.get_last_lr()[0]
        self._optimizer.step()
        self._schedule.step()
        gradient.zero_()
        return float(norm), float(rate)

    def moments(self) -> list[Tensor]:
        """The first moments; none before the first step."""
        return [state["exp_avg"] for state in self._optimizer.state.values()]


def _parameter(weights: LaneWeights, where: slice) -> nn.Parameter:
    parameter = nn.Parameter(weights.flat[where])
    parameter.grad = weights.gradient[where]
    return parameter
