"""GRPO's loss, row by row, for the four normalisers whose token weights are known beforehand.

Each loss is -sum over tokens of min(rho A, clip(rho) A) w, with w one number for all tokens of a
row (TRL 1.16, ``GRPOTrainer._compute_loss``):

* ``grpo``: 1 / (tokens of the row x rows of the micro-batch x micro-batches);
* ``bnpo``: 1 / (tokens of the micro-batch x micro-batches);
* ``dr_grpo``: 1 / (rows of the micro-batch x max_completion_length x micro-batches);
* ``dapo``: 1 / tokens of the step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from study.config import GrpoObjective, Objective

STD_FLOOR = 1e-4
"""Added to the standard deviation that divides advantages, as in TRL."""


@dataclass(frozen=True)
class Terms:
    """What a training pass reads of a lane's objective; as it is here, that of a likelihood.

    With advantage 1, no bounds and the ratio of a policy to itself, the gradient of
    :func:`token_losses` is that of the negative log-likelihood.
    """

    is_likelihood: bool = True
    temperature: float = 1.0
    low: float = 0.0
    """Smallest ratio."""
    high: float = math.inf
    """Largest ratio."""
    by_row: bool = False
    """Whether a whole row has one ratio (``importance_sampling_level=sequence``)."""
    alpha: float = 0.0
    """Of entropy shaping; 0: off."""
    kappa: float = 2.0
    entropy_share: float = 1.0
    """``top_entropy_quantile``."""
    reuses: bool = False
    """Whether one batch serves several steps."""

    @classmethod
    def of(cls, objective: Objective) -> Terms:
        """The terms of an objective."""
        if not isinstance(objective, GrpoObjective):
            return cls()
        return cls(
            is_likelihood=False,
            temperature=objective.temperature,
            low=1 - objective.epsilon,
            high=1 + objective.epsilon_high,
            by_row=objective.importance_sampling_level == "sequence",
            alpha=objective.entropy_shaping.alpha,
            kappa=objective.entropy_shaping.kappa,
            entropy_share=objective.top_entropy_quantile,
            reuses=objective.num_iterations > 1,
        )

    @property
    def reads_entropy(self) -> bool:
        """Whether the loss or the metrics of a pass need the entropy of each token."""
        return self.is_likelihood or self.reuses or self.alpha > 0 or self.entropy_share < 1


def advantages(rewards: Tensor, objective: GrpoObjective) -> tuple[Tensor, Tensor]:
    """Advantages and the standard deviations behind them.

    Args:
        rewards: Rewards [rows], groups side by side.
        objective: Group size and scaling.

    Returns:
        Advantages [rows], and the unbiased standard deviation [rows] of each row's group, or of
        the whole batch under ``scale_rewards=batch``.
    """
    groups = rewards.view(-1, objective.num_generations)
    mean = groups.mean(1).repeat_interleave(objective.num_generations)
    if objective.scale_rewards == "batch":
        deviation = _deviation(rewards, 0).expand_as(rewards)
    else:
        deviation = _deviation(groups, 1).repeat_interleave(objective.num_generations)
    centred = rewards - mean
    scaled = centred if objective.scale_rewards == "none" else centred / (deviation + STD_FLOOR)
    return scaled, deviation


def _deviation(values: Tensor, dim: int) -> Tensor:
    count = values.size(dim)
    variance = ((values - values.mean(dim, keepdim=True)) ** 2).mean(dim)
    return torch.sqrt(variance * (count / (count - 1)))


def row_weights(
    lengths: Sequence[int], micro: Sequence[int], objective: GrpoObjective, longest: int
) -> list[float]:
    """The weight of each token of the rows of a micro-batch.

    Args:
        lengths: Tokens that count, of every row of the step; 0 for a row that is masked.
        micro: Rows of the micro-batch.
        objective: The loss.
        longest: ``max_completion_length``.
    """
    parts = len(lengths) // len(micro)
    if objective.loss_type == "dapo":
        return [1 / max(sum(lengths), 1)] * len(micro)
    if objective.loss_type == "bnpo":
        return [1 / (max(sum(lengths[row] for row in micro), 1) * parts)] * len(micro)
    if objective.loss_type == "dr_grpo":
        return [1 / (len(micro) * longest * parts)] * len(micro)
    assert objective.loss_type == "grpo", objective.loss_type
    return [1 / (max(lengths[row], 1) * len(micro) * parts) for row in micro]


class TargetLogProbs(torch.autograd.Function):
    """Log-probabilities of target tokens, rounded as in TRL's ``ChunkedLogProbFunction``.

    With z the logits over the temperature, log p = z_target - log Z and d log p / dz = 1 - p, where
    p = exp(z - log Z) with the rounded log Z = max z + log sum exp(z - max z).
    """

    @staticmethod
    def forward(ctx: Any, scaled: Tensor, targets: Tensor) -> Tensor:
        """Returns log p [n] of the targets [n] under logits over temperature [n, vocabulary]."""
        top = scaled.amax(-1, keepdim=True)
        log_z = top + torch.log(torch.exp(scaled - top).sum(-1, keepdim=True))
        ctx.save_for_backward(scaled, targets, log_z)
        return (scaled.gather(-1, targets.unsqueeze(-1)) - log_z).squeeze(-1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """Returns the gradient of the logits over temperature."""
        scaled, targets, log_z = ctx.saved_tensors
        to_scaled = torch.exp(scaled - log_z).neg_()
        to_scaled.scatter_add_(-1, targets.unsqueeze(-1), torch.ones_like(log_z))
        return to_scaled.mul_(gradient.unsqueeze(-1)), None


def token_entropies(scaled: Tensor) -> Tensor:
    """Entropies [n] in nats of the distributions of logits over temperature [n, vocabulary]."""
    terms: Tensor = torch.special.entr(torch.softmax(scaled, -1))
    return terms.sum(-1)


def high_entropy(entropies: Tensor, share: float) -> Tensor:
    """Which tokens are among a share of those of highest entropy, as TRL 1.16 picks them.

    Tokens after equal prefixes have equal entropies, to the bit, and stay or go together.

    Args:
        entropies: Entropies [n] of the tokens of a micro-batch, in nats.
        share: ``top_entropy_quantile``; 1 keeps all.
    """
    if share == 1:
        return torch.ones_like(entropies, dtype=torch.bool)
    return entropies >= torch.quantile(entropies, 1 - share)


def token_losses(
    log_probs: Tensor,
    old: Tensor,
    advantage: Tensor,
    weight: Tensor,
    clip: tuple[Tensor, Tensor],
    sequence: tuple[Tensor, Tensor] | None,
) -> tuple[Tensor, Tensor]:
    """The loss of each token, and whether its ratio is clipped.

    Args:
        log_probs: Log-probability [tokens] of each completion token.
        old: The same under the policy that sampled it, no gradient.
        advantage: Advantage [tokens] of its row, or its own.
        weight: Weight [tokens] of its row.
        clip: Lowest and highest ratio [tokens].
        sequence: Row [tokens] of each token and tokens [rows] of each row where the ratio is that
            of the whole row (``importance_sampling_level=sequence``); else None.
    """
    log_ratio = log_probs - old
    if sequence is not None:
        row_of, lengths = sequence
        log_ratio = _row_means(log_ratio, row_of, lengths)[row_of]
    ratio = torch.exp(log_ratio)
    bounded = torch.clamp(ratio, *clip)
    losses = -torch.min(ratio * advantage, bounded * advantage) * weight
    low, high = clip
    clipped = ((ratio < low) & (advantage < 0)) | ((ratio > high) & (advantage > 0))
    return losses, clipped


def _row_means(values: Tensor, row_of: Tensor, lengths: Tensor) -> Tensor:
    return values.new_zeros(lengths.numel()).index_add(0, row_of, values) / lengths
