"""The best and the worst that any learning rate had reached after so many prompts, by arm.

The paper's capacity figure: the pointwise minimum of the loss over all learning rates. Of rewards
it is the maximum. Curves are means over search seeds; a maximum over rates has no honest interval
(a percentile bootstrap of it covers far too little), so none is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.estimates.search import SearchSummary
from analysis.figures import marks, scales
from analysis.figures.cast import Cast, cast
from analysis.figures.learning import evaluated, unit
from analysis.figures.numbers import no_curves
from analysis.figures.spec import FigureSpec
from analysis.figures.style import GREY
from analysis.reading.arms import Arm, count_text, scored
from analysis.reading.sweep import Sweep

MIN_RATES = 2


@dataclass(frozen=True)
class Envelope:
    """What one arm had reached, over its learning rates."""

    arm: Arm
    rates: int
    seeds: tuple[int, ...]
    """Search seeds of each rate."""
    prompts: tuple[float, ...]
    """After the start; those at which every search run was evaluated, or had diverged."""
    best: tuple[float, ...]
    worst: tuple[float, ...]


@dataclass(frozen=True)
class EnvelopeFigure:
    """Envelopes of every arm."""

    cast: Cast
    unit: str
    curves: tuple[Envelope, ...]

    @property
    def shown(self) -> list[str]:
        """Arms that have an envelope."""
        return [curve.arm.name for curve in self.curves]

    @property
    def settings(self) -> tuple[str, ...]:
        """Titles of the panels."""
        return self.cast.settings_of(self.shown)


def envelope_figure(sweep: Sweep, search: SearchSummary) -> EnvelopeFigure:
    """Pointwise best and worst over learning rates of the seed-mean learning curves."""
    found = cast(sweep)
    rows = {m.arm.name: scored(sweep.runs, m.arm.name, "search") for m in found.members}
    wanted = [run for frame in rows.values() for run in frame["run_id"]]
    evaluations = evaluated(sweep, wanted).drop_duplicates(["prompts", "run_id"], keep="last")
    by_run = evaluations.set_index(["prompts", "run_id"])["value"].unstack()
    curves = []
    known = set(by_run.columns)
    for member in found.members:
        mine = rows[member.arm.name]
        mine = mine[np.array([run_id in known for run_id in mine["run_id"]], dtype=bool)]
        envelope = _envelope(member.arm, mine, by_run, found.lower_is_better)
        if envelope is not None:
            curves.append(envelope)
    return EnvelopeFigure(found, unit(sweep), tuple(curves))


def _envelope(arm: Arm, runs: pd.DataFrame, by_run: pd.DataFrame, lower: bool) -> Envelope | None:
    """From ``[prompts, runs]`` evaluations; None with fewer than two learning rates."""
    if runs["learning_rate"].nunique() < MIN_RATES:
        return None
    table = by_run[runs["run_id"].tolist()].dropna(how="all").copy()
    lost = runs[runs["status"] == "diverged"]
    for run_id, worst in zip(lost["run_id"], lost["score_final"], strict=True):
        values = table[run_id]
        table[run_id] = values.where(table.index <= values.last_valid_index(), worst)
    table = table[table.index > 0].dropna()
    if not len(table):
        return None
    keys = runs.set_index("run_id").loc[table.columns, ["learning_rate", "seed"]]
    cells = table.T.groupby([keys["learning_rate"], keys["seed"]]).mean()
    means = cells.groupby(level="learning_rate").mean()
    ends = [tuple(end.tolist()) for end in (means.min(), means.max())]
    worst, best = reversed(ends) if lower else ends
    seeds = tuple(int(n) for n in cells.groupby(level="learning_rate").size())
    prompts = tuple(float(p) for p in table.index)
    return Envelope(arm, len(means), seeds, prompts, best, worst)


def draw_envelopes(data: EnvelopeFigure, ax: Axes) -> None:
    """Best over learning rates thick, worst thin, against prompts seen."""
    panels = marks.panels(ax, data.settings)
    for setting, panel in zip(data.settings, panels, strict=True):
        curves = [c for c in data.curves if data.cast.by_name[c.arm.name].setting() == setting]
        for curve in curves:
            look = data.cast.looks[curve.arm.name]
            every = max(1, len(curve.prompts) // 10)
            panel.plot(
                curve.prompts,
                curve.best,
                color=look.colour,
                marker=look.marker,
                markevery=every,
                zorder=3,
            )
            panel.plot(curve.prompts, curve.worst, ":", color=look.colour, linewidth=1.3)
        scales.log_axis(panel.xaxis, scales.number_text)
        values = [v for curve in curves for v in (*curve.best, *curve.worst)]
        lower = data.cast.lower_is_better
        panel.set_ylim(*scales.score_limits(values, lower_is_better=lower))
    marks.label(ax, f"{data.unit} (log scale)", data.cast.score_label)
    seeds = count_text([n for curve in data.curves for n in curve.seeds], "search seed")
    rates = count_text([curve.rates for curve in data.curves], "rate")
    note = f"{data.cast.subject}; {rates} per arm, {seeds} per rate; no interval of extremes"
    marks.title(ax, "Best and worst over all learning rates", note)
    names = [data.cast.by_name[curve.arm.name].series for curve in data.curves]
    handles = marks.series_handles(data.cast, names)
    handles.append(marks.line_handle("best rate at that point", color=GREY))
    handles.append(marks.line_handle("worst rate", color=GREY, linestyle=":", linewidth=1.3))
    marks.legend(ax, handles)


def _caption(data: EnvelopeFigure) -> str:
    return (
        "Thick: the best that any learning rate of the arm had reached by then, thin: the worst; "
        "each point may be another rate's. Extremes over rates are optimistic and have no "
        "interval. A diverged run counts with the worst score from its end on."
        + data.cast.unshown(data.shown, "evaluations of two learning rates")
    )


def _missing(sweep: Sweep, search: SearchSummary, data: EnvelopeFigure) -> str:
    if sweep.selects_only:
        return f"{no_curves(sweep)}, so there are no extremes over all of them."
    return "" if data.curves else "No arm has stored evaluations of two learning rates."


def _lacks(sweep: Sweep) -> str:
    longest = max((len(a["learning_rates"]) for a in sweep.plan["arms"].values()), default=0)
    return "" if longest >= MIN_RATES else "arms with two or more learning rates"


FIGURE = FigureSpec(
    name="envelope",
    title="Best and worst over learning rates",
    order=35,
    data=envelope_figure,
    draw=draw_envelopes,
    caption=_caption,
    missing=_missing,
    lacks=_lacks,
    height=lambda data: marks.height(data.cast, extra=2, panels=len(data.settings)),
)
