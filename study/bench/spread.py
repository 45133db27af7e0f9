"""Medians with their spread."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """What the rounds of a measurement showed."""

    median: float
    low: float
    """The smallest."""
    high: float
    """The largest."""


def spread(values: Iterable[float]) -> Spread:
    """The median, the smallest and the largest of at least one value."""
    found = list(values)
    return Spread(statistics.median(found), min(found), max(found))
