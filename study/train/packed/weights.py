"""The weights of one lane: what its layers multiply by, and where its gradients go.

Every lane keeps what it trains in one flat vector, with views of it under the names of the layers,
and its gradients in a second one of the same shape. The clip, the optimizer and the checks then
work on two tensors, whatever the number of layers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property

import torch
from torch import Tensor

from study.train.packed.architecture import Names
from study.train.packed.filled import Filled
from study.train.packed.flat import flatten, joined, same_place, views
from study.train.packed.model import PackedModel

Inner = list[Tensor]
"""x A^T of each target among linear layers that lie side by side."""


class LaneWeights(ABC):
    """What a packed layer asks of a lane; names are those of the model's parameters.

    Attributes:
        flat: Everything the lane trains, one dimension.
        gradient: Gradient of the lane's loss with respect to `flat`, same shape.
        parameters: Views of `flat`, one for each trained parameter.
        gradients: Views of `gradient`, under the same names.
        decayed: Elements of `flat`, from its beginning, that weight decay applies to.
    """

    shares_base: bool
    """Whether the lane's `weight` is the base's, the same for all lanes that share it."""

    def __init__(self, initial: Mapping[str, Tensor], decayed: int) -> None:
        """Copies the initial values of what the lane trains."""
        self.flat, self.parameters = flatten(initial)
        self.gradient = torch.zeros_like(self.flat)
        self.gradients = views(self.gradient, {name: x.shape for name, x in initial.items()})
        self.decayed = decayed

    @property
    @abstractmethod
    def kind(self) -> tuple[object, ...]:
        """Equal for lanes that a pass without gradients serves with one product."""

    @abstractmethod
    def weight(self, name: str) -> Tensor:
        """The lane's tensor of this name, an adapter beside it left out."""

    @abstractmethod
    def joined(self, names: Names) -> tuple[Tensor, Tensor | None]:
        """Weight [sum of out, in] and bias [sum of out] of linear layers side by side."""

    @abstractmethod
    def trains(self, name: str) -> bool:
        """Whether the lane has a gradient for this name."""

    @abstractmethod
    def adapt(self, names: Names, inputs: Tensor, outputs: Tensor) -> Inner:
        """Adds what adapters contribute to linear layers side by side.

        Args:
            names: The layers' weights.
            inputs: Their inputs [n, in].
            outputs: The products [n, sum of out] with the weights, which are added to.

        Returns:
            What `backward` wants to have again.
        """

    @abstractmethod
    def backward(
        self, names: Names, saved: tuple[Tensor, Inner], gradient: Tensor, out: Tensor | None
    ) -> None:
        """Adds the gradient of linear layers side by side to what the lane trains of them.

        Args:
            names: The layers' weights.
            saved: Their inputs [n, in], and what `adapt` returned.
            gradient: Gradient of their outputs [n, sum of out].
            out: Gradient of the inputs through the weights [n, in]; adapters' are added.
        """


class FullWeights(LaneWeights):
    """A lane of full fine-tuning: a copy of every parameter of the base."""

    shares_base = False

    def __init__(self, model: PackedModel) -> None:
        """Copies the model's parameters, in the order of its vector."""
        super().__init__(model.base, model.decayed)
        self._joined = {names: joined(self.parameters, names) for names in model.joined}
        self._joined_gradients = {names: joined(self.gradients, names) for names in model.joined}

    @property
    def kind(self) -> tuple[object, ...]:
        """That of lanes with matrices of their own."""
        return (False,)

    def weight(self, name: str) -> Tensor:
        """The lane's own tensor."""
        return self.parameters[name]

    def joined(self, names: Names) -> tuple[Tensor, Tensor | None]:
        """The lane's own tensors."""
        return self._joined[names]

    def trains(self, name: str) -> bool:
        """Every parameter is trained."""
        return True

    def adapt(self, names: Names, inputs: Tensor, outputs: Tensor) -> Inner:
        """Nothing to add."""
        return []

    def backward(
        self, names: Names, saved: tuple[Tensor, Inner], gradient: Tensor, out: Tensor | None
    ) -> None:
        """dW += g^T x; db += sum of g."""
        weight, bias = self._joined_gradients[names]
        weight.addmm_(gradient.t(), saved[0])
        if bias is not None:
            bias.add_(gradient.sum(0))


class AdapterWeights(LaneWeights):
    """A LoRA lane: A [r, in] and B [out, r] for each target, beside a base that it shares.

    As in PEFT, y = x W^T + s (x A^T) B^T with s = alpha / r: never W + s B A where gradients are
    made, since its rounding would grow from step to step into another run than TRL's.
    """

    shares_base = True

    def __init__(
        self,
        model: PackedModel,
        adapters: Mapping[str, tuple[Tensor, Tensor]],
        scaling: float,
    ) -> None:
        """Builds the lane.

        Args:
            model: What it adapts; never written to.
            adapters: Initial A and B by the name of the weight that they adapt.
            scaling: alpha / r.
        """
        initial: dict[str, Tensor] = {}
        for name, (a, b) in adapters.items():
            initial |= {f"{name} A": a, f"{name} B": b}
        super().__init__(initial, sum(tensor.numel() for tensor in initial.values()))
        self.model, self.scaling = model, scaling
        own = self.parameters
        self.adapters = {name: (own[f"{name} A"], own[f"{name} B"]) for name in adapters}
        self._transposed = {name: (a.t(), b.t()) for name, (a, b) in self.adapters.items()}

    @property
    def kind(self) -> tuple[object, ...]:
        """Merged, that of full fine-tuning; else by rank and targets."""
        return (False,) if self.model.merges else (True, *self.filled.kind)

    def merged(self) -> Tensor:
        """A copy of the model's vector with W + s B A for each target."""
        flat = self.model.flat.clone()
        for name, (a, b) in self.adapters.items():
            same_place(self.model.base[name], flat).addmm_(b, a, alpha=self.scaling)
        return flat

    @cached_property
    def filled(self) -> Filled:
        """Their layout for batched products."""
        groups = self.model.joined
        outputs = {name: self.weight(name).size(0) for names in groups for name in names}
        return Filled(self.adapters, groups, outputs)

    def weight(self, name: str) -> Tensor:
        """The base's tensor."""
        return self.model.base[name]

    def joined(self, names: Names) -> tuple[Tensor, Tensor | None]:
        """The base's tensors."""
        return self.model.joined[names]

    def trains(self, name: str) -> bool:
        """Targets are trained, nothing else."""
        return name in self.adapters

    def adapt(self, names: Names, inputs: Tensor, outputs: Tensor) -> Inner:
        """y += s (x A^T) B^T; returns x A^T of each target."""
        found: Inner = []
        for name, own in self._columns(names, outputs):
            a, b = self._transposed[name]
            inner = torch.mm(inputs, a)
            own.addmm_(inner, b, alpha=self.scaling)
            found.append(inner)
        return found

    def backward(
        self, names: Names, saved: tuple[Tensor, Inner], gradient: Tensor, out: Tensor | None
    ) -> None:
        """dB += s g^T (x A^T); dA += h^T x and dx += h A with h = s g B."""
        inputs, inners = saved
        for (name, own), inner in zip(self._columns(names, gradient), inners, strict=True):
            a, (_, b) = self.adapters[name][0], self._transposed[name]
            # Thin products up to four times as fast as g B and g^T (x A^T) as they stand.
            to_inner = torch.mm(own, b.contiguous().t()).mul_(self.scaling)
            self.gradients[f"{name} B"].add_((inner.t() @ own).t(), alpha=self.scaling)
            self.gradients[f"{name} A"].addmm_(to_inner.t(), inputs)
            if out is not None:
                out.addmm_(to_inner, a)

    def _columns(self, names: Names, outputs: Tensor) -> list[tuple[str, Tensor]]:
        """Each target among layers side by side, with its columns of [n, sum of out]."""
        columns = torch.split(outputs, [self.weight(name).size(0) for name in names], 1)
        pairs = zip(names, columns, strict=True)
        return [(name, own) for name, own in pairs if name in self.adapters]
