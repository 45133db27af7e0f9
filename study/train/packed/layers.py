"""Packed twins of a model's layers: one pass over the tokens of many lanes.

The tokens of a pass lie on one axis without padding, lane after lane. Whatever works on single
tokens (norms, activations, rotary embeddings, residuals, products with a weight that lanes share)
runs on the whole axis at once. What is a lane's own (adapters, the matrices of full fine-tuning,
all gradients of weights) runs on the lane's slice of the axis, so that its numbers depend on its
own tokens alone: a sum over more tokens would round differently.

Gradients of weights do not pass through autograd: a packed layer's backward adds them to its lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from study.train.packed.products import multiply
from study.train.packed.segments import Pass, Segments


class _PackedLayer(nn.Module):
    """A layer whose weight each lane brings."""

    def __init__(self, current: Pass, anchor: Tensor, names: dict[str, str]) -> None:
        super().__init__()
        self.current = current
        self.anchor = anchor  # makes outputs require gradients where only lanes' weights do
        self.name = names["weight"]
        self.bias = names.get("bias")


def apply(function: type[torch.autograd.Function], *arguments: object) -> Tensor:
    """Runs an autograd function, whose ``apply`` the library does not type."""
    result: Tensor = function.apply(*arguments)  # type: ignore[no-untyped-call]
    return result


class PackedLinear(_PackedLayer):
    """y = x W^T + b, with each lane's own W or adapter."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Maps [1, tokens, in] to [1, tokens, out]."""
        flat, parts = inputs.view(-1, inputs.size(-1)), self.current.segments
        if torch.is_grad_enabled():
            return apply(_GroupedLinear, flat, self.anchor, self.name, self.bias, parts).unsqueeze(
                0
            )
        return _grouped_linear(flat, self.name, self.bias, parts)[0].unsqueeze(0)


def _grouped_linear(
    inputs: Tensor, name: str, bias: str | None, parts: Segments
) -> tuple[Tensor, list[Tensor | None]]:
    """Outputs of a linear layer, and what each lane wants to have again in the backward pass."""
    outputs = inputs.new_empty(inputs.size(0), parts.lanes[0].weight(name).size(0))
    for lane, own in parts.runs:
        shift = None if bias is None else lane.weight(bias)
        multiply(inputs[own], lane.weight(name).t(), shift, outputs[own])
    outs = torch.split_with_sizes(outputs, parts.sizes)
    return outputs, [
        lane.adapt(name, rows, out)
        for (lane, rows), out in zip(parts.split(inputs), outs, strict=True)
    ]


class _GroupedLinear(torch.autograd.Function):
    """The layer, with its gradients."""

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, anchor: Tensor, name: str, bias: str | None, parts: Segments
    ) -> Tensor:
        ctx.name, ctx.bias, ctx.parts = name, bias, parts
        ctx.save_for_backward(inputs)
        outputs, ctx.inner = _grouped_linear(inputs, name, bias, parts)
        return outputs

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, None, None, None]:
        gradient, (inputs,) = gradient.contiguous(), ctx.saved_tensors
        sizes = ctx.parts.sizes
        outs: Sequence[Tensor | None] = [None] * len(sizes)
        to_inputs = torch.empty_like(inputs) if ctx.needs_input_grad[0] else None
        if to_inputs is not None:
            for lane, own in ctx.parts.runs:
                multiply(gradient[own], lane.weight(ctx.name), None, to_inputs[own])
            outs = torch.split_with_sizes(to_inputs, sizes)
        slices = torch.split_with_sizes(inputs, sizes)
        for (lane, own), rows, inner, out in zip(
            ctx.parts.split(gradient), slices, ctx.inner, outs, strict=True
        ):
            lane.backward(ctx.name, (rows, inner), own, out)
            if ctx.bias is not None and lane.trains(ctx.bias):
                lane.gradients[ctx.bias].add_(own.sum(0))
        return to_inputs, None, None, None, None


class PackedEmbedding(_PackedLayer):
    """Rows of each lane's own matrix."""

    def __init__(
        self, current: Pass, anchor: Tensor, names: dict[str, str], module: nn.Embedding
    ) -> None:
        super().__init__(current, anchor, names)
        self.padding = -1 if module.padding_idx is None else module.padding_idx
        scale = getattr(module, "embed_scale", None)  # Gemma's
        self.scale = None if scale is None else scale.to(module.weight.dtype)

    def forward(self, ids: Tensor) -> Tensor:
        """Maps token ids [1, tokens] to [1, tokens, hidden]."""
        parts = self.current.segments
        if parts.trained(self.name):
            found = apply(_GroupedRows, ids[0], self.anchor, self.name, self.padding, parts)
        else:
            found = nn.functional.embedding(ids[0], parts.lanes[0].weight(self.name))
        return (found if self.scale is None else found * self.scale).unsqueeze(0)


class _GroupedRows(torch.autograd.Function):
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
        for (lane, own), ids_of in zip(
            ctx.parts.split(rows), torch.split_with_sizes(ids, ctx.parts.sizes), strict=True
        ):
            if lane.trains(ctx.name):
                lane.gradients[ctx.name].index_add_(0, ids_of, own)
        return None, None, None, None, None


class PackedNorm(_PackedLayer):
    """RMSNorm: y = x / sqrt(mean x^2 + eps) w, with each lane's own w (Gemma's is 1 + w)."""

    def __init__(
        self, current: Pass, anchor: Tensor, names: dict[str, str], module: nn.Module
    ) -> None:
        super().__init__(current, anchor, names)
        self.epsilon = float(getattr(module, "variance_epsilon", getattr(module, "eps", 0.0)))
        self.shift = 1.0 if type(module).__name__ == "GemmaRMSNorm" else 0.0

    def forward(self, inputs: Tensor) -> Tensor:
        """Maps [1, tokens, ...] to the same shape."""
        parts = self.current.segments
        if torch.is_grad_enabled():
            setting = (self.name, self.epsilon, self.shift)
            return apply(_GroupedNorm, inputs, self.anchor, *setting, parts)
        inverse = _inverse_root(inputs, self.epsilon)
        return _scaled(inputs * inverse, self.name, self.shift, parts)


def _inverse_root(inputs: Tensor, epsilon: float) -> Tensor:
    return torch.rsqrt(inputs.pow(2).mean(-1, keepdim=True) + epsilon)


def _scaled(values: Tensor, name: str, shift: float, parts: Segments) -> Tensor:
    """Multiplies the tokens of each lane by its weight, in place."""
    if not parts.trained(name):
        return values.mul_(parts.lanes[0].weight(name) + shift)  # the base's, shared by all
    for lane, own in parts.split(values[0]):
        own.mul_(lane.weight(name) + shift)
    return values


class _GroupedNorm(torch.autograd.Function):
    """The norm, with the gradients of autograd, to the bit, in half the passes over memory."""

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        anchor: Tensor,
        name: str,
        epsilon: float,
        shift: float,
        parts: Segments,
    ) -> Tensor:
        inverse = _inverse_root(inputs, epsilon)
        ctx.name, ctx.shift, ctx.parts = name, shift, parts
        ctx.save_for_backward(inputs, inverse)
        return _scaled(inputs * inverse, name, shift, parts)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        gradient, (inputs, inverse) = gradient.contiguous(), ctx.saved_tensors
        if ctx.parts.trained(ctx.name):
            by_token = (gradient * (inputs * inverse)).reshape(inputs.size(1), -1, inputs.size(-1))
            for lane, own in ctx.parts.split(by_token):
                if lane.trains(ctx.name):
                    lane.gradients[ctx.name].add_(own.sum((0, 1)))
        to_inputs = None
        if ctx.needs_input_grad[0]:
            scaled = _scaled(gradient.clone(), ctx.name, ctx.shift, ctx.parts)
            slope = (scaled * inputs).sum(-1, keepdim=True).mul_(-0.5).mul_(inverse.pow(3))
            slope.div_(inputs.size(-1)).mul_(2)
            to_inputs = scaled.mul_(inverse).add_(slope * inputs)
        return to_inputs, None, None, None, None, None
