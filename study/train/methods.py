"""Full fine-tuning and LoRA: what is trained, and proof afterwards that exactly this was."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from peft import LoraConfig
from torch import nn

from study.config import LoraMethod, MethodConfig
from study.train.models import hash_parameters


def adapter_config(method: MethodConfig, target_modules: list[str]) -> Any:
    """Returns the ``peft.LoraConfig`` of a method, or None for full fine-tuning.

    W' = W + (alpha / rank) B A; A ~ U(-1/sqrt(d_in), 1/sqrt(d_in)), B = 0 (PEFT's default
    initialisation), no dropout. The trainer seeds torch before it builds the adapter, so
    that equal seeds give equal A whatever was drawn before.

    Args:
        method: The method.
        target_modules: Full names of the linear layers to adapt.
    """
    if not isinstance(method, LoraMethod):
        return None
    assert target_modules, "a LoRA run adapts at least one layer"
    return LoraConfig(
        r=method.rank,
        lora_alpha=method.alpha,
        target_modules=list(target_modules),  # PEFT saves it as JSON: a plain list
        lora_dropout=0.0,
        bias="none",
        use_rslora=False,
        init_lora_weights=True,
        task_type="CAUSAL_LM",
    )


def prepare_model(model: nn.Module, method: MethodConfig) -> None:
    """Marks every parameter as trainable under full fine-tuning; PEFT does it under LoRA."""
    if not isinstance(method, LoraMethod):
        model.requires_grad_(True)


def trained(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """Yields the trainable parameters with their names, tied ones once."""
    return (item for item in model.named_parameters() if item[1].requires_grad)


def frozen(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """Yields the frozen parameters with their names, tied ones once."""
    return (item for item in model.named_parameters() if not item[1].requires_grad)


def check_trainable(weights: Iterable[tuple[str, torch.Tensor]], expected: int) -> None:
    """Checks, before step 0, that the method trains what its closed form says.

    Args:
        weights: The trained parameters with their names.
        expected: Their number by the closed form.

    Raises:
        RuntimeError: If another number of parameters is trainable.
    """
    count = sum(weight.numel() for _, weight in weights)
    if count != expected:
        raise RuntimeError(f"{expected} parameters must be trainable, got {count}.")


@dataclass(frozen=True)
class Fingerprint:
    """Hashes of a model's parameters.

    Attributes:
        frozen: Hash of the frozen parameters: the base, under LoRA.
        trained: Hash of the trainable parameters.
    """

    frozen: str
    trained: str


def fingerprint(model: nn.Module) -> Fingerprint:
    """Returns the hashes of a model's frozen and trainable parameters."""
    return Fingerprint(hash_parameters(frozen(model)), hash_parameters(trained(model)))


def check_trained(
    before: Fingerprint,
    after: Fingerprint,
    weights: Iterable[tuple[str, torch.Tensor]],
    *,
    must_have_moved: bool,
) -> None:
    """Checks, after training, that the method trained what it should and nothing else.

    Args:
        before: Hashes before step 0.
        after: Hashes after the last step.
        weights: The trained parameters with their names, after the last step.
        must_have_moved: Whether the run had steps with a gradient and stayed finite.

    Raises:
        RuntimeError: If a frozen weight changed, no trainable weight changed, or some
            adapter's B is still zero.
    """
    if before.frozen != after.frozen:
        raise RuntimeError("weights of the frozen base changed during training.")
    if not must_have_moved:
        return
    if before.trained == after.trained:
        raise RuntimeError("no trainable weight changed during training.")
    idle = [n for n, p in weights if ".lora_B." in n and not torch.any(p).item()]
    if idle:
        raise RuntimeError(f"{len(idle)} adapters were never trained, the first is {idle[0]}.")


def all_finite(weights: Sequence[torch.Tensor]) -> bool:
    """Whether every number of the tensors is finite."""
    largest = torch.nn.utils.get_total_norm(weights, norm_type=float("inf"))
    return bool(torch.isfinite(largest).item())


def precisions(model: nn.Module, method: MethodConfig, optimizer: Any) -> dict[str, str]:
    """Returns the precision of the base, the adapter (LoRA only) and the optimizer state."""
    adapted = isinstance(method, LoraMethod)
    base = frozen(model) if adapted else trained(model)
    moments = (state["exp_avg"] for state in optimizer.state.values() if "exp_avg" in state)
    found = {"base": dtype_names(parameter for _, parameter in base)}
    if adapted:
        found["adapter"] = dtype_names(parameter for _, parameter in trained(model))
    found["optimizer"] = dtype_names(moments)
    return found


def dtype_names(tensors: Iterable[torch.Tensor]) -> str:
    """Returns the precisions of tensors, joined by ``+``; ``none`` for no tensor."""
    names = {str(tensor.dtype).removeprefix("torch.") for tensor in tensors}
    return "+".join(sorted(names)) or "none"
