"""Whether two runs changed the same weights, more than independent changes of equal density would.

Zhu et al. (2511.08567, section 4) and Mukherjee et al. (2505.11711) compare masks of weights that
changed visibly in bf16; since rounding alone chooses small weights, which runs from one base share,
the masks of the largest entries of the updates are compared beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from study.probes.settings import Settings
from study.probes.weights.masks import top_mask
from study.probes.weights.matrix import Pair
from study.probes.weights.sparsity import visible_changes

KINDS = ("visible", "largest")
Bits = NDArray[np.uint8]


@dataclass(frozen=True)
class Mask:
    """Which weights of a tensor are meant."""

    bits: Bits
    """Packed, eight weights a byte: the masks of a whole experiment are in memory at once."""
    size: int
    """Weights of the tensor."""
    count: int
    """Weights in the mask."""

    @classmethod
    def of(cls, mask: Tensor) -> Mask:
        """The mask that a tensor of truth values is."""
        return cls(np.packbits(mask.flatten().numpy()), mask.numel(), int(mask.sum()))


@dataclass(frozen=True)
class Shared:
    """How much two masks have in common, of one tensor or several."""

    both: float
    """Weights in both."""
    either: float
    """Weights in at least one."""
    both_by_chance: float
    """Expected of independent masks of their densities."""
    either_by_chance: float

    @property
    def jaccard(self) -> float | None:
        """Share of the weights in either mask that are in both; None if there are none."""
        return self.both / self.either if self.either else None

    @property
    def baseline(self) -> float | None:
        """The same of independent masks: p q / (p + q - p q) for densities p and q."""
        return self.both_by_chance / self.either_by_chance if self.either_by_chance else None

    def as_json(self) -> dict[str, Any]:
        """Both numbers by name."""
        return {"jaccard": self.jaccard, "baseline": self.baseline}


def shared(first: Mask, second: Mask) -> Shared:
    """Compare two masks of one tensor.

    Raises:
        ValueError: If they are of tensors of different sizes.
    """
    if first.size != second.size:
        raise ValueError(f"masks of one size must be compared, got {first.size} and {second.size}")
    both = int(np.bitwise_count(first.bits & second.bits).sum())
    chance = first.count * second.count / first.size
    total = first.count + second.count
    return Shared(both, total - both, chance, total - chance)


def pooled_shared(parts: Iterable[Shared]) -> Shared:
    """Several tensors together: each by chance at its own densities."""
    rows = list(parts)
    return Shared(
        sum(row.both for row in rows),
        sum(row.either for row in rows),
        sum(row.both_by_chance for row in rows),
        sum(row.either_by_chance for row in rows),
    )


def masks(pair: Pair, settings: Settings) -> Mapping[str, Mask]:
    """What changed visibly, and the largest entries of the update, of one matrix.

    Without an update nothing is largest, and that mask is empty.
    """
    visible = visible_changes(pair.before, pair.after)
    largest = top_mask(pair.update.abs(), settings.mask_share) & (pair.update != 0)
    return {"visible": Mask.of(visible), "largest": Mask.of(largest)}
