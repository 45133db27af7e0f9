"""Analytic FLOPs of a run's matrix products, exact for each matrix.

A matrix of d_out x d_in costs 2 d_out d_in FLOPs per token forward, the same again for the gradient
of its input and for that of its weight (Schulman et al. 2025, LoRA Without Regret: 3 N^2
multiply-adds per token under full fine-tuning, 2 N^2 + 6 N R under LoRA). Beyond that closed form,
this module counts the output head, the products of attention, the true shape of every matrix, and
leaves out gradients that nothing asks for: under LoRA nothing below the first adapter is trained,
so the first block's first matrices need no gradient of their input.

Conventions: queries meet the keys of their whole sequence in training, as ``torch``'s counter has
it (a causal kernel may save half of that), and those up to their own place in sampling. Sampling
adapters are merged into the base. Every completion reads its own prompt, and is trained on
whatever its group's rewards, as the engine ``trl`` does it. Padding, recomputation inside kernels,
normalisations and the optimizer are left out. Blocks are read from the layers' names: where they
are not the usual ones (``q_proj`` ... ``down_proj``), attention products are not counted, and a
layer counts as the last of its block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from study.config import LoraMethod, MethodConfig
from study.plan.description import Description

_STAGES = {
    "q_proj": 0, "k_proj": 0, "v_proj": 0, "o_proj": 1, "gate_proj": 2, "up_proj": 2, "down_proj": 3
}  # fmt: skip
_LAST_STAGE = 4
_START = (-1, 0)  # the embedding, before every block


@dataclass(frozen=True)
class Sequences:
    """Sequences that went through a model: all that their cost depends on. They add up."""

    tokens: int = 0
    pairs: int = 0
    """Queries times the keys each of them meets."""
    logits: int = 0
    """Positions whose logits are made."""

    @classmethod
    def trained(cls, lengths: Iterable[tuple[int, int]]) -> Sequences:
        """Prompts with their completions, each in one pass; ``lengths`` of both in tokens."""
        tokens = pairs = logits = 0
        for prompt, completion in lengths:
            tokens += prompt + completion
            pairs += (prompt + completion) ** 2
            logits += completion
        return cls(tokens, pairs, logits)

    @classmethod
    def sampled(cls, lengths: Iterable[tuple[int, int]]) -> Sequences:
        """The same, drawn token by token with a cache; the last token is never read."""
        tokens = pairs = logits = 0
        for prompt, completion in lengths:
            read = prompt + completion - 1
            tokens += read
            # The prompt at once, then a query each that meets prompt + 1, ..., read keys.
            pairs += prompt**2 + (read * (read + 1) - prompt * (prompt + 1)) // 2
            logits += completion
        return cls(tokens, pairs, logits)

    def __add__(self, other: Sequences) -> Sequences:
        return Sequences(
            self.tokens + other.tokens, self.pairs + other.pairs, self.logits + other.logits
        )

    def __mul__(self, times: int) -> Sequences:
        return Sequences(self.tokens * times, self.pairs * times, self.logits * times)


def forward_flops(model: Description, work: Sequences) -> float:
    """FLOPs of one forward pass without adapters, or with merged ones."""
    matrices = sum(rows * columns for rows, columns in model.linear_modules.values())
    head = model.hidden_size * model.vocab_size
    attention = 2 * sum(width for _, width in _attention(model))
    return 2.0 * (work.tokens * matrices + work.logits * head + work.pairs * attention)


def train_flops(
    method: MethodConfig, targets: Sequence[str], model: Description, work: Sequences
) -> float:
    """FLOPs of one forward and backward pass under ``method``.

    Args:
        method: What is trained.
        targets: Full names of the adapted layers; empty under full fine-tuning.
        model: The model.
        work: What goes through it.
    """
    is_lora, adapted = isinstance(method, LoraMethod), set(targets)
    first = min(map(_place, targets), default=_START) if is_lora else _START
    backward = 0  # multiply-adds
    for name, (rows, columns) in model.linear_modules.items():
        moved = first < _place(name)  # the layer's input depends on trained weights
        backward += work.tokens * rows * columns * (moved + (not is_lora))
        if isinstance(method, LoraMethod) and name in adapted:
            # Forward A and B; dB and d(A x); dA; and A's part of the gradient of the input.
            backward += work.tokens * method.rank * (3 * rows + (2 + moved) * columns)
    backward += work.logits * model.hidden_size * model.vocab_size * (1 if is_lora else 2)
    for block, width in _attention(model):
        backward += work.pairs * width * _attention_gradients(block, first, adapted)
    return forward_flops(model, work) + 2.0 * backward


def scoring_passes(beta: float, num_iterations: int) -> int:
    """Forward passes without a gradient over each batch.

    The old log-probabilities, where a batch is used more than once, and the base's under a KL
    penalty (TRL's GRPO).
    """
    return int(beta > 0) + int(num_iterations > 1)


def square_ratio(rank: int, width: int) -> float:
    """LoRA's training FLOPs per token over full fine-tuning's in the closed form 2/3 + 2 r / N.

    The limit of :func:`train_flops` for many square layers, all adapted: head and attention vanish
    beside them, and the first block beside the others (Schulman et al. 2025).

    Raises:
        ValueError: if rank or width is below 1.
    """
    if rank < 1 or width < 1:
        raise ValueError(f"rank and width must be at least 1, got {rank} and {width}")
    return 2 / 3 + 2 * rank / width


def _place(name: str) -> tuple[int, int]:
    """Block of a layer and its stage in it; a layer is fed by those of lower places."""
    parts = name.split(".")
    block = next((int(part) for part in parts if part.isdigit()), 0)
    return block, _STAGES.get(parts[-1], _LAST_STAGE)


def _attention(model: Description) -> Iterator[tuple[str, int]]:
    """Each block that has attention: prefix of its layers' names, heads times head size."""
    for name, (_, columns) in model.linear_modules.items():
        if name.endswith(".o_proj"):
            yield name.removesuffix("o_proj"), columns


def _attention_gradients(block: str, first: tuple[int, int], targets: Set[str]) -> int:
    """Backward products of a block's attention: of the weights, queries, keys and values."""
    moved = first < _place(block + "q_proj")
    query, key, value = (
        moved or block + leaf in targets for leaf in ("q_proj", "k_proj", "v_proj")
    )
    return int(query or key) + query + key + value
