"""Ranks of an update, and how far training moved a matrix's singular values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class UpdateSpectrum:
    """How the singular values s_1 >= s_2 >= ... of an update are spread; None for no update."""

    numerical_rank: int
    """Singular values above s_1 max(m, n) 2^-23: that of fp32 (2505.11711), 0 for no update."""
    stable_rank: float | None
    """Sum of s_i^2 over s_1^2: squared Frobenius over squared spectral norm."""
    effective_rank: float | None
    """Exponential of the entropy of s_i / sum of s (Roy and Vetterli 2007, definition 1)."""
    energy: dict[int, float | None]
    """Share of the sum of s_i^2 that the k largest hold, by k."""


def update_spectrum(update: Tensor, tops: Sequence[int]) -> UpdateSpectrum:
    """Return the ranks of an update.

    Numerical rank says little: rounding alone gives every matrix the full one. Stable and effective
    rank and the energy weigh directions by their size.

    Args:
        update: Weights after training less those before [m, n], fp64 or fp32.
        tops: The k of ``energy``; one beyond the matrix holds everything.
    """
    values = torch.linalg.svdvals(update.double())
    largest = float(values[0])
    if largest == 0:
        return UpdateSpectrum(0, None, None, dict.fromkeys(tops))
    tolerance = largest * max(update.shape) * torch.finfo(torch.float32).eps
    squares = (values / largest).square()  # tiny updates must not underflow
    total = float(squares.sum())
    return UpdateSpectrum(
        numerical_rank=int((values > tolerance).sum()),
        stable_rank=total,
        effective_rank=float(torch.special.entr(values / values.sum()).sum().exp()),
        energy={k: float(squares[:k].sum()) / total for k in tops},
    )


def spectral_shift(before: Tensor, after: Tensor) -> float | None:
    """Euclidean distance of two sets of singular values over the norm of the first one.

    "NSS" of Zhu et al. (2511.08567, section 4); None if every singular value before is 0.

    Args:
        before: Singular values before training, descending [p].
        after: The same after training [p].
    """
    scale = float(torch.linalg.vector_norm(before))
    return float(torch.linalg.vector_norm(after - before)) / scale if scale else None
