"""Which layers to adapt: layer sets at equal rank, and at equal trainable parameters (C8)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from analysis.claims.facts import layer_set
from analysis.claims.groups import matched, value
from analysis.estimates.search import SearchSummary
from analysis.figures import marks, scales
from analysis.figures.cast import TARGETS, Cast, cast, target_text
from analysis.figures.numbers import ArmScore, ArmScores, arm_scores, no_score
from analysis.figures.ranks import BAND
from analysis.figures.spec import FigureSpec
from analysis.figures.style import GREY
from analysis.reading.arms import arms
from analysis.reading.sweep import Sweep

DASHES = ("-", "--", ":", "-.", (0, (1, 3)), (0, (6, 2, 1, 2, 1, 2)))


@dataclass(frozen=True)
class LayerFigure:
    """Scores by layer set."""

    cast: Cast
    scores: ArmScores
    """Of LoRA arms that differ in their layers, and of FullFT."""
    sets: tuple[tuple[str, str], ...]
    """Layer set by arm."""

    @property
    def shown(self) -> list[str]:
        """LoRA arms that have a score."""
        names = dict(self.sets)
        return [row.arm.name for row in self.scores.rows if row.arm.name in names]

    @property
    def settings(self) -> tuple[str, ...]:
        """Settings with a row of panels."""
        return self.cast.settings_of(self.shown)

    def series(self, setting: str) -> list[tuple[str, list[ArmScore]]]:
        """Layer sets of a setting with their scores by rank."""
        names = dict(self.sets)
        rows = [r for r in self.scores.rows if self.cast.by_name[r.arm.name].setting() == setting]
        found: dict[str, list[ArmScore]] = {}
        for row in rows:
            if row.arm.name in names:
                found.setdefault(names[row.arm.name], []).append(row)
        return [(name, sorted(found[name], key=lambda r: r.arm.rank or 0)) for name in found]

    def full(self, setting: str) -> list[ArmScore]:
        """FullFT in a setting."""
        rows = [row for row in self.scores.rows if row.arm.is_full]
        return [row for row in rows if self.cast.by_name[row.arm.name].setting() == setting]


def layer_figure(sweep: Sweep, search: SearchSummary) -> LayerFigure:
    """Scores of arms that differ in their layers, by rank and by parameters."""
    sets = {
        arm.name: layer_set(sweep, arm) or target_text(value(sweep, arm, TARGETS))
        for arm in arms(sweep)
        if not arm.is_full and value(sweep, arm, TARGETS) is not None
    }
    scores = arm_scores(sweep, search)
    rows = tuple(row for row in scores.rows if row.arm.is_full or row.arm.name in sets)
    kept = ArmScores(scores.phase, scores.cross_fitted, rows)
    return LayerFigure(cast(sweep), kept, tuple(sets.items()))


def draw_layers(data: LayerFigure, ax: Axes) -> None:
    """Layer sets against rank at the left, against trainable parameters at the right."""
    settings = data.settings
    names = [
        f"{setting}, {how}" if setting else how
        for setting in settings
        for how in ("at equal rank", "at equal parameters")
    ]
    panels = marks.panels(ax, names, across=2)
    for i, setting in enumerate(settings):
        _draw_raw(data, panels[2 * i], setting)
        _draw_matched(data, panels[2 * i + 1], setting)
        scales.same_limits([p for p in panels[2 * i : 2 * i + 2] if p.lines])
    marks.label(ax, "", data.cast.score_label)
    panels[-2].set_xlabel("LoRA rank (log scale)", fontsize=8)
    panels[-1].set_xlabel("trainable parameters (log scale)", fontsize=8)
    estimates = [row.estimate for row in data.scores.rows]
    seeds = marks.seeds_text(estimates, f"{data.scores.phase} seed", "arm", data.scores.note)
    marks.title(ax, "Score by adapted layers", f"{data.cast.subject}; {seeds}")
    _legend(data, ax)


def _draw_raw(data: LayerFigure, ax: Axes, setting: str) -> None:
    series = data.series(setting)
    ranks = [float(row.arm.rank or 1) for _, rows in series for row in rows]
    for i, (name, rows) in enumerate(series):
        aside = 2 ** (0.1 * (i - (len(series) - 1) / 2))
        _draw_set(data, ax, name, rows, [(row.arm.rank or 1) * aside for row in rows])
    _draw_full(data, ax, setting)
    scales.rank_axis(ax, ranks)


def _draw_matched(data: LayerFigure, ax: Axes, setting: str) -> None:
    known = [
        (name, [row for row in rows if math.isfinite(row.trainable_params)])
        for name, rows in data.series(setting)
    ]
    if not any(rows for _, rows in known):
        marks.nothing(ax, "not recorded")
        return
    for name, rows in known:
        _draw_set(data, ax, name, rows, [row.trainable_params for row in rows])
    _draw_full(data, ax, setting)
    scales.log_axis(ax.xaxis, scales.number_text)


def _draw_full(data: LayerFigure, ax: Axes, setting: str) -> None:
    for row in data.full(setting):
        marks.draw_full_band(ax, row.estimate)


def _draw_set(
    data: LayerFigure, ax: Axes, name: str, rows: list[ArmScore], places: list[float]
) -> None:
    points = [row.estimate.point for row in rows]
    ax.plot(places, points, color=GREY, linewidth=1.2, linestyle=_dash(data, name), zorder=1)
    for row, x in zip(rows, places, strict=True):
        look = data.cast.looks[row.arm.name]
        marks.draw_intervals(ax, [x], [row.estimate], look.colour)
        ax.plot([x], [row.estimate.point], look.marker, color=look.colour, zorder=3)


def _dash(data: LayerFigure, name: str) -> Any:
    names = list(dict.fromkeys(name for _, name in data.sets))
    return DASHES[names.index(name) % len(DASHES)]


def _legend(data: LayerFigure, ax: Axes) -> None:
    names = [data.cast.by_name[row.arm.name].series for row in data.scores.rows]
    handles = marks.series_handles(data.cast, names, line=False)
    for name in dict.fromkeys(name for _, name in data.sets):
        style = {"color": GREY, "linewidth": 1.2, "linestyle": _dash(data, name)}
        handles.append(marks.line_handle(f"layers: {name}", **style))
    if any(row.estimate.interval for row in data.scores.rows):
        handles.append(marks.mark_handle("90 % t interval", "|", 11))
    if any(row.estimate.interval for row in data.scores.rows if row.arm.is_full):
        handles.append(marks.line_handle("FullFT, 90 %", color=BAND, linewidth=7))
    marks.legend(ax, handles)


def _caption(data: LayerFigure) -> str:
    return (
        "Left: layer sets at equal rank, where more layers also mean more parameters. Right: the "
        "same scores against trainable parameters; compare the lines at equal height of the axis, "
        f"not the marks. {data.scores.caption}" + data.cast.left_out(data.shown)
    )


def _missing(sweep: Sweep, search: SearchSummary, data: LayerFigure) -> str:
    return no_score(sweep, data.scores) or ("" if data.shown else "No LoRA arm has a score yet.")


def _lacks(sweep: Sweep) -> str:
    groups = matched(sweep, [TARGETS, "method.rank"], among=lambda arm: not arm.is_full)
    differ = any(len({repr(value(sweep, a, TARGETS)) for a in group}) > 1 for group in groups)
    return "" if differ else "LoRA arms that differ in method.target_modules"


FIGURE = FigureSpec(
    name="layers",
    title="Score by adapted layers",
    order=70,
    data=layer_figure,
    draw=draw_layers,
    caption=_caption,
    missing=_missing,
    lacks=_lacks,
    height=lambda data: marks.height(data.cast, 5, 2 * len(data.settings)) + 0.8,
)
