"""Whether an update fell on a matrix's principal weights, or on its smallest ones."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Overlap:
    """How much of a region an update covers, and how much it covers of everything.

    Zhu et al. (2511.08567, section 4): an update that is independent of the region covers it as
    densely as everything else.
    """

    covered: float
    """Share of the region's weights that the update changed."""
    density: float
    """Share of all weights that it changed: the expectation of ``covered`` under independence."""

    @property
    def ratio(self) -> float | None:
        """``covered`` over ``density``; below 1 the region was avoided. None for no update."""
        return self.covered / self.density if self.density else None


def overlap(updated: Tensor, region: Tensor) -> Overlap:
    """Compare two masks of equal shape.

    Args:
        updated: Which weights changed.
        region: Which weights are asked about; at least one.
    """
    covered = float((updated & region).sum()) / float(region.sum())
    return Overlap(covered, float(updated.double().mean()))


def top_mask(values: Tensor, share: float) -> Tensor:
    """Mask of the largest values: exactly ``share`` of them, rounded, at least one.

    Args:
        values: Any shape.
        share: Above 0, at most 1.

    Raises:
        ValueError: If the share is outside its range.
    """
    if not 0 < share <= 1:
        raise ValueError(f"0 < share <= 1 must hold, got {share}")
    count = max(1, round(share * values.numel()))
    mask = torch.zeros(values.numel(), dtype=torch.bool)
    mask[values.flatten().topk(count).indices] = True
    return mask.view(values.shape)


def principal_mask(left: Tensor, values: Tensor, right: Tensor, share: float) -> Tensor:
    """Mask of the weights that carry a matrix's leading directions.

    The largest entries, by size, of its best approximation of rank k (2511.08567, section 4).

    Args:
        left: Leading left singular vectors [m, k].
        values: Their singular values [k].
        right: Leading right singular vectors [k, n].
        share: Share of the m n entries in the mask.
    """
    return top_mask(((left * values) @ right).abs(), share)


def low_mask(before: Tensor, share: float) -> Tensor:
    """Mask of the weights that are smallest by size before training: ``share`` of them."""
    return top_mask(-before.abs(), share)
