"""How far a tuned model is from its base, token by token over the whole vocabulary."""

from __future__ import annotations

from torch import Tensor


def forward_kl(base: Tensor, tuned: Tensor, temperature: float) -> Tensor:
    """KL(base || tuned) of every next-token distribution, in nats: sum p_base ln(p_base / p_tuned).

    Its sum over sequences drawn from the base is unbiased for KL(base || tuned) of whole sequences
    (the chain rule), with less variance than the log ratios of the drawn tokens. That direction on
    the new task is what forgetting follows in Shenfeld et al. 2025, RL's Razor.

    Args:
        base: Logits, (..., vocabulary).
        tuned: Logits, the same shape.
        temperature: Both are divided by it: the distributions that are sampled from.

    Returns:
        One number per token, fp64, shape (...).
    """
    p, q = ((x.double() / temperature).log_softmax(-1) for x in (base, tuned))
    return (p.exp() * (p - q)).sum(-1)


def token_entropy(logits: Tensor, temperature: float) -> Tensor:
    """Entropy of every next-token distribution in nats, fp64; (..., vocabulary) -> (...)."""
    p = (logits.double() / temperature).log_softmax(-1)
    return -(p.exp() * p).sum(-1)
