"""The layers of a training pass: tokens of many lanes, side by side on one axis.

What is the same for all lanes that share the base (products with its matrices, its norms) runs on
their part of the axis at once. What is a lane's own (adapters, the matrices of full fine-tuning,
all gradients of weights) runs on the lane's slice of the axis, so that its numbers depend on its
own tokens alone: a sum over more tokens would round differently.

Gradients of weights do not pass through autograd: a layer's backward adds them to its lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from study.train.packed.architecture import Architecture, Names
from study.train.packed.products import multiply
from study.train.packed.segments import Segments
from study.train.packed.weights import Inner, LaneWeights


def apply(function: type[torch.autograd.Function], *arguments: object) -> Tensor:
    """Runs an autograd function, whose ``apply`` the library does not type."""
    result: Tensor = function.apply(*arguments)  # type: ignore[no-untyped-call]
    return result


class TrainedLayers:
    """The layers, each lane's tokens in its own segment."""

    def __init__(self, architecture: Architecture, parts: Segments, device: torch.device) -> None:
        """Builds the layers of a pass.

        Args:
            architecture: The model.
            parts: Whose tokens lie where.
            device: Where they are.
        """
        self._epsilon, self._shift = architecture.epsilon, architecture.norm_shift
        self._parts = parts
        # Makes outputs require gradients where only lanes' weights do.
        self._anchor = torch.zeros((), device=device, requires_grad=True)

    def rows(self, name: str, ids: Tensor, padding: int) -> Tensor:
        """Rows of each lane's own matrix."""
        if self._parts.trained(name):
            return apply(_Rows, ids, self._anchor, name, padding, self._parts)
        return torch.nn.functional.embedding(ids, self._parts.lanes[0].weight(name))

    def linear(self, names: Names, inputs: Tensor) -> Tensor:
        """y = x W^T + b, with each lane's own W or adapter."""
        return apply(_Linear, inputs, self._anchor, names, self._parts)

    def norm(self, names: Names, heads: tuple[int, ...], inputs: Tensor) -> Tensor:
        """y = x / sqrt(mean x^2 + eps) w, with each lane's own w (Gemma's is 1 + w)."""
        setting = (names, heads, self._epsilon, self._shift)
        return apply(_Norm, inputs, self._anchor, *setting, self._parts)


class _Linear(torch.autograd.Function):
    """Linear layers side by side, with their gradients."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, anchor: Tensor, names: Names, parts: Segments) -> Tensor:
        ctx.names, ctx.parts = names, parts
        ctx.save_for_backward(inputs)
        outputs = inputs.new_empty(inputs.size(0), parts.lanes[0].joined(names)[0].size(0))
        for lane, own in parts.runs:
            weight, bias = lane.joined(names)
            multiply(inputs[own], weight.t(), bias, outputs[own])
        ctx.inner = [
            lane.adapt(names, rows, out)
            for (lane, rows), out in zip(parts.split(inputs), parts.pieces(outputs), strict=True)
        ]
        return outputs

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, None, None]:
        gradient, (inputs,) = gradient.contiguous(), ctx.saved_tensors
        parts: Segments = ctx.parts
        outs: Sequence[Tensor | None] = [None] * len(parts.sizes)
        to_inputs = torch.empty_like(inputs) if ctx.needs_input_grad[0] else None
        if to_inputs is not None:
            for lane, run in parts.runs:
                multiply(gradient[run], lane.joined(ctx.names)[0], None, to_inputs[run])
            outs = parts.pieces(to_inputs)
        inners: list[Inner] = ctx.inner
        for (lane, own), rows, inner, out in zip(
            parts.split(gradient), parts.pieces(inputs), inners, outs, strict=True
        ):
            lane.backward(ctx.names, (rows, inner), own, out)
        return to_inputs, None, None, None


class _Rows(torch.autograd.Function):
    """Rows of matrices; as in the library, the padding token's row has no gradient."""

    @staticmethod
    def forward(
        ctx: Any, ids: Tensor, anchor: Tensor, name: str, padding: int, parts: Segments
    ) -> Tensor:
        ctx.name, ctx.padding, ctx.parts = name, padding, parts
        ctx.save_for_backward(ids)
        return torch.cat([lane.weight(name)[own] for lane, own in parts.split(ids)])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, None, None, None]:
        (ids,) = ctx.saved_tensors
        rows = torch.where((ids != ctx.padding).unsqueeze(1), gradient, 0)
        for (lane, own), ids_of in zip(ctx.parts.split(rows), ctx.parts.pieces(ids), strict=True):
            if lane.trains(ctx.name):
                lane.gradients[ctx.name].index_add_(0, ids_of, own)
        return None, None, None, None, None


def inverse_root(inputs: Tensor, epsilon: float) -> Tensor:
    """1 / sqrt(mean x^2 + eps) over the last dimension."""
    squares = inputs.pow(2).sum(-1, keepdim=True).div_(inputs.size(-1))
    return torch.rsqrt(squares.add_(epsilon))


def norm_weight(weights: Sequence[Tensor], heads: Sequence[int]) -> Tensor:
    """Weight [d] of a norm, or [heads, d] of norms of so many heads each."""
    if not heads:
        return weights[0]
    return torch.cat([w.expand(count, -1) for w, count in zip(weights, heads, strict=True)])


class _Norm(torch.autograd.Function):
    """The norm, with the gradients of autograd, to the bit, in half the passes over memory."""

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        anchor: Tensor,
        names: Names,
        heads: tuple[int, ...],
        epsilon: float,
        shift: float,
        parts: Segments,
    ) -> Tensor:
        inverse = inverse_root(inputs, epsilon)
        ctx.names, ctx.heads, ctx.shift, ctx.parts = names, heads, shift, parts
        ctx.save_for_backward(inputs, inverse)
        return _scaled(inputs * inverse, names, heads, shift, parts)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        gradient, (inputs, inverse) = gradient.contiguous(), ctx.saved_tensors
        setting = (ctx.names, ctx.heads, ctx.shift, ctx.parts)
        if ctx.parts.trained(ctx.names[0]):
            _add_norm_gradients(ctx.parts, ctx.names, ctx.heads, gradient * (inputs * inverse))
        to_inputs = None
        if ctx.needs_input_grad[0]:
            scaled = _scaled(gradient.clone(), *setting)
            slope = (scaled * inputs).sum(-1, keepdim=True).mul_(-0.5).mul_(inverse.pow(3))
            slope.div_(inputs.size(-1)).mul_(2)
            to_inputs = scaled.mul_(inverse).add_(slope * inputs)
        return to_inputs, None, None, None, None, None, None


def _scaled(
    values: Tensor, names: Names, heads: tuple[int, ...], shift: float, parts: Segments
) -> Tensor:
    """Multiplies the tokens of each lane by its weight, in place."""

    def weight(lane: LaneWeights) -> Tensor:
        return norm_weight([lane.weight(name) for name in names], heads) + shift

    if not parts.trained(names[0]):
        return values.mul_(weight(parts.lanes[0]))  # the base's, shared by all
    for lane, own in parts.split(values):
        own.mul_(weight(lane))
    return values


def _add_norm_gradients(
    parts: Segments, names: Names, heads: tuple[int, ...], by_token: Tensor
) -> None:
    """Adds the sum over tokens (and heads) to the gradient of each lane's weights."""
    pieces = torch.split(by_token, list(heads), 1) if heads else [by_token.unsqueeze(1)]
    for name, piece in zip(names, pieces, strict=True):
        for lane, own in parts.split(piece.contiguous()):
            if lane.trains(name):
                lane.gradients[name].add_(own.sum((0, 1)))
