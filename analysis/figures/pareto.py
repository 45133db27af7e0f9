"""What a score costs: against trainable parameters and against training FLOPs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from analysis.estimates.search import SearchSummary
from analysis.figures import marks, scales
from analysis.figures.cast import Cast, cast
from analysis.figures.numbers import ArmScore, ArmScores, arm_scores, column, no_score
from analysis.figures.spec import FigureSpec
from analysis.figures.style import GREY
from analysis.reading.sweep import Sweep

Cost = Callable[[ArmScore], float]
COSTS: tuple[tuple[str, Cost], ...] = (
    ("trainable parameters", lambda row: row.trainable_params),
    ("training FLOPs of a run", lambda row: row.train_flops),
)


@dataclass(frozen=True)
class ParetoFigure:
    """Scores with what they cost."""

    cast: Cast
    scores: ArmScores

    @property
    def shown(self) -> list[str]:
        """Arms that have a score and a cost."""
        return [r.arm.name for r in self.scores.rows if any(_known(r, c) for _, c in COSTS)]

    @property
    def settings(self) -> tuple[str, ...]:
        """Settings with panels."""
        return self.cast.settings_of(self.shown)

    @property
    def costs(self) -> list[tuple[str, Cost]]:
        """The costs that are drawn, a column each."""
        rows = self.scores.rows
        return [(what, cost) for what, cost in COSTS if any(_known(row, cost) for row in rows)]

    @property
    def unknown(self) -> list[str]:
        """The costs that no arm with a score has recorded."""
        known = [what for what, _ in self.costs]
        return [what for what, _ in COSTS if self.scores.rows and what not in known]

    def rows(self, setting: str, cost: Cost) -> list[ArmScore]:
        """Arms of a setting whose cost is known, cheapest first."""
        mine = [r for r in self.scores.rows if self.cast.by_name[r.arm.name].setting() == setting]
        return sorted((row for row in mine if _known(row, cost)), key=cost)

    def front(self, setting: str, cost: Cost) -> list[ArmScore]:
        """Arms that no other one beats in both cost and score, cheapest first."""
        rows = self.rows(setting, cost)
        return front(
            rows, cost, lambda row: -row.estimate.point if self._lower else row.estimate.point
        )

    @property
    def _lower(self) -> bool:
        return self.cast.lower_is_better


def _known(row: ArmScore, cost: Cost) -> bool:
    return math.isfinite(cost(row))


def front(rows: Sequence[ArmScore], cost: Cost, gain: Cost) -> list[ArmScore]:
    """Rows that no other row dominates: none is as cheap and as good, and better in one.

    Args:
        rows: Any order.
        cost: Lower is better.
        gain: Higher is better.
    """

    def dominated(row: ArmScore) -> bool:
        c, g = cost(row), gain(row)
        return any(cost(o) <= c and gain(o) >= g and (cost(o) < c or gain(o) > g) for o in rows)

    return sorted((row for row in rows if not dominated(row)), key=cost)


def pareto_figure(sweep: Sweep, search: SearchSummary) -> ParetoFigure:
    """The score of every arm with its trainable parameters and training FLOPs."""
    return ParetoFigure(cast(sweep), arm_scores(sweep, search))


def draw_pareto(data: ParetoFigure, ax: Axes) -> None:
    """Score against each cost, the Pareto front ringed and joined."""
    costs = data.costs
    cells = [(setting, what, cost) for setting in data.settings for what, cost in costs]
    names = [f"{name}, {what}" if name else f"against {what}" for name, what, _ in cells]
    panels = marks.panels(ax, names, across=len(costs))
    for panel, (setting, _, cost) in zip(panels, cells, strict=True):
        _draw_panel(data, panel, setting, cost)
    marks.label(ax, "", data.cast.score_label)
    for panel, (what, _) in zip(panels[-len(costs) :], costs, strict=True):
        panel.set_xlabel(f"{what} (log scale)", fontsize=8)
    estimates = [row.estimate for row in data.scores.rows]
    seeds = marks.seeds_text(estimates, f"{data.scores.phase} seed", "arm", data.scores.note)
    marks.title(ax, "Score against cost", f"{data.cast.subject}; {seeds}")
    names = [data.cast.by_name[row.arm.name].series for row in data.scores.rows]
    handles = marks.series_handles(data.cast, names, line=False)
    if any(estimate.interval for estimate in estimates):
        handles.append(marks.mark_handle("90 % t interval", "|", 11))
    ring = {"markerfacecolor": "none", "markeredgecolor": GREY, "linewidth": 1.2}
    handles.append(marks.line_handle("Pareto front", color=GREY, marker="o", markersize=11, **ring))
    marks.legend(ax, handles)


def _draw_panel(data: ParetoFigure, ax: Axes, setting: str, cost: Cost) -> None:
    rows = data.rows(setting, cost)
    if not rows:
        marks.nothing(ax, "not recorded")
        return
    for row in rows:
        look = data.cast.looks[row.arm.name]
        marks.draw_intervals(ax, [cost(row)], [row.estimate], look.colour)
        ax.plot([cost(row)], [row.estimate.point], look.marker, color=look.colour, zorder=3)
    best = data.front(setting, cost)
    places, points = [cost(row) for row in best], [row.estimate.point for row in best]
    ax.step(places, points, where="post", color=GREY, linewidth=1.2, zorder=1)
    ax.plot(places, points, "o", markersize=11, mfc="none", mec=GREY, zorder=2)
    scales.log_axis(ax.xaxis, scales.number_text)


def _caption(data: ParetoFigure) -> str:
    return (
        "Ringed: the Pareto front, arms that no other arm beats in both cost and score, by their "
        "means; where intervals overlap the order is not settled. FLOPs are those of the training "
        f"passes, without sampling. {data.scores.caption} The score axis does not start at zero."
        + "".join(f" Not recorded: {what}." for what in data.unknown)
        + data.cast.left_out(data.shown)
    )


def _missing(sweep: Sweep, search: SearchSummary, data: ParetoFigure) -> str:
    unknown = "" if data.shown else "No arm with a score has its cost recorded."
    return no_score(sweep, data.scores) or unknown


def _lacks(sweep: Sweep) -> str:
    known = [column(sweep.runs, name).notna().any() for name in ("trainable_params", "train_flops")]
    if len(sweep.runs) and not any(known):
        return "records of trainable parameters or training FLOPs"
    return "" if len(sweep.plan["arms"]) > 1 else "two or more arms"


FIGURE = FigureSpec(
    name="pareto",
    title="Score against cost",
    order=80,
    data=pareto_figure,
    draw=draw_pareto,
    caption=_caption,
    missing=_missing,
    lacks=_lacks,
    height=lambda data: marks.height(data.cast, 2, 2 * len(data.settings)) + 0.8,
)
