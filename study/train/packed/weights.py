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

    shares_base: bool
    """Whether the lane's `weight` is the base's, the same for all lanes that share it."""

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
        """The lane's tensor of this name, an adapter beside it left out."""

    @abstractmethod
    def trains(self, name: str) -> bool:
        """Whether the lane has a gradient for this name."""

    @abstractmethod
    def adapt(self, name: str, inputs: Tensor, outputs: Tensor) -> Tensor | None:
        """Adds what an adapter contributes to a linear layer.

        Args:
            name: The layer's weight.
            inputs: Its inputs [n, in].
            outputs: The product [n, out] with the weight, which is added to.

        Returns:
            What `backward` wants to have again.
        """

    @abstractmethod
    def backward(
        self, name: str, saved: tuple[Tensor, Tensor | None], gradient: Tensor, out: Tensor | None
    ) -> None:
        """Adds a linear layer's gradient to what the lane trains of it.

        Args:
            name: The layer's weight.
            saved: Its inputs [n, in], and what `adapt` returned.
            gradient: Gradient of its outputs [n, out].
            out: Gradient of its inputs through the weight [n, in]; an adapter's is added.
        """


class FullWeights(LaneWeights):
    """A lane of full fine-tuning: a copy of every parameter of the base."""

    shares_base = False

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

    def adapt(self, name: str, inputs: Tensor, outputs: Tensor) -> Tensor | None:
        """Nothing to add."""
        return None

    def backward(
        self, name: str, saved: tuple[Tensor, Tensor | None], gradient: Tensor, out: Tensor | None
    ) -> None:
        """dW += g^T x."""
        self.gradients[name].addmm_(gradient.t(), saved[0])


class AdapterWeights(LaneWeights):
    """A LoRA lane: A [r, in] and B [out, r] for each target, beside a base that it shares.

    As in PEFT, y = x W^T + s (x A^T) B^T with s = alpha / r: never W + s B A, whose rounding would
    grow from step to step into another run than TRL's.
    """

    shares_base = True

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
        own = self.parameters
        self.adapters = {name: (own[f"{name} A"], own[f"{name} B"]) for name in adapters}
        self._transposed = {name: (a.t(), b.t()) for name, (a, b) in self.adapters.items()}

    def weight(self, name: str) -> Tensor:
        """The base's tensor."""
        return self._base[name]

    def trains(self, name: str) -> bool:
        """Targets are trained, nothing else."""
        return name in self.adapters

    def adapt(self, name: str, inputs: Tensor, outputs: Tensor) -> Tensor | None:
        """y += s (x A^T) B^T; returns x A^T."""
        if name not in self.adapters:
            return None
        a, b = self._transposed[name]
        inner = torch.mm(inputs, a)
        outputs.addmm_(inner, b, alpha=self._scaling)
        return inner

    def backward(
        self, name: str, saved: tuple[Tensor, Tensor | None], gradient: Tensor, out: Tensor | None
    ) -> None:
        """dB += s g^T (x A^T); dA += h^T x and dx += h A with h = s g B."""
        if name not in self.adapters:
            return
        a, b = self.adapters[name]
        inputs, inner = saved
        assert inner is not None, "adapt returned it"
        # Thin products up to four times as fast as g B and g^T (x A^T) written as they stand.
        to_inner = torch.mm(gradient, b.t().contiguous().t()).mul_(self._scaling)
        self.gradients[f"{name} B"].add_((inner.t() @ gradient).t(), alpha=self._scaling)
        self.gradients[f"{name} A"].addmm_(to_inner.t(), inputs)
        if out is not None:
            out.addmm_(to_inner, a)


def _views(flat: Tensor, shapes: Mapping[str, torch.Size]) -> dict[str, Tensor]:
    pieces = torch.split(flat, [shape.numel() for shape in shapes.values()])
    return {name: piece.view(shapes[name]) for name, piece in zip(shapes, pieces, strict=True)}
