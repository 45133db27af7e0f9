"""A lane's adapters, laid out for batched products beside others of similar rank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from study.train.packed.architecture import Names

RANKS = 16
"""Ranks are filled up to a multiple of this. Products of fewer columns are computed by other
kernels, at no less cost, and round otherwise."""


@dataclass(frozen=True)
class Place:
    """Where the adapters of linear layers side by side lie in a filled vector.

    Attributes:
        a: View [targets x filled rank, in] of the A of all targets, one below the other.
        b: View [sum of out, targets x filled rank]: the B of all targets as blocks, s included.
        blocks: Rows and columns of each block.
    """

    a: Tensor
    b: Tensor
    blocks: list[tuple[slice, slice]]


class Filled:
    """The layout of a lane's adapters with their ranks filled up by zeros.

    Attributes:
        kind: Equal for lanes that may be stacked.
        places: Where adapters lie, by the linear layers that read the same inputs.
    """

    def __init__(
        self,
        adapters: Mapping[str, tuple[Tensor, Tensor]],
        joined: Iterable[Names],
        outputs: Mapping[str, int],
    ) -> None:
        """Plans the layout.

        Args:
            adapters: A and B by weight: views of the lane's flat vector.
            joined: Linear layers that read the same inputs.
            outputs: Outputs of each linear layer.
        """
        self._adapters, self._outputs = adapters, outputs
        longest = max(a.size(0) for a, _ in adapters.values())
        self._rank = -(-longest // RANKS) * RANKS
        self.kind = (self._rank, tuple(sorted(adapters)))
        groups = [names for names in joined if any(name in adapters for name in names)]
        plans = {names: self._plan(names) for names in groups}
        index = [plan.a for plan in plans.values()] + [plan.b for plan in plans.values()]
        self._index = torch.cat([piece.reshape(-1) for piece in index])
        self._scaled_from = sum(plan.a.numel() for plan in plans.values())
        # What says where a view lies need not hold values.
        empty = torch.empty(self._index.numel(), device="meta")
        views = torch.split(empty, [piece.numel() for piece in index])
        shaped = [view.view(piece.shape) for view, piece in zip(views, index, strict=True)]
        self.places = {
            names: Place(shaped[i], shaped[len(groups) + i], plans[names].blocks)
            for i, names in enumerate(groups)
        }

    def values(self, flat: Tensor, scaling: float) -> Tensor:
        """The filled vector of a lane's flat vector as it is now; `scaling`: s."""
        with_zero = torch.cat([flat.new_zeros(1), flat])
        values = with_zero.index_select(0, self._index)
        values[self._scaled_from :].mul_(scaling)
        return values

    def _plan(self, names: Names) -> Place:
        """For each element of A and B its place in the flat vector behind a zero."""
        targets = [name for name in names if name in self._adapters]
        first = self._adapters[targets[0]][0]
        width, device = len(targets) * self._rank, first.device
        total = sum(self._outputs[name] for name in names)
        a = torch.zeros(width, first.size(1), dtype=torch.long, device=device)
        b = torch.zeros(total, width, dtype=torch.long, device=device)
        blocks, row, column = [], 0, 0
        for name in names:
            stop = row + self._outputs[name]
            if name in self._adapters:
                own_a, own_b = map(_numbers, self._adapters[name])
                a[column : column + own_a.size(0)] = own_a
                b[row:stop, column : column + own_b.size(1)] = own_b
                blocks.append((slice(row, stop), slice(column, column + self._rank)))
                column += self._rank
            row = stop
        return Place(a, b, blocks)


def _numbers(view: Tensor) -> Tensor:
    """Places of a contiguous view's elements in its flat vector, counted from one."""
    first = int(view.storage_offset()) + 1
    return torch.arange(first, first + view.numel(), device=view.device).view(view.shape)
