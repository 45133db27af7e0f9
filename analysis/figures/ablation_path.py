"""What each change between two configurations gained, in the order of the path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from analysis.estimates.ablation import ALL, GAIN, LOSS, Ablation, Change, ablation
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import Estimate
from analysis.figures import marks
from analysis.figures.cast import Cast, cast, target_text
from analysis.figures.spec import FigureSpec
from analysis.figures.style import BLACK, GREY
from analysis.reading.arms import rate_text
from analysis.reading.sweep import Sweep
from study.plan.arms import RATE_KEY

COLOURS = {GAIN: "#117733", LOSS: "#882255"}
"""Of decided changes; undecided ones are grey."""
ROW = 0.55
"""Height of a row in inches."""


@dataclass(frozen=True)
class AblationFigure:
    """The changes of an ablation."""

    cast: Cast
    found: Ablation | None

    @property
    def rows(self) -> tuple[Change, ...]:
        """The changes as they were made, then all of them together."""
        return () if self.found is None else (*self.found.changes, self.found.whole)


def ablation_figure(sweep: Sweep, search: SearchSummary) -> AblationFigure:
    """Gain of every change."""
    return AblationFigure(cast(sweep), ablation(sweep))


def draw_ablation(data: AblationFigure, ax: Axes) -> None:
    """A row for each change: its gain with the interval, and what it gained alone."""
    assert data.found is not None
    ax.axvline(0, color=GREY, linestyle="--", linewidth=1.2, zorder=1)
    for y, row in enumerate(data.rows):
        if row.gain is not None:
            _draw_gain(ax, y, row, row.gain)
        if row.alone is not None and data.found.path:
            ax.plot([row.alone], [y], "o", markersize=8, mfc="none", mec=GREY, zorder=2)
    ax.axhline(len(data.rows) - 1.5, color="#d5d5d5", linewidth=0.8)
    ax.set_yticks(range(len(data.rows)), [_label(row) for row in data.rows])
    ax.set_ylim(len(data.rows) - 0.4, -0.6)
    ax.set_xlabel(f"gain in {data.cast.score_label}")
    how = "in the order of the path" if data.found.path else "one at a time"
    gains = [row.gain for row in data.rows if row.gain is not None]
    seeds = marks.seeds_text(gains, "report seed", "arm")
    subtitle = f"{data.cast.subject}; {seeds}"
    longest = max(len(line) for row in data.rows for line in _label(row).split("\n"))
    title = f"From {data.found.source} to {data.found.target}, {how}"
    marks.title(ax, marks.plain(title), subtitle, marks.SUBTITLE_WIDTH - longest)
    marks.legend(ax, _handles(data))


def _draw_gain(ax: Axes, y: int, row: Change, gain: Estimate) -> None:
    colour = COLOURS.get(row.verdict, GREY)
    if gain.interval is not None:
        ax.plot(gain.interval, [y, y], color=colour, linewidth=1.6, marker="|", zorder=3)
    marker = "D" if row.factor == ALL else "o"
    ax.plot([gain.point], [y], marker, color=colour, markersize=7, mec="white", zorder=4)


def _label(row: Change) -> str:
    """The factor and its values, below them that its gain is not known yet."""
    bare = "" if row.gain is not None else "\n(no score yet)"
    if row.factor == ALL:
        return "all together" + bare
    text = row.factor.rsplit(".", 1)[-1].replace("_", " ")
    before, after = (_value(row.factor, value) for value in row.values)
    if before or after:
        text += f"\n{before or 'none'} to {after or 'none'}"
    return marks.plain(text + bare)


def _value(factor: str, value: Any) -> str:
    if value is None:
        return ""
    return rate_text(value) if factor == RATE_KEY else marks.shortened(target_text(value), 24)


def _handles(data: AblationFigure) -> list[Line2D]:
    assert data.found is not None
    words = {row.verdict for row in data.rows if row.gain is not None}
    texts = {GAIN: "gain", LOSS: "loss", "undecided": "undecided"}
    handles = [
        marks.mark_handle(text, "o", 6, color=COLOURS.get(word, GREY))
        for word, text in texts.items()
        if word in words
    ]
    if any(row.gain is not None and row.gain.interval for row in data.rows):
        handles.append(marks.line_handle("90 % t interval", color=BLACK, linewidth=1.6))
    if data.found.path and any(row.alone is not None for row in data.rows):
        handles.append(marks.mark_handle("changed alone,\nsearch seeds", "o", 8, mfc="none"))
    return handles


def _caption(data: AblationFigure) -> str:
    if data.found is None or not data.rows:
        return "Gains of single changes between two configurations."
    if not data.found.path:
        return (
            f"Each factor changed alone in {data.found.source}. Gains and intervals are paired by "
            "report seed; a gain is called one where Holm's correction leaves it apart from zero. "
            "Where the single gains do not add up to that of all together, factors interact."
        )
    text = (
        "Each row adds a change to those above it; the next was always that of best mean score on "
        "the search seeds, and its gain is from fresh report seeds, paired by seed. A gain is "
        "called one where Holm's correction leaves it apart from zero. Where a factor gains more "
        "or less than it did alone, it interacts with those above."
    )
    open_rounds = [row for row in data.found.changes if row.order_open]
    if open_rounds:
        pairs = [f"{_short(row.factor)} before {_short(row.rival)}" for row in open_rounds]
        text += f" The search seeds cannot tell the order apart: {', '.join(pairs)}."
    if not data.found.finished:
        text += " The path has not reached its end."
    return text


def _short(factor: str) -> str:
    return factor.rsplit(".", 1)[-1].replace("_", " ")


def _missing(sweep: Sweep, search: SearchSummary, data: AblationFigure) -> str:
    if any(row.gain is not None for row in data.rows):
        return ""
    if not sweep.experiment["seeds"]["report"]:
        return (
            "There are no report seeds, and the search seeds that chose the path would flatter its "
            "gains."
        )
    return "No change has a score on report seeds at both of its ends yet."


def _lacks(sweep: Sweep) -> str:
    return "" if sweep.experiment.get("ablate") else "an ablation (experiment.ablate)"


FIGURE = FigureSpec(
    name="ablation",
    title="What each change gained",
    order=5,
    data=ablation_figure,
    draw=draw_ablation,
    caption=_caption,
    missing=_missing,
    lacks=_lacks,
    height=lambda data: 1.9 + ROW * len(data.rows),
)
