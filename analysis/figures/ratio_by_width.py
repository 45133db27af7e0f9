"""Does the learning-rate ratio grow with the width of the model (C20)?"""

from __future__ import annotations

import math
from dataclasses import dataclass

from matplotlib.axes import Axes

from analysis.claims.comparison import comparisons
from analysis.claims.facts import hidden_size
from analysis.estimates.optimum import LrRatio, lr_ratio
from analysis.estimates.search import SearchSummary
from analysis.figures import marks, scales
from analysis.figures.cast import Cast, cast
from analysis.figures.numbers import no_optimum, not_judged
from analysis.figures.spec import FigureSpec
from analysis.figures.style import GREY
from analysis.reading.arms import Arm
from analysis.reading.sweep import Sweep

LACKS = "both methods on models of two or more widths"


@dataclass(frozen=True)
class WidthPoint:
    """The ratio of one LoRA arm to its FullFT on a model of one width."""

    arm: Arm
    width: float
    """Hidden size."""
    ratio: LrRatio


@dataclass(frozen=True)
class WidthFigure:
    """Ratios over widths."""

    cast: Cast
    points: tuple[WidthPoint, ...]
    centre: tuple[float, float] | None
    """Geometric means of width and ratio, through which both reference lines go."""
    not_judged: str
    """Why no claim may be judged on a pair, for the caption; empty as a rule."""

    @property
    def outside(self) -> list[str]:
        """What makes no panel of its own: the models."""
        return [k for m in self.cast.members for k, _ in m.factors if k.startswith("model.")]

    @property
    def settings(self) -> tuple[str, ...]:
        """Titles of the panels."""
        return self.cast.settings_of((row.arm.name for row in self.points), self.outside)


def width_figure(sweep: Sweep, search: SearchSummary) -> WidthFigure:
    """LR* ratio of every LoRA arm to its own FullFT, by hidden size."""
    found = cast(sweep)
    rows, drawn = [], []
    for pair in comparisons(sweep):
        width = hidden_size(sweep, pair.arm)
        if width is not None and pair.baseline and set(pair.names) <= set(search.curves):
            lora, full = (search.curves[name] for name in pair.names)
            ratio = lr_ratio(lora, full, search.fraction_of(*pair.names))
            if math.isfinite(ratio.centre.point):
                rows.append(WidthPoint(pair.arm, float(width), ratio))
                drawn.append(pair)
    logs = [(math.log(row.width), math.log(row.ratio.centre.point)) for row in rows]
    centre = None
    if logs:
        x, y = (math.exp(math.fsum(axis) / len(logs)) for axis in zip(*logs, strict=True))
        centre = (x, y)
    return WidthFigure(found, tuple(rows), centre, not_judged(drawn))


def draw_ratio_by_width(data: WidthFigure, ax: Axes) -> None:
    """Ratio against hidden size, with the lines of no growth and of growth with the root."""
    panels, outside = marks.panels(ax, data.settings), data.outside
    for setting, panel in zip(data.settings, panels, strict=True):
        rows = [
            row
            for row in data.points
            if data.cast.by_name[row.arm.name].setting(outside) == setting
        ]
        _draw_references(data, panel, [row.width for row in rows])
        for series in data.cast.series:
            _draw_series(data, panel, series, rows)
        scales.log_axis(panel.yaxis, scales.number_text)
        scales.place_axis(panel, sorted({row.width for row in rows}))
    marks.label(ax, "hidden size (log scale)", "LR*(LoRA) / LR*(FullFT), log scale")
    seeds = marks.seeds_text([row.ratio.centre for row in data.points], "search seed", "arm")
    marks.title(ax, "Learning-rate ratio against width", f"{data.cast.subject}; {seeds}")
    names = [data.cast.by_name[row.arm.name].series for row in data.points]
    handles = marks.series_handles(data.cast, names)
    if any(row.ratio.centre.interval for row in data.points):
        handles.append(marks.mark_handle("90 % interval", "|", 11))
    handles.append(marks.line_handle("constant", color=GREY, linestyle="--", linewidth=1.2))
    handles.append(marks.line_handle("root of width", color=GREY, linestyle=":", linewidth=1.4))
    marks.legend(ax, handles)


def _draw_references(data: WidthFigure, ax: Axes, widths: list[float]) -> None:
    assert data.centre is not None  # there is a point in every panel
    x, y = data.centre
    ends = [min(widths) / 1.15, max(widths) * 1.15]
    ax.plot(ends, [y, y], color=GREY, linestyle="--", linewidth=1.2, zorder=1)
    root = [y * math.sqrt(end / x) for end in ends]
    ax.plot(ends, root, color=GREY, linestyle=":", linewidth=1.4, zorder=1)


def _draw_series(data: WidthFigure, ax: Axes, series: str, rows: list[WidthPoint]) -> None:
    mine = [row for row in rows if data.cast.by_name[row.arm.name].series == series]
    mine.sort(key=lambda row: row.width)
    if mine:
        look = data.cast.look(series)
        ratios = [row.ratio.centre for row in mine]
        places = [row.width for row in mine]
        points = [ratio.point for ratio in ratios]
        ax.plot(places, points, color=look.colour, marker=look.marker, zorder=3)
        marks.draw_intervals(ax, places, ratios, look.colour)


def _caption(data: WidthFigure) -> str:
    return (
        "Dashed: the ratio does not depend on the width; dotted: it grows with its root, as theory "
        "has it. Both lines pass through the geometric mean of all points; they are no fits. Arms "
        "whose plateau is not inside the grid have no ratio."
        + data.cast.left_out((row.arm.name for row in data.points), data.outside)
        + data.not_judged
    )


def _missing(sweep: Sweep, search: SearchSummary, data: WidthFigure) -> str:
    if sweep.selects_only:
        return no_optimum(sweep, search)
    if len({row.width for row in data.points}) > 1:
        return ""
    return "Fewer than two widths have a ratio: complete their searches, or extend their grids."


def _lacks(sweep: Sweep) -> str:
    paired = {hidden_size(sweep, c.arm) for c in comparisons(sweep) if c.baseline is not None}
    return "" if len(paired - {None}) > 1 else LACKS


FIGURE = FigureSpec(
    name="ratio_by_width",
    title="Learning-rate ratio against width",
    order=65,
    data=width_figure,
    draw=draw_ratio_by_width,
    caption=_caption,
    missing=_missing,
    lacks=_lacks,
    height=lambda data: marks.height(data.cast, extra=3, panels=len(data.settings)),
)
