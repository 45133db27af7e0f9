"""The arithmetic floor: how long the matrix products that a run-step needs would take alone.

Each distinct prompt goes through the model once to sample and once to train, each completion token
but the last likewise; groups of equal rewards are not trained on; logits are made only where one is
used; adapters count as if merged into the base once a step, although training passes multiply by
them, to round as PEFT does. Tokens that several rows of a prompt have drawn alike count for each
row, although the engine computes them once: the share of the floor is overstated by that.
Attention products, norms, padding and the optimizer count as overhead, and the first block's input
gradient, which needs not be formed, as arithmetic. What is possible is measured in the same minute:
the same products on as many rows as a lane has, one after the other, nothing in between.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from study.bench.watch import now, uses_gpu
from study.config import LoraMethod, MethodConfig
from study.plan.description import Description

MEASURED_S = 0.1
"""How long the products of a phase are repeated."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a run-step processes, per run."""

    prompts: int
    rows: int
    """Completions."""
    prompt_tokens: float
    """Of one prompt."""
    completion_tokens: float
    """Mean of a completion, end token included."""
    longest: int
    """Most tokens of a completion: decoding takes ``longest - 1`` passes."""
    unequal_share: float
    """Share of groups that are trained on."""

    @property
    def prefill_tokens(self) -> float:
        """Prompt tokens read before the first one is drawn."""
        return self.prompts * self.prompt_tokens

    @property
    def decoded_tokens(self) -> float:
        """Completion tokens fed back to draw the next one."""
        return self.rows * (self.completion_tokens - 1)

    @property
    def trained_tokens(self) -> float:
        """Positions of the training pass."""
        return self.unequal_share * (self.prefill_tokens + self.decoded_tokens)

    @property
    def logits(self) -> float:
        """Positions of the training pass whose logits are used."""
        return self.unequal_share * self.rows * self.completion_tokens


@dataclass(frozen=True)
class Product:
    """A matrix product [m, k] x [k, n]."""

    m: int
    k: int
    n: int
    transposed: str
    """Which factor is stored transposed: ``left``, ``right`` or ``none``."""

    @property
    def flops(self) -> float:
        """FLOPs: a multiplication and an addition each."""
        return 2.0 * self.m * self.k * self.n


@dataclass(frozen=True)
class Phase:
    """Products that follow each other, a number of times."""

    products: list[Product]
    passes: int

    @property
    def flops(self) -> float:
        """FLOPs of all passes."""
        return self.passes * sum(product.flops for product in self.products)


def phases(
    work: Work, method: MethodConfig, targets: Sequence[str], model: Description
) -> list[Phase]:
    """A run-step's products: reading prompts, decoding, and training, which comes last."""
    passes = max(1, work.longest - 1)
    head = (model.vocab_size, model.hidden_size)

    def forward(tokens: float, logits: float) -> list[Product]:
        return [*_forward(model.linear_modules.values(), tokens), *_forward([head], logits)]

    return [
        Phase(forward(work.prefill_tokens, work.prompts), 1),
        Phase(forward(work.decoded_tokens / passes, work.decoded_tokens / passes), passes),
        Phase(
            [
                *forward(work.trained_tokens, work.logits),
                *_input_gradients(model.linear_modules.values(), work.trained_tokens),
                *_input_gradients([head], work.logits),
                *_weight_gradients(work, method, targets, model),
            ],
            1,
        ),
    ]


Shapes = Iterable[tuple[int, int]]
"""(out_features, in_features) of matrices."""


def _rows(tokens: float) -> int:
    return max(1, round(tokens))


def _forward(shapes: Shapes, tokens: float) -> list[Product]:
    """Activations times transposed weight."""
    return [Product(_rows(tokens), inputs, outputs, "right") for outputs, inputs in shapes]


def _input_gradients(shapes: Shapes, tokens: float) -> list[Product]:
    """Gradient of the outputs times weight."""
    return [Product(_rows(tokens), outputs, inputs, "none") for outputs, inputs in shapes]


def _weight_gradients(
    work: Work, method: MethodConfig, targets: Sequence[str], model: Description
) -> list[Product]:
    """Gradients of what is trained; under LoRA also the merge of the adapters."""
    tokens = _rows(work.trained_tokens)
    if isinstance(method, LoraMethod):
        shapes = [model.linear_modules[name] for name in targets]
        return [p for shape in shapes for p in _adapter_gradients(shape, method.rank, tokens)]
    found = [Product(out, tokens, into, "left") for out, into in model.linear_modules.values()]
    return [*found, Product(model.vocab_size, _rows(work.logits), model.hidden_size, "left")]


def _adapter_gradients(shape: tuple[int, int], rank: int, tokens: int) -> list[Product]:
    """For W + B A: x A^T and g^T (x A^T) give dB, g B and (g B)^T x give dA; and B A itself."""
    outputs, inputs = shape
    return [
        Product(tokens, inputs, rank, "right"),
        Product(outputs, tokens, rank, "left"),
        Product(tokens, outputs, rank, "none"),
        Product(rank, tokens, inputs, "left"),
        Product(outputs, rank, inputs, "none"),
    ]


def floor_seconds(steps: Sequence[Phase]) -> tuple[float, float]:
    """Busy seconds of a run-step's products, and FLOP/s of the last phase, the training."""
    times = [phase.passes * product_seconds(phase.products) for phase in steps]
    return sum(times), steps[-1].flops / times[-1]


def product_seconds(products: Sequence[Product]) -> float:
    """Median busy seconds of products, one after the other."""
    import torch

    operands = [_operands(product) for product in products]

    def once() -> None:
        for left, right, out in operands:
            torch.mm(left, right, out=out)

    return median_seconds(once)


def median_seconds(call: Callable[[], None]) -> float:
    """Median busy seconds of a call, repeated for a while after a first one that warms up."""
    call()
    laps: list[float] = []
    while sum(laps) < MEASURED_S or len(laps) < 5:
        begin = now()
        call()
        laps.append((now() - begin).busy_s)
    return statistics.median(laps)


def _operands(product: Product) -> tuple[Any, Any, Any]:
    """Two factors and the product's place."""
    import torch

    def factor(rows: int, columns: int, transposed: bool) -> Any:
        if transposed:
            return torch.randn(columns, rows, device=device).t()
        return torch.randn(rows, columns, device=device)

    device = "cuda" if uses_gpu() else "cpu"
    left = factor(product.m, product.k, product.transposed == "left")
    right = factor(product.k, product.n, product.transposed == "right")
    return left, right, factor(product.m, product.n, False)
