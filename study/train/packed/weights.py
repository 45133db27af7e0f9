"""The weights of one lane: what its layers multiply by, and where its gradients go.

Every lane keeps what it trains in one flat vector, with views of it under the names of the layers,
and its gradients in a second one of the same shape. The clip, the optimizer and the checks then
work on two tensors, whatever the number of layers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor


class LaneWeights(ABC):
    """What a packed layer asks of a lane; names are those of the model's parameters.

    Attributes:
        flat: Everything the lane trains, one dimension.
        gradient: Gradient of the lane's loss with respect to `flat`, same shape.
        parameters: Views of `flat`, one for each trained parameter.
        gradients: Views of `gradient`, under the same names.
        decayed: Elements of `flat`, from its beginning, that weight decay applies to.
    """

    def __init__(self, initial: Mapping[str, Tensor], decayed: int) -> None:
        """Copies the initial values of what the lane trains."""
        shapes = {name: tensor.shape for name, tensor in initial.items()}
        self.flat = torch.cat([tensor.reshape(-1) for tensor in initial.values()])
        self.gradient = torch.zeros_like(self.flat)
        self.parameters = _views(self.flat, shapes)
        self.gradients = _views(self.gradient, shapes)
        self.decayed = decayed

    @abstractmethod
    def weight(self, name: str) -> Tensor:
        """The tensor that a pass without gradient uses under this name."""

    @abstractmethod
    def trains(self, name: str) -> bool:
        """Whether the lane has a gradient for this name."""

    @abstractmethod
    def forward(
        self, name: str, inputs: Tensor, bias: Tensor | None, outputs: Tensor
    ) -> Tensor | None:
        """A linear layer of a training pass.

        Args:
            name: Its weight.
            inputs: Its inputs [n, in].
            bias: Its bias [out], if it has one.
            outputs: Where its outputs [n, out] go.

        Returns:
            What `backward` wants to have again.
        """

    @abstractmethod
    def backward(
        self, name: str, saved: tuple[Tensor, Tensor | None], gradient: Tensor, out: Tensor | None
    ) -> None:
        """Adds the gradient of the layer's weight, and writes that of its inputs.

        Args:
            name: Its weight.
            saved: Its inputs [n, in], and what `forward` returned.
            gradient: Gradient of its outputs [n, out].
            out: Where the gradient of its inputs goes, if it is wanted.
        """

    @property
    @abstractmethod
    def merged_bytes(self) -> int:
        """Memory that `merge` takes."""

    @abstractmethod
    def merge(self) -> None:
        """Called before passes without gradient, in which `weight` is called many times over."""

    @abstractmethod
    def release(self) -> None:
        """Drops what `merge` keeps in memory."""


class FullWeights(LaneWeights):
    """A lane of full fine-tuning: a copy of every parameter of the base."""

    def __init__(self, base: Mapping[str, Tensor], no_decay: frozenset[str]) -> None:
        """Copies the base.

        Args:
            base: Parameters by name, tied ones once.
            no_decay: Names without weight decay; they come last in `flat`.
        """
        names = sorted(base, key=lambda name: name in no_decay)  # stable: else the model's order
        decayed = sum(base[name].numel() for name in names if name not in no_decay)
        super().__init__({name: base[name] for name in names}, decayed)

    def weight(self, name: str) -> Tensor:
        """The lane's own tensor."""
        return self.parameters[name]

    def trains(self, name: str) -> bool:
        """Every parameter is trained."""
        return True

    def forward(
        self, name: str, inputs: Tensor, bias: Tensor | None, outputs: Tensor
    ) -> Tensor | None:
        """y = x W^T + b."""
        multiply(inputs, self.parameters[name], bias, outputs)
        return None

    def backward(
        self, name: str, saved: tuple[Tensor, Tensor | None], gradient: Tensor, out: Tensor | None
    ) -> None:
        """dW += g^T x; dx = g W."""
        self.gradients[name].addmm_(gradient.t(), saved[0])
        if out is not None:
            torch.mm(gradient, self.parameters[name], out=out)

    @property
    def merged_bytes(self) -> int:
        """Nothing is merged: the weights are used as they are."""
        return 0

    def merge(self) -> None:
        """Nothing to merge."""

    def release(self) -> None:
        """Nothing to release."""


class AdapterWeights(LaneWeights):
    """A LoRA lane: A [r, in] and B [out, r] for each target, beside a base that it shares.

    A training pass computes x W^T + (alpha / r) (x A^T) B^T, as PEFT does, since what differs there
    in the last digit grows from step to step. Rollouts, whose rounding no weight ever sees, use
    W + (alpha / r) B A, formed once: a third of the products, and two additions less a layer.
    """

    def __init__(
        self,
        base: Mapping[str, Tensor],
        adapters: Mapping[str, tuple[Tensor, Tensor]],
        scaling: float,
    ) -> None:
        """Builds the lane.

        Args:
            base: Parameters by name, tied ones once; never written to.
            adapters: Initial A and B by the name of the weight that they adapt.
            scaling: alpha / r.
        """
        initial: dict[str, Tensor] = {}
        for name, (a, b) in adapters.items():
            initial |= {f"{name} A": a, f"{name} B": b}
        super().__init__(initial, sum(tensor.numel() for tensor in initial.values()))
        self._base, self._scaling = base, scaling
        self._merged: dict[str, Tensor] = {}
        self.adapters = {
            n: (self.parameters[f"{n} A"], self.parameters[f"{n} B"]) for n in adapters
        }

    def weight(self, name: str) -> Tensor:
        """The base's tensor, with the adapter merged where there is one."""
        if name not in self.adapters:
            return self._base[name]
        return self._merged[name] if self._merged else self._merge(name)

    def trains(self, name: str) -> bool:
        """Targets are trained, nothing else."""
        return name in self.adapters

    def forward(
        self, name: str, inputs: Tensor, bias: Tensor | None, outputs: Tensor
    ) -> Tensor | None:
        """y = x W^T + b + s (x A^T) B^T; returns x A^T."""
        multiply(inputs, self._base[name], bias, outputs)
        if name not in self.adapters:
            return None
        a, b = self.adapters[name]
        inner = inputs @ a.t()
        outputs.addmm_(inner, b.t(), alpha=self._scaling)
        return inner

    def backward(
        self, name: str, saved: tuple[Tensor, Tensor | None], gradient: Tensor, out: Tensor | None
    ) -> None:
        """dB += s g^T (x A^T); dA += h^T x and dx = g W + h A with h = s g B."""
        if out is not None:
            torch.mm(gradient, self._base[name], out=out)
        if name not in self.adapters:
            return
        a, b = self.adapters[name]
        inputs, inner = saved
        assert inner is not None, "forward returned it"
        to_inner = (gradient @ b).mul_(self._scaling)
        self.gradients[f"{name} B"].addmm_(gradient.t(), inner, alpha=self._scaling)
        self.gradients[f"{name} A"].addmm_(to_inner.t(), inputs)
        if out is not None:
            out.addmm_(to_inner, a)

    @property
    def merged_bytes(self) -> int:
        """The targets' own size."""
        return sum(self._base[name].nbytes for name in self.adapters)

    def merge(self) -> None:
        """Merges every target."""
        self._merged = {name: self._merge(name) for name in self.adapters}

    def release(self) -> None:
        """Drops the merged copies."""
        self._merged = {}

    def _merge(self, name: str) -> Tensor:
        a, b = self.adapters[name]
        return torch.addmm(self._base[name], b, a, alpha=self._scaling)


def multiply(inputs: Tensor, weight: Tensor, bias: Tensor | None, outputs: Tensor) -> None:
    """Writes x W^T + b."""
    if bias is None:
        torch.mm(inputs, weight.t(), out=outputs)
    else:
        torch.addmm(bias, inputs, weight.t(), out=outputs)


def _views(flat: Tensor, shapes: Mapping[str, torch.Size]) -> dict[str, Tensor]:
    pieces = torch.split(flat, [shape.numel() for shape in shapes.values()])
    return {name: piece.view(shapes[name]) for name, piece in zip(shapes, pieces, strict=True)}
