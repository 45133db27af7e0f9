"""The best learning rate against LoRA rank: does one rate serve all ranks?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from analysis.estimates.optimum import Optimum
from analysis.estimates.search import SearchSummary
from analysis.figures import marks, scales
from analysis.figures.cast import Cast, cast
from analysis.figures.numbers import is_bound, located, no_optimum
from analysis.figures.ranks import BAND
from analysis.figures.spec import FigureSpec
from analysis.figures.style import GREY
from analysis.reading.arms import Arm, arms
from analysis.reading.sweep import Sweep

MIN_RANK = 4
"""C5 speaks of ranks from here on."""
ROOM = 2.0
"""Factor below and above the rates: for arrows, and so that no axis shows a few per cent."""
ASIDE = 0.12
"""Octaves by which arms of equal rank step aside."""


@dataclass(frozen=True)
class RateByRankFigure:
    """LR* of every arm that has one."""

    cast: Cast
    rows: tuple[tuple[Arm, Optimum], ...]
    bands: tuple[tuple[str, float, float], ...]
    """Setting and ends of the band a factor of two wide about the geometric mean of LR*, over the
    ranks from four on whose LR* is not just a bound; where there are two of them."""

    @property
    def settings(self) -> tuple[str, ...]:
        """Titles of the panels."""
        return self.cast.settings_of(arm.name for arm, _ in self.rows)


def rate_by_rank_figure(sweep: Sweep, search: SearchSummary) -> RateByRankFigure:
    """LR* against rank, with the band of C5."""
    found = cast(sweep)
    rows = tuple(
        (member.arm, optimum)
        for member in found.members
        if (optimum := search.optima.get(member.arm.name)) is not None
        and math.isfinite(optimum.lr.point)
    )
    bands = []
    for setting in found.settings:
        rates = [
            optimum.lr.point
            for arm, optimum in rows
            if found.by_name[arm.name].setting() == setting
            and (arm.rank or 0) >= MIN_RANK
            and not is_bound(optimum.flags)
        ]
        if len(rates) > 1:
            middle = math.exp(math.fsum(map(math.log, rates)) / len(rates))
            bands.append((setting, middle / math.sqrt(2), middle * math.sqrt(2)))
    return RateByRankFigure(found, rows, tuple(bands))


def draw_rate_by_rank(data: RateByRankFigure, ax: Axes) -> None:
    """LR* with intervals against rank, arrows on bounds, FullFT's as a black band."""
    panels = marks.panels(ax, data.settings)
    for setting, panel in zip(data.settings, panels, strict=True):
        rows = [r for r in data.rows if data.cast.by_name[r[0].name].setting() == setting]
        band = [(low, high) for name, low, high in data.bands if name == setting]
        _draw_panel(data, panel, rows, band)
    marks.label(ax, "LoRA rank (log scale)", "LR* (learning rate)")
    rates = [found.lr for _, found in data.rows]
    seeds = marks.seeds_text(rates, "search seed", "arm", unstated=marks.ONLY_BOUNDS)
    marks.title(ax, "Best learning rate against rank", f"{data.cast.subject}; {seeds}")
    _legend(data, ax)


def _draw_panel(
    data: RateByRankFigure,
    ax: Axes,
    rows: Sequence[tuple[Arm, Optimum]],
    bands: Sequence[tuple[float, float]],
) -> None:
    full = [row for row in rows if row[0].is_full]
    lora = [row for row in rows if not row[0].is_full]
    ranks = sorted({float(arm.rank or 1) for arm, _ in lora})
    left = min(ranks, default=1.0) / 2
    for low, high in bands:
        ax.axhspan(low, high, facecolor="none", edgecolor="#b5b5b5", hatch="///", linewidth=0)
    for arm, found in full:
        marks.draw_full_band(ax, found.lr)
        _draw_rate(data, ax, arm, found, left)
    for arm, found in lora:
        mates = [other.name for other, _ in lora if other.rank == arm.rank]
        octaves = 2 * ASIDE * (mates.index(arm.name) - (len(mates) - 1) / 2)
        _draw_rate(data, ax, arm, found, (arm.rank or 1) * 2**octaves)
    scales.log_axis(ax.yaxis)
    rates = [rate for _, found in rows for rate in (found.lr.interval or (found.lr.point,))]
    ax.set_ylim(min(rates) / ROOM, max(rates) * ROOM)
    scales.rank_axis(ax, ranks, left if full else None)


def _draw_rate(data: RateByRankFigure, ax: Axes, arm: Arm, found: Optimum, x: float) -> None:
    look = data.cast.looks[arm.name]
    marks.draw_intervals(ax, [x], [found.lr], look.colour)
    marks.draw_bounds(ax, x, found.lr.point, found.flags, look)
    ax.plot([x], [found.lr.point], color=look.colour, marker=look.marker, markersize=6, zorder=3)


def _legend(data: RateByRankFigure, ax: Axes) -> None:
    names = [data.cast.by_name[arm.name].series for arm, _ in data.rows]
    handles: list[Artist] = [*marks.series_handles(data.cast, names, line=False)]
    if any(found.lr.interval for _, found in data.rows):
        handles.append(marks.mark_handle("90 % interval", "|", 11))
    if any(found.lr.interval for arm, found in data.rows if arm.is_full):
        handles.append(marks.line_handle("FullFT, 90 %", color=BAND, linewidth=7))
    if any(is_bound(found.flags) for _, found in data.rows):
        handles.append(marks.mark_handle("only a bound", r"$\uparrow$", 9))
    if data.bands:
        handles.append(marks.hatch_handle(f"factor 2 (rank {MIN_RANK} up)", GREY))
    marks.legend(ax, handles)


def _caption(data: RateByRankFigure) -> str:
    return (
        f"{located([found for _, found in data.rows])} An arrow: the plateau or the best learning "
        "rate reaches that end of the grid, so "
        f"LR* is only a bound. Hatched: a factor of 2 about the geometric mean of the ranks from "
        f"{MIN_RANK} on, bounds left out; claim C5 says that they all lie within such a band. Arms "
        "without a mark have no LR*." + data.cast.left_out(arm.name for arm, _ in data.rows)
    )


def _lacks(sweep: Sweep) -> str:
    ranks = {arm.rank for arm in arms(sweep) if arm.rank}
    return "" if len(ranks) > 1 else "LoRA arms of two or more ranks"


FIGURE = FigureSpec(
    name="rate_by_rank",
    title="Best learning rate against rank",
    order=45,
    data=rate_by_rank_figure,
    draw=draw_rate_by_rank,
    caption=_caption,
    missing=lambda sweep, search, data: no_optimum(sweep, search),
    lacks=_lacks,
    height=lambda data: marks.height(data.cast, extra=4, panels=len(data.settings)),
)
