"""How many weights training left unchanged, by four counts.

A low-precision copy hides small changes: bf16 keeps 8 significant bits, so whatever moves a weight
by less than about half of 2^-8 of its size leaves the copy as it was. The first three counts are
therefore those of the copy, the fourth is that of the weights as they were trained; only where all
agree is sparsity a property of the update.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

ABSOLUTE_TOLERANCE = 1e-5
"""Largest change that counts as none in Mukherjee et al. (2505.11711, section 3)."""
RELATIVE_TOLERANCE = 1e-3
"""The same relative to the larger of both weights in Zhu et al. (2511.08567): below bf16's 2^-8, so
that on bf16 numbers it counts what is bit-identical."""


@dataclass(frozen=True)
class Unchanged:
    """Numbers of unchanged weights out of ``parameters``."""

    parameters: int
    bf16: int
    """Bit-identical after rounding to bf16."""
    absolute: int
    """Changed by at most :data:`ABSOLUTE_TOLERANCE`, after rounding to bf16."""
    relative: int
    """Changed by at most :data:`RELATIVE_TOLERANCE` of the larger one, after rounding to bf16."""
    fp32: int | None
    """Bit-identical in the fp32 weights that were trained; None where training had none."""

    def shares(self) -> dict[str, float | None]:
        """Unchanged shares of all parameters, by count."""
        counts = {
            "unchanged_bf16": self.bf16,
            "unchanged_absolute": self.absolute,
            "unchanged_relative": self.relative,
            "unchanged_fp32": self.fp32,
        }
        return {k: None if n is None else n / self.parameters for k, n in counts.items()}


def count_unchanged(before: Tensor, after: Tensor, *, fp32_masters: bool) -> Unchanged:
    """Count the weights that training left unchanged.

    Args:
        before: Weights, any shape, fp32 or fp64.
        after: The same after training.
        fp32_masters: Whether the trained weights were fp32; a count of "fp32" bits of weights that
            were trained in bf16 would repeat the first count under another name.
    """
    old, new = before.float(), after.float()
    low_old, low_new = old.bfloat16(), new.bfloat16()
    change = (low_new.double() - low_old.double()).abs()
    larger = torch.maximum(low_new.double().abs(), low_old.double().abs())
    return Unchanged(
        parameters=before.numel(),
        bf16=before.numel() - int(visible_changes(before, after).sum()),
        absolute=int((change <= ABSOLUTE_TOLERANCE).sum()),
        relative=int((change <= RELATIVE_TOLERANCE * larger).sum()),
        fp32=int((old.view(torch.int32) == new.view(torch.int32)).sum()) if fp32_masters else None,
    )


def visible_changes(before: Tensor, after: Tensor) -> Tensor:
    """Mask, of the weights' shape, of what differs in some bit after rounding to bf16."""
    # Through fp32, as a checkpoint in bf16 is made from fp32 weights.
    old, new = before.float().bfloat16(), after.float().bfloat16()
    return old.view(torch.int16) != new.view(torch.int16)


def pooled(counts: Iterable[Unchanged]) -> Unchanged:
    """The counts of several tensors together; fp32's only where every tensor has it."""
    parts = list(counts)
    exact = [part.fp32 for part in parts if part.fp32 is not None]
    return Unchanged(
        parameters=sum(part.parameters for part in parts),
        bf16=sum(part.bf16 for part in parts),
        absolute=sum(part.absolute for part in parts),
        relative=sum(part.relative for part in parts),
        fp32=sum(exact) if len(exact) == len(parts) else None,
    )
