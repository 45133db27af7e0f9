"""What adapters add to the base's matrices, alone and together."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from safetensors.torch import load_file
from torch import Tensor

from study.adapters.stored import WEIGHTS, Adapter

Matrices = dict[str, tuple[Tensor, Tensor]]
"""A [r, in] and B [out, r] by the full name of the layer that they adapt."""
PREFIX = "base_model.model."


def matrices(adapter: Adapter) -> Matrices:
    """The matrices of an adapter as they are stored."""
    stored = load_file(adapter.path / WEIGHTS)
    targets = sorted({name.rsplit(".lora_", 1)[0] for name in stored})
    return {
        target.removeprefix(PREFIX): (
            stored[f"{target}.lora_A.weight"],
            stored[f"{target}.lora_B.weight"],
        )
        for target in targets
    }


def concatenated(parts: Sequence[tuple[float, float, Matrices]]) -> Matrices:
    """One adapter, of the ranks' sum and scaling 1, that adds up to the weighted sum of others.

    sum of w s B A = [w1 s1 B1, w2 s2 B2, ...] [A1; A2; ...], exactly.

    Args:
        parts: Weight w, scaling s and matrices of each adapter; targets may differ.
    """
    targets = dict.fromkeys(target for _, _, own in parts for target in own)
    return {
        target: (
            torch.cat([own[target][0] for _, _, own in parts if target in own], 0),
            torch.cat([w * s * own[target][1] for w, s, own in parts if target in own], 1),
        )
        for target in targets
    }


def summed(parts: Sequence[tuple[float, float, Matrices]]) -> dict[str, Tensor]:
    """The weighted sum of the updates w s B A [out, in], by layer, in float64."""
    total: dict[str, Tensor] = {}
    for weight, scaling, own in parts:
        for target, (a, b) in own.items():
            update = weight * scaling * (b.double() @ a.double())
            total[target] = total[target] + update if target in total else update
    return total


def distance(found: dict[str, Tensor], expected: dict[str, Tensor]) -> float:
    """Frobenius norm of the difference of two updates over that of the expected one."""
    names = found.keys() | expected.keys()
    zero = torch.zeros(())
    gap = sum(
        float((found.get(name, zero) - expected.get(name, zero)).square().sum()) for name in names
    )
    norm = sum(float(update.square().sum()) for update in expected.values())
    return math.sqrt(gap / norm if norm else gap)
