"""What measurements are free to choose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Told = Callable[[str, bool], None]
"""A sign of life: what is being measured, and whether it is done with that."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What measurements are free to choose; all of it is written beside the results."""

    draws: int = 19
    """Random updates of each kind; 19 make ranges of 90 %."""
    seed: int = 0
    """Of the random updates: a run's own seed."""
    subspace_share: float = 0.1
    """Leading singular directions that count as principal, out of min(m, n); at least one."""
    mask_share: float = 0.1
    """Weights in the principal, the smallest and the largest-update mask, out of m n."""
    energy_tops: tuple[int, ...] = (1, 2, 4, 8, 16)
    """Numbers k of singular values whose share of the update's energy is given."""

    def __post_init__(self) -> None:
        if self.draws < 2:
            raise ValueError(f"draws >= 2 must hold, since a range needs two, got {self.draws}")


def range_coverage(draws: int) -> float:
    """Chance that one more random update lies within the range of ``draws`` others.

    By exchangeability it is the smallest or largest of all with chance 2 / (draws + 1), whatever
    the distribution; 19 draws make a 90 % interval.
    """
    return (draws - 1) / (draws + 1)
