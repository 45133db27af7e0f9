"""Random updates of a given update's Frobenius norm: what a measurement gives by chance.

``gaussian``: independent normal entries, no direction and no rank preferred. ``turned``: the
update's own singular values on random singular vectors, so that an update of low rank is held
against updates of equally low rank, and only its directions are judged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Size, Tensor

NULLS = ("gaussian", "turned")


def gaussian_update(norm: float, shape: Size, generator: Generator) -> Tensor:
    """Return independent normal entries, scaled to a Frobenius norm."""
    noise = torch.randn(shape, generator=generator, dtype=torch.float64)
    return noise * (norm / float(torch.linalg.matrix_norm(noise)))


def turned_update(values: Tensor, shape: Size, generator: Generator) -> Tensor:
    """Return singular values [p] on uniformly random singular vectors, p the smaller side."""
    left, right = (_random_orthonormal(n, len(values), generator) for n in shape)
    return (left * values) @ right.T


def random_updates(kind: str, update: Tensor, draws: int, seed: int, name: str) -> Iterator[Tensor]:
    """Yield random updates of one kind.

    Args:
        kind: One of :data:`NULLS`.
        update: The update whose norm, or singular values, they have [m, n].
        draws: How many.
        seed: With ``name`` and ``kind`` it decides the random numbers; runs that are measured with
            equal seeds are held against the same directions, which sharpens comparisons of them.
        name: The matrix's.
    """
    digest = hashlib.sha256(f"{seed} {kind} {name}".encode()).digest()
    generator = Generator().manual_seed(int.from_bytes(digest[:7], "big"))
    norm = float(torch.linalg.matrix_norm(update.double()))
    values = torch.linalg.svdvals(update.double())
    for _ in range(draws):
        if kind == "turned":
            yield turned_update(values, update.shape, generator)
        else:
            yield gaussian_update(norm, update.shape, generator)


@dataclass(frozen=True)
class Range:
    """A statistic over draws of the null."""

    mean: float
    low: float
    """Smallest of the draws."""
    high: float
    """Largest of the draws."""


def null_range(values: Sequence[float | None]) -> Range | None:
    """Sum up a statistic's draws; None if some draw has no value."""
    known = [value for value in values if value is not None]
    if len(known) < len(values) or not known:
        return None
    return Range(sum(known) / len(known), min(known), max(known))


def _random_orthonormal(rows: int, columns: int, generator: Generator) -> Tensor:
    """Uniformly random orthonormal columns [rows, columns] (Mezzadri 2007: the signs matter)."""
    noise = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
    basis, triangle = torch.linalg.qr(noise)
    uniform: Tensor = basis * triangle.diagonal().sign()
    return uniform
