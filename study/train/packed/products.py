"""Matrix products whose rows do not feel each other.

A product of more rows, more columns or a whole batch may be split among a processor's kernels in
another way, and its sums then round differently. On the processors seen, float32 products of four
rows and sixteen columns and more give each element the same bits whatever the other rows, columns
and members of the batch are, and zeros that fill up the sums change nothing; whether it is so here
is tried once. Where it is not, every lane's rows are multiplied apart, and where there are fewer
than four they are filled up.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

LEAST_ROWS = 4
_TRIED = ((64, 256), (256, 64), (128, 96), (576, 1536), (64, 16), (16, 64))  # in, out features
_COUNTS = (4, 5, 7, 16, 33, 64, 129, 300)


@cache
def rows_are_independent() -> bool:
    """Whether a row of a product has the same bits whatever is multiplied beside it."""
    generator = torch.Generator().manual_seed(0)
    return all(
        _rows(size, features, generator)
        and _batches(size, features, generator)
        and _fillings(size, features, generator)
        for size, features in _TRIED
    )


def _rows(size: int, features: int, generator: torch.Generator) -> bool:
    """Whether rows have the same bits among more rows."""
    rows = torch.randn(max(_COUNTS) + 1, size, generator=generator)
    weight = torch.randn(features, size, generator=generator)
    for matrix in (weight.t(), weight.t().contiguous()):
        whole = rows @ matrix
        if not all(torch.equal(rows[1 : 1 + n] @ matrix, whole[1 : 1 + n]) for n in _COUNTS):
            return False
    return True


def _batches(size: int, features: int, generator: torch.Generator) -> bool:
    """Whether a batched product has the bits of the products of its members."""
    weights = torch.randn(3, features, size, generator=generator)
    for count in _COUNTS:
        rows = torch.randn(3, count, size, generator=generator)
        batched = torch.bmm(rows, weights.transpose(1, 2))
        alone = torch.stack([x @ w.t() for x, w in zip(rows, weights, strict=True)])
        if not torch.equal(batched, alone):
            return False
    return True


def _fillings(size: int, features: int, generator: torch.Generator) -> bool:
    """Whether sums have the same bits with zeros around them, written to columns of a matrix."""
    inner, weight = (torch.randn(n, 16, generator=generator) for n in (size, features))
    filled = torch.nn.functional.pad(inner, (16, 16)), torch.nn.functional.pad(weight, (16, 16))
    wide = torch.randn(size, features + 32, generator=generator)
    whole = torch.baddbmm(wide[None, :, 16:-16], filled[0][None], filled[1].t()[None])[0]
    wide[:, 16:-16].addmm_(inner, weight.t())
    return torch.equal(wide[:, 16:-16], whole)


def multiply(inputs: Tensor, matrix: Tensor, bias: Tensor | None, outputs: Tensor) -> None:
    """Writes x M + b.

    Args:
        inputs: x [n, in].
        matrix: M [in, out].
        bias: b [out], if there is one.
        outputs: Where the result [n, out] goes.
    """
    rows = inputs.size(0)
    if rows < LEAST_ROWS:
        filled = torch.nn.functional.pad(inputs, (0, 0, 0, LEAST_ROWS - rows))
        result = filled @ matrix if bias is None else torch.addmm(bias, filled, matrix)
        outputs.copy_(result[:rows])
    elif bias is None:
        torch.mm(inputs, matrix, out=outputs)
    else:
        torch.addmm(bias, inputs, matrix, out=outputs)
