"""The best learning rate of every arm, and ten times that of full fine-tuning."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from analysis.claims.c03_ten_times import HIGH, LOW
from analysis.estimates.optimum import Optimum
from analysis.estimates.search import SearchSummary
from analysis.figures import marks, scales
from analysis.figures.cast import Cast, cast
from analysis.figures.numbers import located, no_optimum
from analysis.figures.rates import draw_plateau, plateau_handles
from analysis.figures.spec import FigureSpec
from analysis.figures.style import GREY
from analysis.reading.arms import Arm
from analysis.reading.sweep import Sweep

EDGES = ("edge_low", "edge_high")
ROW, LINE = 0.5, 0.09
"""Height in inches: of an arm's row, and of an arm among those of one setting."""


@dataclass(frozen=True)
class OptimumFigure:
    """LR* of every arm that has one, and ten times FullFT's."""

    cast: Cast
    rows: tuple[tuple[Arm, Optimum | None], ...]
    """Setting by setting, FullFT first."""
    ten_times: tuple[tuple[str, float], ...]
    """Ten times LR* of FullFT, by setting; of settings with one FullFT arm that has an interval."""


def optimum_figure(sweep: Sweep, search: SearchSummary) -> OptimumFigure:
    """LR* by arm and ten times FullFT's."""
    found = cast(sweep)
    rows: list[tuple[Arm, Optimum | None]] = []
    ten_times = []
    for setting in found.settings:
        members = [m.arm for m in found.members if m.setting() == setting]
        mine = [(arm, search.optima.get(arm.name)) for arm in members]
        full = [optimum for arm, optimum in mine if arm.is_full]
        if len(full) == 1 and full[0] is not None and full[0].lr.interval is not None:
            ten_times.append((setting, 10 * full[0].lr.point))
        rows += mine
    return OptimumFigure(found, tuple(rows), tuple(ten_times))


def draw_optima(data: OptimumFigure, ax: Axes) -> None:
    """LR* by arm, with ten times FullFT's LR* and the window from 5 to 20 times."""
    places = _places(data)
    size = 7 if len(data.cast.settings) == 1 else 5
    for (arm, found), y in zip(data.rows, places, strict=True):
        if found is not None and math.isfinite(found.lr.point):
            look = data.cast.looks[arm.name]
            draw_plateau(ax, found, y, look.colour)
            edge = "white" if size > 5 else look.colour
            style: dict[str, Any] = {"color": look.colour, "mec": edge, "markersize": size}
            ax.plot([found.lr.point], [y], marker=look.marker, zorder=3, **style)
    for setting, ten in data.ten_times:
        y = data.cast.settings.index(setting)
        ends = (y - 0.5, y + 0.5) if len(data.cast.settings) > 1 else (-0.6, len(data.rows) - 0.4)
        window = (LOW / 10 * ten, HIGH / 10 * ten)
        ax.fill_betweenx(ends, *window, color=GREY, alpha=0.15, linewidth=0)
        ax.plot([ten, ten], ends, color=GREY, linestyle=":", linewidth=1.4, zorder=1)
    scales.log_axis(ax.xaxis)
    ax.set_xlabel("LR* (learning rate)")
    _label_rows(data, ax)
    estimates = [found.lr for _, found in data.rows if found]
    seeds = marks.seeds_text(estimates, "search seed", "arm", unstated=marks.ONLY_BOUNDS)
    subtitle = f"{data.cast.subject}; {seeds}"
    longest = max(len(t) for text in ax.get_yticklabels() for t in text.get_text().split("\n"))
    width = marks.SUBTITLE_WIDTH - longest  # the axes begin to the right of their labels
    marks.title(ax, "Best learning rate of each arm", subtitle, width)
    marks.legend(ax, _handles(data))


def _places(data: OptimumFigure) -> list[float]:
    """Of each row: one below the other, or side by side within their setting."""
    if len(data.cast.settings) == 1:
        return [float(y) for y in range(len(data.rows))]
    settings = [data.cast.by_name[arm.name].setting() for arm, _ in data.rows]
    places = []
    for i, setting in enumerate(settings):
        n, before = settings.count(setting), settings[:i].count(setting)
        places.append(data.cast.settings.index(setting) + (before - (n - 1) / 2) / (n + 1))
    return places


def _label_rows(data: OptimumFigure, ax: Axes) -> None:
    settings = data.cast.settings
    marked = data.cast.settings_of(arm.name for arm, found in data.rows if not _unmarked(found))
    labels = [
        marks.shortened(setting) + ("" if setting in marked else "\n(no LR*)")
        for setting in settings
    ]
    if len(settings) == 1:
        labels = [_row_label(arm, found) for arm, found in data.rows]
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    if len(settings) > 1:
        ax.tick_params(axis="y", labelsize=8)
        ax.grid(False, axis="y")
        for y in range(1, len(settings)):
            ax.axhline(y - 0.5, color="#d5d5d5", linewidth=0.8)


def _row_label(arm: Arm, found: Optimum | None) -> str:
    why = _unmarked(found) or ", ".join(f for f in _flags(found) if f in EDGES)
    return marks.plain(f"{arm.name}\n({why})" if why else arm.name)


def _flags(found: Optimum | None) -> tuple[str, ...]:
    return () if found is None else found.flags


def _unmarked(found: Optimum | None) -> str:
    """Why an arm has no mark; empty if it has one."""
    if found is None:
        return "search incomplete"
    return "" if math.isfinite(found.lr.point) else "flat"


def _handles(data: OptimumFigure) -> list[Line2D]:
    handles = [marks.mark_handle("LR*", "o", 6)]
    if len(data.cast.settings) > 1:
        handles = marks.series_handles(data.cast, data.cast.series, line=False)
    handles += plateau_handles([found for _, found in data.rows])
    if data.ten_times:
        handles.append(marks.line_handle("10 x FullFT", color=GREY, linestyle=":", linewidth=1.4))
        handles.append(marks.line_handle("5 to 20 x FullFT", color="#dcdcdc", linewidth=7))
    return handles


def _caption(data: OptimumFigure) -> str:
    text = (
        f"{located([found for _, found in data.rows])} An arrow at an end: the plateau or the best "
        "learning rate reaches the end of the grid, LR* is only a bound."
    )
    unmarked = [f"{arm.name} ({_unmarked(o)})" for arm, o in data.rows if _unmarked(o)]
    if unmarked and len(data.cast.settings) > 1:
        text += f" Without LR*: {', '.join(unmarked)}."
    return text


def _height(data: OptimumFigure) -> float:
    n = len(data.cast.settings)
    if n == 1:
        return 1.9 + ROW * len(data.rows)
    most = max(Counter(m.setting() for m in data.cast.members).values())
    return max(1.3 + n * (0.12 + LINE * most), marks.height(data.cast, 5, 1))


FIGURE = FigureSpec(
    name="best_learning_rates",
    title="Best learning rates",
    order=40,
    data=optimum_figure,
    draw=draw_optima,
    caption=_caption,
    missing=lambda sweep, search, data: no_optimum(sweep, search),
    height=_height,
)
