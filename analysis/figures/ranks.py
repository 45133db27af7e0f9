"""Score at each arm's learning rate against LoRA rank, FullFT as a band."""

from __future__ import annotations

from dataclasses import dataclass, replace

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from analysis.estimates.search import SearchSummary
from analysis.figures import marks, scales
from analysis.figures.cast import Cast, cast
from analysis.figures.numbers import ArmScore, ArmScores, arm_scores, no_score
from analysis.figures.rates import bases
from analysis.figures.spec import FigureSpec
from analysis.reading.sweep import Sweep

ASIDE = 0.16
"""Octaves by which runs, and arms of equal rank, step aside."""
MIN_SPAN = 0.08
"""Four of the smallest margins of equality: a shorter axis would magnify what does not matter."""
REACH = 0.6
"""Spreads of the scores beyond which the untrained model would flatten them, and is not drawn."""
BAND = "#dbdbdb"


@dataclass(frozen=True)
class RankFigure:
    """Score against rank, with FullFT beside it."""

    cast: Cast
    scores: ArmScores
    bases: tuple[tuple[str, float], ...]
    """Score of the untrained model by setting, where it was evaluated."""

    def base(self, setting: str) -> float | None:
        """Score of the untrained model, where it stands so near that the axis can show it."""
        base = dict(self.bases).get(setting)
        scores = [p.score for row in self.in_setting(setting) for p in row.points]
        if base is None or not scores:
            return None
        reach = max(REACH * (max(scores) - min(scores)), 0.05 * abs(max(scores)))
        return base if min(scores) - reach <= base <= max(scores) + reach else None

    def in_setting(self, setting: str) -> list[ArmScore]:
        """The scores of one panel."""
        rows = self.scores.rows
        return [row for row in rows if self.cast.by_name[row.arm.name].setting() == setting]

    @property
    def shown(self) -> list[str]:
        """Arms that have a score."""
        return [row.arm.name for row in self.scores.rows]

    @property
    def settings(self) -> tuple[str, ...]:
        """Titles of the panels."""
        return self.cast.settings_of(self.shown)

    @property
    def full(self) -> tuple[ArmScore, ...]:
        """Scores of full fine-tuning."""
        return tuple(row for row in self.scores.rows if row.arm.is_full)

    @property
    def lora(self) -> tuple[ArmScore, ...]:
        """Scores of the other arms, by rank."""
        return tuple(row for row in self.scores.rows if not row.arm.is_full)


def rank_figure(sweep: Sweep, search: SearchSummary) -> RankFigure:
    """Score at the learning rate of each arm, against rank."""
    found, scores = cast(sweep), arm_scores(sweep, search)
    return RankFigure(found, scores, bases(sweep, found, scores.phase))


def draw_ranks(data: RankFigure, ax: Axes) -> None:
    """Score against rank, FullFT as a black band."""
    panels = marks.panels(ax, data.settings)
    for setting, panel in zip(data.settings, panels, strict=True):
        _draw_panel(data, panel, data.in_setting(setting), data.base(setting))
    marks.label(ax, "LoRA rank (log scale)", data.cast.score_label)
    estimates = [row.estimate for row in data.scores.rows]
    seeds = marks.seeds_text(estimates, f"{data.scores.phase} seed", "arm", data.scores.note)
    marks.title(ax, "Score at each arm's learning rate", f"{data.cast.subject}; {seeds}")
    marks.legend(ax, _handles(data))


def _draw_panel(data: RankFigure, ax: Axes, rows: list[ArmScore], base: float | None) -> None:
    full = [row for row in rows if row.arm.is_full]
    lora = [row for row in rows if not row.arm.is_full]
    ranks = sorted({float(row.arm.rank or 1) for row in lora})
    left = min(ranks, default=1.0) / 2
    for row in full:
        marks.draw_full_band(ax, row.estimate)
        _draw_score(data, ax, row, left)
    for row in lora:
        mates = [other for other in lora if other.arm.rank == row.arm.rank]
        octaves = 2 * ASIDE * (mates.index(row) - (len(mates) - 1) / 2)
        _draw_score(data, ax, row, (row.arm.rank or 1) * 2**octaves)
    marks.draw_base(ax, base)
    scales.rank_axis(ax, ranks, left if full else None)
    if not data.cast.lower_is_better:
        scales.widen(ax, MIN_SPAN)


def _draw_score(data: RankFigure, ax: Axes, row: ArmScore, x: float) -> None:
    look = data.cast.looks[row.arm.name]
    marks.draw_intervals(ax, [x], [row.estimate], look.colour)
    mean = ([x], [row.estimate.point])
    ax.plot(*mean, color=look.colour, marker=look.marker, markersize=6, zorder=3)
    if len(row.points) > 1:  # a single run is its own mean
        marks.draw_runs(ax, [replace(point, x=x) for point in row.points], 2**ASIDE, look)


def _handles(data: RankFigure) -> list[Line2D]:
    rows = data.scores.rows
    names = [data.cast.by_name[row.arm.name].series for row in rows]
    handles = marks.series_handles(data.cast, names, line=False)
    runs = [point for row in rows for point in row.points]
    handles += marks.run_handles(runs, [row.estimate for row in rows], _shows_base(data))
    if any(row.estimate.interval for row in data.full):
        handles.append(marks.line_handle("FullFT, 90 %", color=BAND, linewidth=7))
    return handles


def _shows_base(data: RankFigure) -> bool:
    return any(data.base(setting) is not None for setting in data.settings)


def _caption(data: RankFigure) -> str:
    text = f"{data.scores.caption} The score axis does not start at zero."
    far = [(s, base) for s, base in data.bases if data.base(s) is None and data.in_setting(s)]
    if far:
        shown = ", ".join(f"{base:.3g} ({s})" if s else f"{base:.3g}" for s, base in far)
        text += f" The untrained model is outside it, at {shown}."
    return text + data.cast.unshown(data.shown, f"a score on {data.scores.phase} seeds")


FIGURE = FigureSpec(
    name="ranks",
    title="Score against rank",
    order=20,
    data=rank_figure,
    draw=draw_ranks,
    caption=_caption,
    missing=lambda sweep, search, data: no_score(sweep, data.scores),
    height=lambda data: marks.height(data.cast, panels=len(data.settings)),
)
