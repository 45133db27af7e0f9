"""Tensors side by side in one vector."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from study.train.packed.architecture import Names, bias_of


def flatten(tensors: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    """Copies tensors into one vector; the vector, and views of it under their names."""
    flat = torch.cat([tensor.detach().reshape(-1) for tensor in tensors.values()])
    return flat, views(flat, {name: tensor.shape for name, tensor in tensors.items()})


def views(flat: Tensor, shapes: Mapping[str, torch.Size]) -> dict[str, Tensor]:
    """Views of a vector that holds tensors of these shapes."""
    pieces = torch.split(flat, [shape.numel() for shape in shapes.values()])
    return {name: piece.view(shapes[name]) for name, piece in zip(shapes, pieces, strict=True)}


def side_by_side(tensors: Mapping[str, Tensor], names: Names) -> Tensor:
    """One view of tensors that follow each other in a vector, joined along the first dimension."""
    first = tensors[names[0]]
    starts = [int(tensors[name].storage_offset()) for name in names]
    ends = [start + tensors[name].numel() for start, name in zip(starts, names, strict=True)]
    assert starts[1:] == ends[:-1], f"{names} do not follow each other"
    rows = sum(tensors[name].size(0) for name in names)
    return first.as_strided((rows, *first.shape[1:]), first.stride())


def joined(tensors: Mapping[str, Tensor], names: Names) -> tuple[Tensor, Tensor | None]:
    """Weight [sum of out, in] and bias [sum of out] of linear layers that follow each other."""
    biases = tuple(map(bias_of, names))
    bias = side_by_side(tensors, biases) if biases[0] in tensors else None
    return side_by_side(tensors, names), bias


def same_place(view: Tensor, flat: Tensor) -> Tensor:
    """The view of `flat` that lies where `view` lies in its own vector."""
    return flat.as_strided(view.shape, view.stride(), view.storage_offset())
