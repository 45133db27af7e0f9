"""Score against the size of the batch by method, each at its own learning rate (C7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from matplotlib.axes import Axes

from analysis.claims.groups import matched, value
from analysis.estimates.search import SearchSummary
from analysis.figures import marks, scales
from analysis.figures.cast import BATCH, Cast, cast
from analysis.figures.numbers import ArmScore, ArmScores, arm_scores, no_score
from analysis.figures.spec import FigureSpec
from analysis.reading.arms import arms
from analysis.reading.sweep import Sweep

ASIDE = 0.07
"""Octaves by which methods step aside."""


@dataclass(frozen=True)
class BatchFigure:
    """Scores by batch."""

    cast: Cast
    scores: ArmScores
    batches: tuple[tuple[str, float], ...]
    """Prompts per optimizer step by arm."""

    @property
    def shown(self) -> list[str]:
        """Arms that have a score."""
        return [row.arm.name for row in self.scores.rows]

    @property
    def settings(self) -> tuple[str, ...]:
        """Titles of the panels."""
        return self.cast.settings_of(self.shown, [BATCH])


def batch_figure(sweep: Sweep, search: SearchSummary) -> BatchFigure:
    """Scores of the arms whose batch is known, each at the rate it goes by."""
    sizes = {arm.name: value(sweep, arm, BATCH) for arm in arms(sweep)}
    known = {name: float(size) for name, size in sizes.items() if size is not None}
    scores = arm_scores(sweep, search)
    rows = tuple(row for row in scores.rows if row.arm.name in known)
    kept = ArmScores(scores.phase, scores.cross_fitted, rows)
    return BatchFigure(cast(sweep), kept, tuple(known.items()))


def draw_batch(data: BatchFigure, ax: Axes) -> None:
    """Score against prompts per step, a method a line."""
    panels = marks.panels(ax, data.settings)
    for setting, panel in zip(data.settings, panels, strict=True):
        rows = [
            row
            for row in data.scores.rows
            if data.cast.by_name[row.arm.name].setting([BATCH]) == setting
        ]
        for i, series in enumerate(data.cast.series):
            aside = 2 ** (ASIDE * (i - (len(data.cast.series) - 1) / 2))
            mine = [r for r in rows if data.cast.by_name[r.arm.name].series == series]
            _draw_series(data, panel, series, mine, aside)
        scales.place_axis(panel, [dict(data.batches)[row.arm.name] for row in rows])
    marks.label(ax, "prompts per optimizer step (log scale)", data.cast.score_label)
    estimates = [row.estimate for row in data.scores.rows]
    seeds = marks.seeds_text(estimates, f"{data.scores.phase} seed", "point", data.scores.note)
    marks.title(ax, "Score against batch size", f"{data.cast.subject}; {seeds}")
    names = [data.cast.by_name[row.arm.name].series for row in data.scores.rows]
    runs = [point for row in data.scores.rows for point in row.points]
    handles = marks.series_handles(data.cast, names)
    marks.legend(ax, handles + marks.run_handles(runs, estimates, base=False))


def _draw_series(
    data: BatchFigure, ax: Axes, series: str, rows: Sequence[ArmScore], aside: float
) -> None:
    look, sizes = data.cast.look(series), dict(data.batches)
    ordered = sorted(rows, key=lambda row: sizes[row.arm.name])
    places = [sizes[row.arm.name] * aside for row in ordered]
    points = [row.estimate.point for row in ordered]
    ax.plot(places, points, color=look.colour, marker=look.marker, zorder=3)
    marks.draw_intervals(ax, places, [row.estimate for row in ordered], look.colour)
    for row, x in zip(ordered, places, strict=True):
        marks.draw_runs(ax, [replace(point, x=x) for point in row.points], 1.0, look)


def _caption(data: BatchFigure) -> str:
    return (
        "Each point is one arm at the learning rate tuned for its own batch; methods stand a "
        "little aside of each other. A number of steps shared by all batches gives larger batches "
        f"more prompts. {data.scores.caption} The score axis does not start at zero."
        + data.cast.unshown(data.shown, f"a score on {data.scores.phase} seeds")
    )


def _lacks(sweep: Sweep) -> str:
    return "" if matched(sweep, [BATCH]) else f"arms that differ in {BATCH} alone"


FIGURE = FigureSpec(
    name="batch",
    title="Score against batch size",
    order=75,
    data=batch_figure,
    draw=draw_batch,
    caption=_caption,
    missing=lambda sweep, search, data: no_score(sweep, data.scores),
    lacks=_lacks,
    height=lambda data: marks.height(data.cast, 3, len(data.settings)),
)
