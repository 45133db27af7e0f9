"""Analytic FLOPs of a run's matrix products.

A matrix of d_out x d_in costs 2 d_out d_in FLOPs per token forward, the same again for the gradient
of its input and for the gradient of its weight (Schulman et al. 2025, LoRA Without Regret: 3 N^2
multiply-adds per token under full fine-tuning, 2 N^2 + 6 N R under LoRA). Counted exactly per
matrix, the output head included; left out are the attention products, normalisations and the
missing input gradient of the first block, which is small beside the rest.
"""

from __future__ import annotations

from study.config import LoraMethod, MethodConfig
from study.plan.description import Description


def forward_flops_per_token(model: Description) -> float:
    """FLOPs of one forward pass per token."""
    blocks = sum(rows * columns for rows, columns in model.linear_modules.values())
    return 2.0 * (blocks + model.hidden_size * model.vocab_size)


def train_flops_per_token(method: MethodConfig, targets: list[str], model: Description) -> float:
    """FLOPs of one forward and backward pass per token under ``method``."""
    forward = forward_flops_per_token(model)
    if not isinstance(method, LoraMethod):
        return 3.0 * forward
    adapters = sum(method.rank * sum(model.linear_modules[name]) for name in targets)
    return 2.0 * forward + 6.0 * adapters
