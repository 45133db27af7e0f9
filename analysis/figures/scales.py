"""Axes of figures: log scales with readable labels, ranks, sizes, and ranges of scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import (
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
)

from analysis.reading.arms import rate_text

FINER = (
    (1.0, 2.0, 3.0, 5.0),
    (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0),
    (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0),
    tuple(tenth / 10 for tenth in range(10, 100)),
)
"""Ticks of a decade on axes of a decade or less, the first that gives three."""
MOST = 5
"""Ticks of such an axis."""


class Ones(LogLocator):
    """Ticks at 1 and 3 of every decade, at 1 alone where both would not fit.

    On an axis of a decade or less, between three and five round numbers.
    """

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """Ticks between two positive numbers."""
        decades = math.log10(vmax / vmin) if 0 < vmin < vmax else 2.0
        if decades <= 1:
            return _short_ticks(vmin, vmax)
        room = self.axis.get_tick_space() if self.axis is not None else 9
        self.set_params(subs=(1.0, 3.0) if 2 * decades <= room else (1.0,))
        return super().tick_values(vmin, vmax)


def _short_ticks(low: float, high: float) -> Any:
    """Round numbers between two positive ones that are at most a decade apart."""
    powers = [10.0**k for k in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    for subs in FINER:
        ticks = [s * power for power in powers for s in subs if low <= s * power <= high]
        if len(ticks) > 2:
            return np.array(ticks[:: math.ceil(len(ticks) / MOST)])
    return MaxNLocator(MOST - 2).tick_values(low, high)


def log_axis(axis: Axis, text: Callable[[float], str] = rate_text) -> None:
    """A log axis labelled at 1 and 3 of every decade; in panels without ticks between them."""
    bare = isinstance(axis.get_minor_locator(), NullLocator)
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})  # type: ignore[attr-defined]
    axis.set_major_locator(Ones())
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    axis.set_minor_formatter(NullFormatter())
    if bare:
        axis.set_minor_locator(NullLocator())


def number_text(value: float) -> str:
    """``0.3``, ``300``, ``10k``, ``3M``, ``1e12``: a number as an axis shows it."""
    if value >= 1e9:
        mantissa, power = f"{value:.3e}".split("e+")
        return f"{float(mantissa):g}e{power}"  # four digits: ticks may be close together
    if value >= 1e6:
        return f"{value / 1e6:.4g}M"
    return f"{value / 1e3:.4g}k" if value >= 1e4 else f"{value:g}"


def rank_axis(ax: Axes, ranks: Sequence[float], full_at: float | None = None) -> None:
    """A log axis of ranks, each rank a label, with a place for FullFT at its left."""
    ranks = sorted(set(ranks))
    ticks = ranks if full_at is None else [full_at, *ranks]
    labels = [f"{rank:g}" for rank in ranks]
    ax.set_xscale("log", base=2)
    ax.set_xticks(ticks, labels if full_at is None else ["FullFT", *labels])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlim(min(ticks, default=1) / 1.6, max(ticks, default=1) * 1.6)


def place_axis(ax: Axes, places: Sequence[float]) -> None:
    """A log axis of a few sizes, each a label."""
    ticks = sorted(set(places))
    ax.set_xscale("log", base=2)
    ax.set_xticks(ticks, [number_text(tick) for tick in ticks])
    ax.xaxis.set_minor_locator(NullLocator())
    if ticks:
        ax.set_xlim(ticks[0] / 1.3, ticks[-1] * 1.3)


def widen(ax: Axes, span: float) -> None:
    """Make a score axis at least so long, about its middle."""
    low, high = ax.get_ylim()
    if high - low < span:
        ax.set_ylim((low + high - span) / 2, (low + high + span) / 2)


def same_limits(axes: Sequence[Axes]) -> None:
    """One range of scores for all."""
    ends = [ax.get_ylim() for ax in axes]
    for ax in axes:
        ax.set_ylim(min(low for low, _ in ends), max(high for _, high in ends))


def score_limits(values: Sequence[float], *, lower_is_better: bool) -> tuple[float, float]:
    """Ends of an axis of scores that begins at zero, or, where lower is better, at the best.

    Where lower is better one diverged run would flatten everything else: the axis ends six times
    as far from the best score as the median is, and what lies above is marked at its upper end.
    """
    seen = np.array([value for value in values if math.isfinite(value)])
    if not len(seen):
        return 0.0, 1.0
    low, high = float(seen.min()), float(seen.max())
    if lower_is_better:
        middle = float(np.median(seen))
        high = min(high, low + 6 * (middle - low)) if middle > low else high
    else:
        low = min(low, 0.0)
    pad = 0.04 * (high - low) or 0.05
    return (low - pad if lower_is_better or low < 0 else low), high + pad
