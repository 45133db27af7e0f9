"""What figures are made of: panels, titles, axes, runs, intervals, bands, legends.

Nothing here computes a number that is shown. Marks of many runs are one artist per arm; from
:data:`MANY_DOTS` dots on they are stored as an image inside PDF and SVG (never left out), which
keeps a figure of ten thousand runs as small and as quick as one of fifty.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator

from analysis.estimates.stats import MIN_SEEDS, Estimate
from analysis.figures.cast import Cast
from analysis.figures.numbers import Point
from analysis.figures.style import BLACK, GREY, HEIGHT, Look
from analysis.reading.arms import count_text

NO_SPREAD = "scores do not differ"
ONLY_BOUNDS = "no LR* inside its grid"
COLUMNS = 3
PANEL_HEIGHT = 1.75
PANEL_TITLE = 90
"""Letters above all panels of a row together."""
MANY_DOTS = 500
SUBTITLE_WIDTH = 92
"""Letters in a line below the title: as wide as the figure."""
ENTRY = 0.185
"""Height of a legend's line in inches."""


def height(cast: Cast, extra: int = 7, panels: int | None = None) -> float:
    """Height in inches that panels, or a legend of every series, need.

    Args:
        cast: The arms.
        extra: Legend entries besides the series.
        panels: Number of panels, if not one for each setting.
    """
    n = len(cast.settings) if panels is None else panels
    entries = len(cast.series) + extra
    if n == 1:
        return max(HEIGHT, 0.9 + ENTRY * entries)
    return 1.2 + PANEL_HEIGHT * math.ceil(n / columns(n)) + ENTRY * math.ceil(entries / COLUMNS)


def columns(n: int) -> int:
    """Columns of ``n`` panels: two of two or four, else three at most."""
    return 2 if n in (2, 4) else min(n, COLUMNS)


def panels(ax: Axes, names: Sequence[str], across: int | None = None) -> list[Axes]:
    """One axes for each name; a single one without a name is ``ax`` itself.

    Args:
        ax: Becomes the frame of the panels: its title, labels and legend are theirs together.
        names: Titles of the panels.
        across: Columns, if not as :func:`columns` has it.
    """
    if tuple(names) == ("",):
        return [ax]
    ax.set_axis_off()
    across = across or columns(len(names))
    spec = ax.get_subplotspec()
    assert spec is not None  # every axes here comes from Figure.subplots
    grid = spec.subgridspec(math.ceil(len(names) / across), across)
    figure = _canvas(ax)
    found = []
    for i, name in enumerate(names):
        panel = figure.add_subplot(grid[divmod(i, across)])
        text = shortened(name, PANEL_TITLE // across)
        panel.set_title(text, fontsize=8, fontweight="normal", pad=3)
        panel.tick_params(labelsize=7)
        panel.xaxis.set_minor_locator(NullLocator())
        found.append(panel)
    return found


def nothing(ax: Axes, why: str) -> None:
    """A panel that only says why it shows nothing."""
    ax.text(0.5, 0.5, why, transform=ax.transAxes, ha="center", color=GREY)
    ax.set(xticks=[], yticks=[])


def shortened(name: str, length: int = 34) -> str:
    """A title that fits above a panel: its middle left out if need be."""
    if len(name) > length:
        name = f"{name[: length // 2 - 1]}...{name[-(length - length // 2 - 2) :]}"
    return plain(name)


def title(ax: Axes, text: str, subtitle: str, width: int = SUBTITLE_WIDTH) -> None:
    """A title, and below it what the figure is about: model, task, n."""
    whole = subtitle.replace(" = ", "\u00a0=\u00a0")  # no line ends between n and its value
    lines = [line.replace("\u00a0", " ") for line in textwrap.wrap(whole, width)] or [""]
    style: dict[str, Any] = {
        "textcoords": "offset points",
        "color": "#444444",
        "fontsize": 9,
        "in_layout": False,  # as wide as the figure: it may stand above the legend
    }
    below = plain("\n".join(lines))
    if not is_frame(ax):
        ax.set_title(text, pad=10 + 12 * len(lines))
        ax.annotate(below, (0, 1), (0, 7), xycoords="axes fraction", **style)
        return
    # A blank line, for each of the subtitle, keeps its place in the layout.
    spaced = text + "\n" * len(lines)
    over = _canvas(ax).suptitle(spaced, x=0.01, ha="left", fontsize=11, fontweight="bold")
    ax.annotate(below, (0, 0), (0, 2), xycoords=over, **style)


def label(ax: Axes, x: str, y: str) -> None:
    """Labels of the axes; of panels, below the last one of each column and once at the left."""
    if is_frame(ax):
        _canvas(ax).supylabel(plain(y), fontsize=9)
        for panel in _lowest(ax):
            panel.set_xlabel(plain(x), fontsize=8)
        return
    ax.set_xlabel(plain(x))
    ax.set_ylabel(plain(y))


def _lowest(ax: Axes) -> list[Axes]:
    """The last panel of each column."""
    columns: dict[int, Axes] = {}
    for panel in _canvas(ax).axes[1:]:
        spec = panel.get_subplotspec()
        if spec is not None:
            columns[spec.colspan.start] = panel
    return list(columns.values())


def is_frame(ax: Axes) -> bool:
    """Whether the axes were divided into panels."""
    return not ax.axison


def _canvas(ax: Axes) -> Figure:
    figure = ax.get_figure()
    assert isinstance(figure, Figure)
    return figure


def seeds_text(
    estimates: Sequence[Estimate], noun: str, per: str, note: str = "", unstated: str = NO_SPREAD
) -> str:
    """``3 search seeds per point``, and where there is no interval the reason.

    Args:
        estimates: What is drawn.
        noun: Of one seed.
        per: What has so many of them.
        note: On what the seeds are used for.
        unstated: Why none has an interval where there are seeds enough.
    """
    counts = sorted({e.n for e in estimates})
    text = f"{count_text(counts, noun)} per {per}{note}"
    if not counts or counts[0] >= MIN_SEEDS:
        equal = counts and not any(e.interval for e in estimates)
        return f"{text}; no interval: {unstated}" if equal else text
    if counts[-1] >= MIN_SEEDS:
        return f"{text}; no interval where n < {MIN_SEEDS}"
    return f"{text}; no interval: n {'=' if len(counts) == 1 else '<='} {counts[-1]}"


def plain(text: str) -> str:
    """Text that came from a config, kept from being read as mathematics or as "no legend"."""
    escaped = text.replace("$", r"\$")
    return f" {escaped}" if escaped.startswith("_") else escaped


def line_handle(label: str, **style: Any) -> Line2D:
    """A legend entry drawn as a line."""
    return Line2D([], [], label=plain(label), **style)


def mark_handle(label: str, marker: str, size: float, **style: Any) -> Line2D:
    """A legend entry drawn as a marker."""
    style = {"color": GREY, **style}
    return line_handle(label, marker=marker, markersize=size, linestyle="none", **style)


def hatch_handle(label: str, colour: str) -> Patch:
    """A legend entry drawn as a hatched patch."""
    return Patch(facecolor="none", edgecolor=colour, hatch="////", linewidth=0, label=plain(label))


def series_handles(cast: Cast, names: Sequence[str], *, line: bool = True) -> list[Line2D]:
    """Legend entries of those series that are drawn."""
    drawn = [name for name in cast.series if name in names]
    found = [(name, cast.look(name)) for name in drawn]
    if not line:
        return [mark_handle(name, look.marker, 6, color=look.colour) for name, look in found]
    return [line_handle(name, color=look.colour, marker=look.marker) for name, look in found]


def legend(ax: Axes, handles: Sequence[Artist]) -> None:
    """A legend where it hides nothing: to the right of the axes, or below panels."""
    if not is_frame(ax):
        ax.legend(handles=list(handles), loc="upper left", bbox_to_anchor=(1.01, 1.0))
        return
    canvas = _canvas(ax)
    canvas.legend(handles=list(handles), loc="outside lower left", ncols=COLUMNS)
    below = ENTRY * math.ceil(len(handles) / COLUMNS) / canvas.get_figheight()
    # The label of all panels stands beside them, not beside the legend.
    canvas.supylabel(canvas.get_supylabel(), y=0.5 + below / 2, fontsize=9)


def run_handles(points: Sequence[Point], estimates: Sequence[Estimate], base: bool) -> list[Line2D]:
    """Legend entries of runs, their intervals and the untrained model, as far as drawn."""
    handles = [mark_handle("one run", "o", 4)]
    if any(point.diverged for point in points):
        handles.append(mark_handle("diverged run", "x", 6))
    if any(estimate.interval for estimate in estimates):
        handles.append(mark_handle("90 % t interval", "|", 11))
    if base:
        handles.append(line_handle("untrained model", color=GREY, linestyle="--", linewidth=1.2))
    return handles


def draw_runs(ax: Axes, points: Sequence[Point], aside: float, look: Look) -> None:
    """Single runs, dots or (diverged) crosses, at ``aside`` times their place."""
    seen = [p for p in points if math.isfinite(p.score)]
    alive, lost = ([p for p in seen if p.diverged is gone] for gone in (False, True))
    dots = ([p.x * aside for p in alive], [p.score for p in alive])
    many = len(alive) >= MANY_DOTS
    ax.plot(*dots, "o", markersize=3.5, color=look.colour, alpha=0.5, mew=0, rasterized=many)
    crosses = ([p.x * aside for p in lost], [p.score for p in lost])
    ax.plot(*crosses, "x", markersize=6, color=look.colour, zorder=6)


def draw_intervals(
    ax: Axes,
    places: Sequence[float],
    estimates: Sequence[Estimate],
    colour: str,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> None:
    """Vertical intervals, as one artist; estimates without one have none.

    Args:
        ax: Where.
        places: On the horizontal axis.
        estimates: As many.
        colour: Of the arm.
        within: Ends at which a longer interval is cut off.
    """
    stated = [(x, e.interval) for x, e in zip(places, estimates, strict=True) if e.interval]
    if not stated:
        return
    xs = [x for place, _ in stated for x in (place, place, math.nan)]
    ys = [y for _, (low, high) in stated for y in (*np.clip((low, high), *within), math.nan)]
    ax.plot(xs, ys, color=colour, linewidth=1.4, marker="_", markersize=5, zorder=2)


def draw_base(ax: Axes, base: float | None) -> None:
    """The untrained model."""
    if base is not None:
        ax.axhline(base, color=GREY, linestyle="--", linewidth=1.2, zorder=1)


def draw_full_band(ax: Axes, estimate: Estimate) -> None:
    """FullFT as a black line with its interval as a band."""
    if estimate.interval is not None:
        ax.axhspan(*estimate.interval, color=BLACK, alpha=0.14, linewidth=0)
    ax.axhline(estimate.point, color=BLACK, linewidth=1)


def draw_bounds(
    ax: Axes, x: float, y: float, flags: Sequence[str], look: Look, *, upright: bool = True
) -> None:
    """An arrow where an estimate is only a bound: the plateau reaches that end of the grid."""
    for flag, sign in (("edge_high", 1), ("edge_low", -1)):
        if flag in flags:
            head = (0, 15 * sign) if upright else (15 * sign, 0)
            style = {"arrowstyle": "<|-", "color": look.colour, "shrinkA": 0, "shrinkB": 2}
            ax.annotate("", (x, y), head, textcoords="offset points", arrowprops=style, zorder=4)


def draw_ten(ax: Axes) -> None:
    """Ten times, and the window from 5 to 20 times, on an axis of ratios."""
    ax.axhspan(5, 20, color=GREY, alpha=0.15, linewidth=0)
    ax.axhline(10, color=GREY, linestyle=":", linewidth=1.4, zorder=1)
