"""A causal language model whose passes serve many lanes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from study.train.packed.architecture import Block, Names, read_architecture
from study.train.packed.flat import flatten, joined

Attend = Callable[[int, Tensor, Tensor, Tensor, float], Tensor]
"""(layer, q [tokens, heads, d], k and v [tokens, kv heads, d], scaling) -> [tokens, heads, d]."""


MERGED_PARAMS = 2**18
"""Up to so many parameters a lane with adapters samples from merged weights. Larger copies would
fall out of the processor's caches, and take more memory than the lane's own states."""


class Layers(Protocol):
    """The layers of a pass: they know whose tokens lie where, and multiply by each lane's own."""

    def rows(self, name: str, ids: Tensor, padding: int) -> Tensor:
        """Rows [tokens, hidden] of an embedding; that of the token `padding` has no gradient."""

    def linear(self, names: Names, inputs: Tensor) -> Tensor:
        """Maps [tokens, in] to the outputs [tokens, sum of out] of linear layers, side by side."""

    def norm(self, names: Names, heads: tuple[int, ...], inputs: Tensor) -> Tensor:
        """RMSNorm of [tokens, d], or of [tokens, heads, d] where so many heads have each name."""


class PackedModel:
    """A causal language model whose passes serve many lanes.

    Every operation is that of the library's model, in its order, on a token axis without padding.

    Attributes:
        template: The model as the library built it; its parameters are those of the base.
        base: The base's parameters by name, tied ones once.
        architecture: What it is made of.
        flat: The base's parameters side by side, of which those in `base` are views.
        decayed: Elements of `flat`, from its beginning, that weight decay applies to.
        joined: The base's weights [sum of out, in] and biases of linear layers that read the same
            inputs, side by side.
    """

    def __init__(self, template: Any, no_decay: frozenset[str]) -> None:
        """Moves the parameters of `template` into one vector, which both then share.

        Args:
            template: The model.
            no_decay: Names without weight decay, all biases among them: they come last in the
                vector.
        """
        self.template = template.requires_grad_(False).eval()
        self.architecture = read_architecture(template)
        parameters = dict(template.named_parameters())
        names = sorted(parameters, key=lambda name: name in no_decay)  # stable: the model's order
        self.flat, self.base = flatten({name: parameters[name] for name in names})
        for name, parameter in parameters.items():
            parameter.data = self.base[name]
        self.decayed = sum(p.numel() for name, p in self.base.items() if name not in no_decay)
        self.joined = {names: joined(self.base, names) for names in self.architecture.joined}

    @property
    def merges(self) -> bool:
        """Whether rollouts add the product of adapters to a copy of the base's weights."""
        return self.flat.numel() <= MERGED_PARAMS

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        device: torch.device = self.template.device
        return device

    def full_copy(self) -> Any:
        """A model of its own, with a copy of the base's parameters."""
        return copy.deepcopy(self.template)

    def hidden(
        self,
        ids: Tensor,
        positions: Tensor,
        layers: Layers,
        attend: Attend,
        wanted: tuple[Tensor, Layers] | None = None,
    ) -> Tensor:
        """The last hidden states of tokens.

        Args:
            ids: The tokens.
            positions: Their positions.
            layers: The layers of the pass.
            attend: What the tokens of each block attend to.
            wanted: Places [n] of tokens and the layers for them: beyond the last block's attention
                nothing else is computed.

        Returns:
            [tokens, hidden], or [n, hidden] of those that are wanted.
        """
        made_of = self.architecture
        hidden = layers.rows(made_of.embedding, ids, made_of.padding)
        if made_of.embedding_scale is not None:
            hidden = hidden * made_of.embedding_scale.to(hidden.dtype)
        rotation = self._rotation(positions)
        for number, block in enumerate(made_of.blocks):
            states = layers.norm((block.attention_norm,), (), hidden)
            heads = self._heads(block, layers.linear(block.qkv, states), rotation, layers)
            seen = attend(number, *heads, block.scaling).flatten(1)
            if wanted is not None and block is made_of.blocks[-1]:
                places, layers = wanted
                hidden, seen = hidden.index_select(0, places), seen.index_select(0, places)
            hidden = _plus(hidden, layers.linear(block.output, seen))
            states = layers.norm((block.mlp_norm,), (), hidden)
            gate, up = layers.linear(block.gate_up, states).chunk(2, -1)
            states = _times(block.activation(gate), up)
            hidden = _plus(hidden, layers.linear(block.down, states))
        return layers.norm((made_of.norm,), (), hidden)

    def logits(self, hidden: Tensor, layers: Layers) -> Tensor:
        """Returns the logits [rows, vocabulary] of hidden states [rows, hidden]."""
        return layers.linear(self.architecture.head, hidden)

    def _heads(
        self, block: Block, outputs: Tensor, rotation: tuple[Tensor, Tensor], layers: Layers
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values [tokens, heads of each, d] from [tokens, all of them]."""
        made_of = self.architecture
        counts = (made_of.query_heads, made_of.key_heads)
        heads = outputs.view(outputs.size(0), -1, made_of.head_width)
        turning, values = torch.split(heads, [sum(counts), counts[1]], 1)
        if block.head_norms:
            turning = layers.norm(block.head_norms, counts, turning)
        query, key = torch.split(_rotated(turning, rotation), list(counts), 1)
        return query, key, values

    def _rotation(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines [tokens, 1, d] of positions, from the library's table."""
        longest = int(positions.max()) + 1
        if self._rotary[0].size(0) < longest:
            self._rotary = self._rotary_table(longest)
        cosines, sines = (table.index_select(0, positions) for table in self._rotary)
        return cosines.unsqueeze(1), sines.unsqueeze(1)

    @cached_property
    def _rotary(self) -> tuple[Tensor, Tensor]:
        return self._rotary_table(1)

    def _rotary_table(self, longest: int) -> tuple[Tensor, Tensor]:
        positions = torch.arange(2 * longest, device=self.device).unsqueeze(0)
        weight = next(iter(self.base.values()))
        cosines, sines = self.template.base_model.rotary_emb(weight, positions)
        return cosines[0], sines[0]


def _plus(residual: Tensor, states: Tensor) -> Tensor:
    """The sum; in the memory of `states`, which nobody else reads, where no gradient is wanted."""
    return residual + states if torch.is_grad_enabled() else states.add_(residual)


def _times(gate: Tensor, states: Tensor) -> Tensor:
    """The product; in the memory of `gate` where no gradient is wanted."""
    return gate * states if torch.is_grad_enabled() else gate.mul_(states)


def _rotated(heads: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """Rotary embedding of [tokens, heads, d]: x cos + (-x2, x1) sin, with x = (x1, x2)."""
    cosines, sines = rotation
    first, second = heads.chunk(2, -1)
    turned = torch.cat([-second, first], -1)
    if torch.is_grad_enabled():
        return heads * cosines + turned * sines
    return (heads * cosines).add_(turned.mul_(sines))
