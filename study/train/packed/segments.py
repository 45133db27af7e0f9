"""Whose tokens a training pass holds, and where they lie on its axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from study.train.packed.products import rows_are_independent
from study.train.packed.weights import LaneWeights


@dataclass(frozen=True)
class Segments:
    """Whose tokens lie where on an axis: those of `lanes`, side by side, `sizes` tokens each."""

    lanes: list[LaneWeights]
    sizes: list[int]

    @staticmethod
    def of(lanes: Sequence[LaneWeights], sizes: Sequence[int]) -> Segments:
        """The segments of those lanes that have tokens."""
        present = [(lane, size) for lane, size in zip(lanes, sizes, strict=True) if size]
        return Segments([lane for lane, _ in present], [size for _, size in present])

    @cached_property
    def runs(self) -> list[tuple[LaneWeights, slice]]:
        """Slices of the axis whose tokens are multiplied by the same weights, with a lane of each.

        Lanes that share the base and lie side by side are one slice, where rows of a product are
        independent.
        """
        found: list[tuple[LaneWeights, slice]] = []
        start = 0
        for lane, size in zip(self.lanes, self.sizes, strict=True):
            joins = found and lane.shares_base and found[-1][0].shares_base
            if joins and rows_are_independent():
                found[-1] = (lane, slice(found[-1][1].start, start + size))
            else:
                found.append((lane, slice(start, start + size)))
            start += size
        return found

    def pieces(self, tokens: Tensor) -> tuple[Tensor, ...]:
        """Each lane's slice of the first dimension."""
        return torch.split_with_sizes(tokens, self.sizes)

    def split(self, tokens: Tensor) -> Iterator[tuple[LaneWeights, Tensor]]:
        """Each lane with its slice of the first dimension."""
        return zip(self.lanes, self.pieces(tokens), strict=True)

    def trained(self, name: str) -> bool:
        """Whether some lane has a gradient for this name."""
        return any(lane.trains(name) for lane in self.lanes)
