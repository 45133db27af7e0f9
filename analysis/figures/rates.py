"""Score against learning rate, an arm a line: the U-shape that everything else rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from analysis.estimates.optimum import Optimum
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import Estimate, mean_interval
from analysis.figures import marks, scales
from analysis.figures.cast import Cast, cast
from analysis.figures.numbers import Point, no_curves, points, seed_means
from analysis.figures.spec import FigureSpec
from analysis.figures.style import GREY, Look
from analysis.reading.arms import Arm, Choice, base_score, choice, same_rate, scored
from analysis.reading.sweep import Sweep

ASIDE = 0.025
"""Decades by which neighbouring arms step aside, so that none hides another."""
OUTLINE = "#f5f5f5"
"""Of the star on a selected rate."""
BEYOND = "2"
"""Mark of a run above the axis."""
STRIP, MAX_STRIP = 0.032, 0.27
"""Height of a plateau's row in the strip below the curves, and of all of them, in parts of the
axes."""


@dataclass(frozen=True)
class RateCurve:
    """Score against learning rate: one arm, search seeds only."""

    arm: Arm
    points: tuple[Point, ...]
    means: tuple[tuple[float, Estimate], ...]
    """Learning rate and mean over its seeds, ascending."""
    choice: Choice | None
    plateau: Optimum | None
    """None while the arm's search has holes."""


@dataclass(frozen=True)
class RateFigure:
    """Score against learning rate for every arm."""

    cast: Cast
    curves: tuple[RateCurve, ...]
    bases: tuple[tuple[str, float], ...]
    """Score of the untrained model by setting, where it was evaluated."""

    def base(self, setting: str) -> float | None:
        """Score of the untrained model in one setting."""
        return dict(self.bases).get(setting)

    @property
    def shown(self) -> list[str]:
        """Arms that have a curve."""
        return [curve.arm.name for curve in self.curves]

    @property
    def settings(self) -> tuple[str, ...]:
        """Titles of the panels."""
        return self.cast.settings_of(self.shown)


def rate_figure(sweep: Sweep, search: SearchSummary) -> RateFigure:
    """Score against learning rate over the search seeds."""
    found = cast(sweep)
    curves = []
    for member in found.members:
        rows = scored(sweep.runs, member.arm.name, "search")
        if len(rows):
            runs = points(rows, "learning_rate")
            chosen = choice(sweep, member.arm.name)
            plateau = search.optima.get(member.arm.name)
            curves.append(RateCurve(member.arm, runs, _means(runs), chosen, plateau))
    return RateFigure(found, tuple(curves), bases(sweep, found, "search"))


def bases(sweep: Sweep, found: Cast, phase: str) -> tuple[tuple[str, float], ...]:
    """Mean score of the untrained model by setting, on the prompts of a phase."""
    rows = []
    for setting in found.settings:
        names = [m.arm.name for m in found.members if m.setting() == setting]
        base = base_score(sweep.runs[sweep.runs["arm"].isin(names)], phase)
        if base is not None:
            rows.append((setting, base))
    return tuple(rows)


def _means(runs: Sequence[Point]) -> tuple[tuple[float, Estimate], ...]:
    by_rate: dict[float, list[Point]] = {}
    for point in runs:
        by_rate.setdefault(point.x, []).append(point)
    return tuple((rate, mean_interval(seed_means(by_rate[rate]))) for rate in sorted(by_rate))


def draw_rates(data: RateFigure, ax: Axes) -> None:
    """Score against learning rate: seeds, means with intervals, choice, plateau, base."""
    panels = marks.panels(ax, data.settings)
    for setting, panel in zip(data.settings, panels, strict=True):
        names = {m.arm.name for m in data.cast.members if m.setting() == setting}
        curves = [curve for curve in data.curves if curve.arm.name in names]
        _draw_panel(data, panel, curves, data.base(setting))
    marks.label(ax, "learning rate", data.cast.score_label)
    estimates = [mean for curve in data.curves for _, mean in curve.means]
    seeds = marks.seeds_text(estimates, "search seed", "point")
    marks.title(ax, "Score against learning rate", f"{data.cast.subject}; {seeds}")
    marks.legend(ax, _handles(data))


def _draw_panel(
    data: RateFigure, ax: Axes, curves: Sequence[RateCurve], base: float | None
) -> None:
    values = [p.score for curve in curves for p in curve.points]
    low, high = scales.score_limits(
        values + ([] if base is None else [base]), lower_is_better=data.cast.lower_is_better
    )
    for i, curve in enumerate(curves):
        _draw_curve(data, ax, curve, 10 ** (ASIDE * (i - (len(curves) - 1) / 2)), (low, high))
    marks.draw_base(ax, base)
    scales.log_axis(ax.xaxis)
    _draw_plateaus(data, ax, curves, low, high)


def _draw_curve(
    data: RateFigure, ax: Axes, curve: RateCurve, aside: float, ends: tuple[float, float]
) -> None:
    look = data.cast.looks[curve.arm.name]
    rates = [rate * aside for rate, _ in curve.means]
    means = [mean for _, mean in curve.means]
    ax.plot(rates, [m.point for m in means], color=look.colour, marker=look.marker, zorder=3)
    marks.draw_intervals(ax, rates, means, look.colour, within=ends)
    marks.draw_runs(ax, curve.points, aside, look)
    high = ends[1]
    beyond = [p.x * aside for p in curve.points if not p.score <= high]
    if beyond:
        ax.plot(beyond, [high] * len(beyond), BEYOND, color=look.colour, clip_on=False, zorder=6)
    chosen = curve.choice
    if chosen is None:
        return
    star = [mean.point for rate, mean in curve.means if same_rate(rate, chosen.learning_rate)]
    face, edge = (look.colour, OUTLINE) if chosen.final else ("white", look.colour)
    size = 14 if len(data.cast.settings) == 1 else 10
    style: dict[str, Any] = {"marker": "*", "markersize": size, "linestyle": "none", "zorder": 5}
    style["markeredgewidth"] = 1.5 if chosen.final else 1.0
    place = [chosen.learning_rate * aside] * len(star)
    ax.plot(place, star, markerfacecolor=face, markeredgecolor=edge, **style)


def _draw_plateaus(
    data: RateFigure, ax: Axes, curves: Sequence[RateCurve], low: float, high: float
) -> None:
    """Plateaus as thin bars in a strip below the curves, LR* and its interval on them."""
    found = [curve for curve in curves if _has_plateau(curve)]
    row = min(STRIP, MAX_STRIP / max(1, len(found)))
    share = row * (len(found) + 0.6)
    bottom = low - share / (1 - share) * (high - low)
    ax.set_ylim(bottom, high)
    for i, curve in enumerate(found):
        assert curve.plateau is not None
        colour = data.cast.looks[curve.arm.name].colour
        y = low - (i + 0.8) * row / (1 - share) * (high - low)
        draw_plateau(ax, curve.plateau, y, colour)
        tick = "white" if curve.plateau.lr.interval else colour
        ax.plot([curve.plateau.lr.point], [y], marker="|", color=tick, markersize=5)
    ax.axhline(low, color=GREY, linewidth=0.8)
    ax.set_yticks([tick for tick in ax.get_yticks() if low <= tick <= high])


def _has_plateau(curve: RateCurve) -> bool:
    return curve.plateau is not None and math.isfinite(curve.plateau.lr.point)


def draw_plateau(ax: Axes, plateau: Optimum, y: float, colour: str) -> None:
    """A plateau as a thin bar with LR*'s interval, thick, on it; arrows for open ends.

    The vertex of a parabola, where the untrained model was never scored, has no plateau.
    """
    ends = (plateau.ramp.point, plateau.cliff.point)
    ax.plot(ends, (y, y), color=colour, linewidth=1.2, solid_capstyle="butt")
    for end, flag, arrow in zip(ends, ("edge_low", "edge_high"), "<>", strict=True):
        shape = arrow if flag in plateau.flags else "|"
        ax.plot([end], [y], marker=shape, color=colour, markersize=6)
    if math.isnan(plateau.ramp.point):
        look = Look(colour, "|")
        marks.draw_bounds(ax, plateau.lr.point, y, plateau.flags, look, upright=False)
    if plateau.lr.interval is not None:
        ax.plot(plateau.lr.interval, (y, y), color=colour, linewidth=5, solid_capstyle="butt")


def _handles(data: RateFigure) -> list[Line2D]:
    names = [data.cast.by_name[curve.arm.name].series for curve in data.curves]
    handles = marks.series_handles(data.cast, names)
    chosen = [curve.choice for curve in data.curves if curve.choice]
    star, face = ("selected rate", GREY) if all(c.final for c in chosen) else ("best mean", "white")
    if any(c.so_far for c in chosen):
        star = "best mean so far"
    handles.append(marks.mark_handle(star, "*", 11, markerfacecolor=face, markeredgecolor=GREY))
    runs = [point for curve in data.curves for point in curve.points]
    estimates = [mean for curve in data.curves for _, mean in curve.means]
    base = any(data.base(setting) is not None for setting in data.settings)
    handles += marks.run_handles(runs, estimates, base)
    if data.cast.lower_is_better:
        handles.append(marks.mark_handle("above the axis", BEYOND, 6))
    return handles + plateau_handles([curve.plateau for curve in data.curves])


def plateau_handles(plateaus: Sequence[Optimum | None]) -> list[Line2D]:
    """Legend entries of plateaus and the intervals of LR*, as far as drawn."""
    found = [p for p in plateaus if p is not None and math.isfinite(p.lr.point)]
    handles = []
    if any(math.isfinite(plateau.ramp.point) for plateau in found):
        handles.append(marks.line_handle("plateau", color=GREY, linewidth=1.2, marker="|"))
    if any(plateau.lr.interval for plateau in found):
        handles.append(marks.line_handle("LR*, 90 %", color=GREY, linewidth=5))
    return handles


def _caption(data: RateFigure) -> str:
    text = (
        "Each line is an arm's mean over its search seeds, each dot one run. Arms stand a little "
        "aside of each other so that none hides another; diverged runs stay in at the worst "
        "score; intervals end where the axis does. Bars below: the plateau of each arm and, "
        "thick, the 90 % interval of its best learning rate (LR*)."
    )
    if data.cast.lower_is_better:
        text += " Runs above the axis are marked at its upper end."
    return text + data.cast.unshown(data.shown, "a scored search run")


def _missing(sweep: Sweep, search: SearchSummary, data: RateFigure) -> str:
    if sweep.selects_only:
        return (
            f"{no_curves(sweep)}, so there is no curve; the table of every learning rate counts "
            "the runs."
        )
    return "" if data.curves else "No run of the search phase has a score yet."


FIGURE = FigureSpec(
    name="learning_rates",
    title="Score against learning rate",
    order=10,
    data=rate_figure,
    draw=draw_rates,
    caption=_caption,
    missing=_missing,
    height=lambda data: marks.height(data.cast, panels=len(data.settings)),
)
