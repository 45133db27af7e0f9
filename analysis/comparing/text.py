"""Numbers in words, for tables and sentences: never without an interval or a reason."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from analysis.comparing.numbers import Quantity

Show = Callable[[float], str]
MAX_NAMES = 6
"""Names in a list; the others are counted."""


def score(value: float) -> str:
    """``0.495``."""
    return f"{value:.3f}"


def signed(value: float) -> str:
    """``+0.012``."""
    return f"{value:+.3f}"


def ratio(value: float) -> str:
    """``3.41``, from ten on ``12.5``."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def quantity(value: Quantity, show: Show, *, n: bool = True) -> str:
    """``0.495 [0.488, 0.502] n=3``; the point with ``no interval``; a dash where there is none.

    Args:
        value: The number.
        show: How its point and its bounds are written.
        n: Whether to say how many seeds are behind it; where a heading says it, no.
    """
    estimate = value.estimate
    if estimate is None or not math.isfinite(estimate.point):
        return "-"
    seeds = f" n={estimate.n}" if n else ""
    point = f"{value.bound} {show(estimate.point)}".strip()
    if estimate.interval is None:
        return f"{point} (no interval){seeds}"
    low, high = estimate.interval
    return f"{point} [{show(low)}, {show(high)}]{seeds}"


def common_n(values: Iterable[Quantity]) -> int | None:
    """The number of seeds behind all of these numbers, if it is one."""
    counts = {
        value.estimate.n
        for value in values
        if value.estimate is not None and math.isfinite(value.estimate.point)
    }
    return counts.pop() if len(counts) == 1 else None


def few(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    rest = len(names) - MAX_NAMES
    shown = ", ".join(names[:MAX_NAMES])
    return shown if rest <= 0 else f"{shown} and {rest} more"
