"""The layers of a pass without gradients: one product for all lanes of a kind.

Completions are sampled token by token, a few rows of each lane at a time; a call for each lane
would cost more than its arithmetic. So lanes of one kind (full fine-tuning; adapters of the same
targets and similar rank) are stacked: their weights lie side by side, each brings equally many
rows, the shorter ones some of their own twice, and a batched product serves them all. Rows of a
product do not feel each other (:mod:`study.train.packed.products`), so a lane gets the bits that it
would get alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from study.train.packed.architecture import Names
from study.train.packed.layers import inverse_root, norm_weight
from study.train.packed.model import PackedModel
from study.train.packed.products import LEAST_ROWS, multiply, rows_are_independent
from study.train.packed.tree import Ints
from study.train.packed.weights import AdapterWeights, LaneWeights


class Stack(ABC):
    """Lanes of one kind."""

    shares_base: bool

    def __init__(self, values: Tensor) -> None:
        """Takes in the lanes' weights [lanes, size] as the kind lays them out."""
        self._values = values
        self._known: dict[object, Tensor] = {}

    @property
    def lanes(self) -> int:
        """How many there are."""
        return self._values.size(0)

    @abstractmethod
    def keep(self, lanes: Ints) -> Stack:
        """The stack of some of its lanes."""

    @abstractmethod
    def linear(self, names: Names, inputs: Tensor, outputs: Tensor) -> None:
        """Linear layers side by side.

        Args:
            names: Their weights.
            inputs: [lanes, n, in].
            outputs: [lanes, n, sum of out]: written to; where lanes share the base, the base's
                product is there and the adapters' is added.
        """

    def _of_lanes(self, like: Tensor) -> Tensor:
        """The lanes' tensors [lanes, ...] that lie where `like` lies in a vector of one lane."""
        where = (like.storage_offset(), like.shape)
        if where not in self._known:
            shape, strides = (self.lanes, *like.shape), (self._values.stride(0), *like.stride())
            self._known[where] = self._values.as_strided(shape, strides, like.storage_offset())
        return self._known[where]


class DenseStack(Stack):
    """Lanes with matrices of their own: full fine-tuning, and adapters merged into the base."""

    shares_base = False

    def __init__(self, model: PackedModel, values: Tensor) -> None:
        """Takes in vectors that are laid out as the model's."""
        super().__init__(values)
        self._model = model

    @staticmethod
    def of(model: PackedModel, lanes: Sequence[LaneWeights]) -> DenseStack:
        """Stacks lanes; a single one of full fine-tuning is not copied."""
        vectors = [
            lane.merged() if isinstance(lane, AdapterWeights) else lane.flat for lane in lanes
        ]
        values = vectors[0].unsqueeze(0) if len(vectors) == 1 else torch.stack(vectors)
        return DenseStack(model, values)

    def keep(self, lanes: Ints) -> DenseStack:
        """The stack of some of its lanes."""
        return DenseStack(self._model, self._values[torch.from_numpy(lanes)])

    def weight(self, name: str) -> Tensor:
        """The lanes' tensors [lanes, ...] of this name."""
        return self._of_lanes(self._model.base[name])

    def norm_weight(self, names: Names, heads: tuple[int, ...]) -> Tensor:
        """What a norm multiplies by: [lanes, 1, d], or [lanes, 1, heads, d] of several norms."""
        if names not in self._known:
            weights = [self.weight(name) for name in names]
            if heads:
                pairs = zip(weights, heads, strict=True)
                weights = [torch.cat([w.unsqueeze(1).expand(-1, n, -1) for w, n in pairs], 1)]
            self._known[names] = (weights[0] + self._model.architecture.norm_shift).unsqueeze(1)
        return self._known[names]

    def linear(self, names: Names, inputs: Tensor, outputs: Tensor) -> None:
        """y = x W^T + b."""
        weight, bias = self._model.joined[names]
        weights = self._of_lanes(weight).transpose(1, 2)
        shifts = None if bias is None else self._of_lanes(bias)
        if self.lanes == 1:
            multiply(inputs[0], weights[0], None if shifts is None else shifts[0], outputs[0])
        elif shifts is None:
            torch.bmm(inputs, weights, out=outputs)
        else:
            torch.baddbmm(shifts.unsqueeze(1), inputs, weights, out=outputs)


class AdapterStack(Stack):
    """Lanes with adapters of the same targets, their ranks filled up alike.

    Of linear layers side by side, x A^T is one product for all targets, and so is what B makes of
    it: the B of all targets are blocks of one matrix. The zeros around them add nothing.
    """

    shares_base = True

    def __init__(self, values: Tensor, like: AdapterWeights) -> None:
        """Takes in the lanes' filled vectors, laid out as that of `like`."""
        super().__init__(values)
        self._like = like

    @staticmethod
    def of(lanes: Sequence[AdapterWeights]) -> AdapterStack:
        """Stacks lanes."""
        return AdapterStack(
            torch.stack([lane.filled.values(lane.flat, lane.scaling) for lane in lanes]), lanes[0]
        )

    def keep(self, lanes: Ints) -> AdapterStack:
        """The stack of some of its lanes."""
        return AdapterStack(self._values[torch.from_numpy(lanes)], self._like)

    def linear(self, names: Names, inputs: Tensor, outputs: Tensor) -> None:
        """y += s (x A^T) B^T."""
        place = self._like.filled.places.get(names)
        if place is None:
            return
        a, b = self._of_lanes(place.a), self._of_lanes(place.b)
        if self.lanes > 1:
            outputs.baddbmm_(torch.bmm(inputs, a.transpose(1, 2)), b.transpose(1, 2))
            return
        inner = inputs[0] @ a[0].t()
        for rows, columns in place.blocks:  # their zeros are not worth a product of many rows
            outputs[0, :, rows].addmm_(inner[:, columns], b[0, rows, columns].t())


class StackedLayers:
    """The layers of a pass: stack after stack, in each lane after lane, equally many rows each."""

    def __init__(self, model: PackedModel, stacks: Sequence[Stack], sizes: Sequence[int]) -> None:
        """Builds the layers; stacks that share the base come last.

        Args:
            model: The model.
            stacks: The lanes.
            sizes: Rows of each lane of each stack.
        """
        self._model, self._parts = model, []
        start, own_rows = 0, 0
        for stack, size in zip(stacks, sizes, strict=True):
            stop = start + stack.lanes * size
            self._parts.append((stack, slice(start, stop), (stack.lanes, size)))
            own_rows = own_rows if stack.shares_base else stop
            start = stop
        self._base = slice(own_rows, start) if own_rows < start else None

    def rows(self, name: str, ids: Tensor, padding: int) -> Tensor:
        """Rows of each lane's own matrix."""
        found = torch.nn.functional.embedding(ids, self._model.base[name])
        for stack, own, shape in self._parts:
            if isinstance(stack, DenseStack):
                lane = torch.arange(stack.lanes, device=ids.device).unsqueeze(1)
                found[own] = stack.weight(name)[lane, ids[own].view(shape)].flatten(0, 1)
        return found

    def linear(self, names: Names, inputs: Tensor) -> Tensor:
        """y = x W^T + b, with each lane's own W or adapter."""
        weight, bias = self._model.joined[names]
        outputs = inputs.new_empty(inputs.size(0), weight.size(0))
        if self._base is not None:
            multiply(inputs[self._base], weight.t(), bias, outputs[self._base])
        for stack, own, shape in self._parts:
            stack.linear(names, inputs[own].view(*shape, -1), outputs[own].view(*shape, -1))
        return outputs

    def norm(self, names: Names, heads: tuple[int, ...], inputs: Tensor) -> Tensor:
        """y = x / sqrt(mean x^2 + eps) w, with each lane's own w (Gemma's is 1 + w)."""
        made_of = self._model.architecture
        values = inputs * inverse_root(inputs, made_of.epsilon)
        if self._base is not None:
            weights = [self._model.base[name] for name in names]
            values[self._base].mul_(norm_weight(weights, heads) + made_of.norm_shift)
        for stack, own, (lanes, size) in self._parts:
            if isinstance(stack, DenseStack):
                shape = (lanes, size, *values.shape[1:])
                values[own].view(shape).mul_(stack.norm_weight(names, heads))
        return values


@dataclass(frozen=True)
class Rows:
    """The rows of a pass, equally many for each lane of a stack.

    Attributes:
        layers: The layers of the pass.
        item: Item that each row stands for.
        owner: Lane of each row.
        place: Row of each item.
    """

    layers: StackedLayers
    item: Ints
    owner: Ints
    place: Ints


class Stacks:
    """Lanes in stacks; those that have no more rows go."""

    def __init__(self, model: PackedModel, lanes: Sequence[LaneWeights]) -> None:
        """Stacks lanes that lie side by side by their `kind`, in its order."""
        self._model = model
        alone = not rows_are_independent()
        numbers = range(len(lanes))
        groups = groupby(numbers, lambda i: (lanes[i].kind, i if alone else 0))
        members = [np.array(list(group)) for _, group in groups]
        self.stacks = [(_stack(model, [lanes[i] for i in own]), own) for own in members]

    def rows(self, counts: Ints) -> Rows:
        """Rows for items, so many of each lane, lane by lane.

        Shorter lanes of a stack have their last item several times.
        """
        starts = np.cumsum(counts) - counts
        kept, sizes, items = [], [], []
        for stack, members in self.stacks:
            going_on = counts[members] > 0
            if not going_on.any():
                continue
            if not going_on.all():
                stack, members = stack.keep(np.flatnonzero(going_on)), members[going_on]
            own = counts[members][:, None]
            sizes.append(max(LEAST_ROWS, int(own.max())))
            items.append(starts[members][:, None] + np.minimum(np.arange(sizes[-1]), own - 1))
            kept.append((stack, members))
        self.stacks = kept
        item = np.concatenate([own.ravel() for own in items])
        place = np.empty(int(counts.sum()), np.int64)
        place[item[::-1]] = np.arange(item.size)[::-1]  # the first of several
        owner = np.concatenate([np.repeat(m, n) for (_, m), n in zip(kept, sizes, strict=True)])
        layers = StackedLayers(self._model, [stack for stack, _ in kept], sizes)
        return Rows(layers, item, owner, place)


def _stack(model: PackedModel, lanes: Sequence[LaneWeights]) -> Stack:
    adapters = [lane for lane in lanes if isinstance(lane, AdapterWeights)]
    if model.merges or not adapters:
        return DenseStack.of(model, lanes)
    return AdapterStack.of(adapters)
