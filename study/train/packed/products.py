"""Matrix products whose rows do not feel each other.

A product of more rows may be split among a processor's kernels in another way, and its sums then
round differently. On the processors seen, float32 products of four rows and more give each row the
same bits whatever the other rows are; whether it is so here is tried once. Where it is not, every
lane's rows are multiplied apart, and where there are fewer than four they are filled up.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

LEAST_ROWS = 4
_TRIED = ((64, 256), (256, 64), (128, 96), (576, 1536))  # in and out features
_COUNTS = (4, 5, 7, 16, 33, 64, 129, 300)


@cache
def rows_are_independent() -> bool:
    """Whether a row of a product has the same bits whatever other rows there are."""
    generator = torch.Generator().manual_seed(0)
    for size, features in _TRIED:
        rows = torch.randn(max(_COUNTS) + 1, size, generator=generator)
        weight = torch.randn(features, size, generator=generator)
        for matrix in (weight.t(), weight.t().contiguous()):
            whole = rows @ matrix
            for count in _COUNTS:
                if not torch.equal(rows[1 : 1 + count] @ matrix, whole[1 : 1 + count]):
                    return False
    return True


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
