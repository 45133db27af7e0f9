"""Packed twins of a model's layers: one pass over the tokens of many lanes.

The tokens of a pass lie on one axis without padding, lane after lane. Whatever works on single
tokens (norms, activations, rotary embeddings, residuals, products with a weight that lanes share)
runs on the whole axis at once. What is a lane's own (adapters, the matrices of full fine-tuning,
all gradients of weights) runs on the lane's slice of the axis, so that its numbers depend on its
own tokens alone: a sum over more tokens would round differently.

Gradients of weights do not pass through autograd: a packed layer's backward adds them to its lane.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface

from study.train.packed.products import multiply, rows_are_independent
from study.train.packed.weights import LaneWeights

Attend = Callable[[int, Tensor, Tensor, Tensor, float], Tensor]
"""(layer, q [tokens, heads, d], k and v [tokens, kv heads, d], scaling) -> [tokens, heads, d]."""


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

    def split(self, tokens: Tensor) -> Iterator[tuple[LaneWeights, Tensor]]:
        """Each lane with its slice of the first dimension."""
        return zip(self.lanes, torch.split_with_sizes(tokens, self.sizes), strict=True)

    def trained(self, name: str) -> bool:
        """Whether some lane has a gradient for this name."""
        return any(lane.trains(name) for lane in self.lanes)


@dataclass
class _Pass:
    """What the layers need to know of the pass that runs."""

    segments: Segments = field(default_factory=lambda: Segments([], []))
    attend: Attend | None = None


class PackedModel:
    """A causal language model whose passes serve many lanes.

    Attributes:
        template: The model as the library built it; its parameters are those of the base.
        base: The base's parameters by name, tied ones once.
    """

    def __init__(self, template: Any) -> None:
        """Builds packed twins around the parameters of `template`, which are shared, not copied."""
        self.template = template.requires_grad_(False)
        self.base = {name: p.detach() for name, p in template.named_parameters()}
        self._names = {id(p): name for name, p in template.named_parameters()}
        self._pass = _Pass()
        model = copy.deepcopy(template, {id(p): p for p in template.parameters()}).eval()
        self._anchor = torch.zeros((), device=template.device, requires_grad=True)
        self._install(model)
        model.config._attn_implementation = _ATTENTION
        self._backbone = model.base_model
        self._head = model.get_output_embeddings()

    def full_copy(self) -> Any:
        """A model of its own, with a copy of the base's parameters."""
        return copy.deepcopy(self.template)

    def hidden(self, ids: Tensor, positions: Tensor, parts: Segments, attend: Attend) -> Tensor:
        """Returns the last hidden states [tokens, hidden] of the tokens `ids` at `positions`."""
        self._pass.segments, self._pass.attend = parts, attend
        output = self._backbone(
            input_ids=ids.unsqueeze(0), position_ids=positions.unsqueeze(0), use_cache=False
        )
        hidden: Tensor = output.last_hidden_state[0]
        return hidden

    def logits(self, hidden: Tensor, parts: Segments) -> Tensor:
        """Returns the logits [rows, vocabulary] of hidden states [rows, hidden]."""
        self._pass.segments = parts
        logits: Tensor = self._head(hidden.unsqueeze(0))[0]
        return logits

    def _install(self, model: Any) -> None:
        for name, module in list(model.named_modules()):
            if hasattr(module, "layer_idx"):
                module.packed_pass = self._pass
            own = [parameter for _, parameter in module.named_parameters(recurse=False)]
            if own:
                _replace(model, name, self._twin(module))

    def _twin(self, module: nn.Module) -> nn.Module:
        names = {key: self._names[id(p)] for key, p in module.named_parameters(recurse=False)}
        if isinstance(module, nn.Linear):
            return _PackedLinear(self._pass, self._anchor, names)
        if isinstance(module, nn.Embedding):
            return _PackedEmbedding(self._pass, self._anchor, names, module)
        assert list(names) == ["weight"], f"no twin of {module}"
        return _PackedNorm(self._pass, self._anchor, names, module)


def _replace(model: nn.Module, name: str, twin: nn.Module) -> None:
    parent, _, leaf = name.rpartition(".")
    setattr(model.get_submodule(parent), leaf, twin)


class _PackedLayer(nn.Module):
    """A layer whose weight each lane brings."""

    def __init__(self, current: _Pass, anchor: Tensor, names: dict[str, str]) -> None:
        super().__init__()
        self.current = current
        self.anchor = anchor  # makes outputs require gradients where only lanes' weights do
        self.name = names["weight"]
        self.bias = names.get("bias")


def apply(function: type[torch.autograd.Function], *arguments: object) -> Tensor:
    """Runs an autograd function, whose ``apply`` the library does not type."""
    result: Tensor = function.apply(*arguments)  # type: ignore[no-untyped-call]
    return result


class _PackedLinear(_PackedLayer):
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


class _PackedEmbedding(_PackedLayer):
    """Rows of each lane's own matrix."""

    def __init__(
        self, current: _Pass, anchor: Tensor, names: dict[str, str], module: nn.Embedding
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


class _PackedNorm(_PackedLayer):
    """RMSNorm: y = x / sqrt(mean x^2 + eps) w, with each lane's own w (Gemma's is 1 + w)."""

    def __init__(
        self, current: _Pass, anchor: Tensor, names: dict[str, str], module: nn.Module
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


def _packed_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    **_: Any,
) -> tuple[Tensor, None]:
    """The attention function that the library calls: [1, heads, tokens, d] each."""
    current: Any = module.packed_pass
    rows = (x[0].transpose(0, 1) for x in (query, key, value))
    return current.attend(module.layer_idx, *rows, scaling).unsqueeze(0), None


_ATTENTION = "packed_lanes"
AttentionInterface.register(_ATTENTION, _packed_attention)
