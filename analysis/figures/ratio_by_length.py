"""How many times FullFT's best learning rate LoRA wants, had training ended earlier (C4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from analysis.claims.comparison import comparisons, lacks_baseline
from analysis.estimates.curve import LrCurve
from analysis.estimates.length import curves_by_step
from analysis.estimates.optimum import lr_ratio
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import Estimate
from analysis.figures import marks, scales
from analysis.figures.cast import Cast, cast
from analysis.figures.learning import PROMPTS, unit
from analysis.figures.numbers import column, no_optimum, not_judged
from analysis.figures.spec import FigureSpec
from analysis.figures.style import GREY
from analysis.reading.arms import Arm
from analysis.reading.sweep import Sweep

MOST, LEAST, MARKS = 10, 4, 40
"""Lengths that are drawn, spread evenly over the log of the length: of one arm, of many arms, and
about as many as make so many marks in all."""
ASIDE = 0.012
"""Decades by which arms step aside."""


@dataclass(frozen=True)
class LengthCurve:
    """The ratio of one LoRA arm to its FullFT against the length of training."""

    arm: Arm
    lengths: tuple[float, ...]
    """Prompts (or steps) at which there is a ratio."""
    ratios: tuple[Estimate, ...]


@dataclass(frozen=True)
class LengthFigure:
    """Ratios of every LoRA arm."""

    cast: Cast
    unit: str
    curves: tuple[LengthCurve, ...]
    not_judged: str
    """Why no claim may be judged on a pair, for the caption; empty as a rule."""

    @property
    def settings(self) -> tuple[str, ...]:
        """Titles of the panels."""
        return self.cast.settings_of(curve.arm.name for curve in self.curves)


def length_figure(sweep: Sweep, search: SearchSummary) -> LengthFigure:
    """LR* ratio by training length over the search seeds."""
    found = cast(sweep)
    pairs = [c for c in comparisons(sweep) if c.baseline is not None]
    pairs = [c for c in pairs if set(c.names) <= set(search.curves)]
    by_step = curves_by_step(sweep) if pairs else {}
    steps = spread(sorted(by_step), lengths(len(pairs)))
    curves = {step: by_step[step] for step in steps}
    rows = [_curve(sweep, c.arm, c.names, curves, search.fraction_of(*c.names)) for c in pairs]
    return LengthFigure(
        found, unit(sweep), tuple(row for row in rows if row.lengths), not_judged(pairs)
    )


def lengths(arms: int) -> int:
    """How many lengths are drawn of so many arms."""
    return max(LEAST, min(MOST, MARKS // max(1, arms)))


def spread(steps: Sequence[int], most: int) -> list[int]:
    """At most so many of ascending steps, the first and the last among them."""
    if len(steps) <= most:
        return list(steps)
    wanted = np.geomspace(steps[0], steps[-1], most)
    return sorted({min(steps, key=lambda step: abs(math.log(step / w))) for w in wanted})


def _curve(
    sweep: Sweep,
    arm: Arm,
    names: tuple[str, ...],
    curves: dict[int, dict[str, LrCurve]],
    fraction: float,
) -> LengthCurve:
    size = 1.0
    if unit(sweep) == PROMPTS:
        size = float(column(sweep.runs[sweep.runs["arm"] == arm.name], "prompts_per_step").mean())
    rows = []
    for step, at_step in curves.items():
        if set(names) <= set(at_step):
            ratio = lr_ratio(at_step[names[0]], at_step[names[1]], fraction).centre
            if math.isfinite(ratio.point):
                rows.append((step * size, ratio))
    return LengthCurve(arm, tuple(x for x, _ in rows), tuple(ratio for _, ratio in rows))


def draw_ratio_by_length(data: LengthFigure, ax: Axes) -> None:
    """Ratio against training length, with 5, 10 and 20 for orientation."""
    panels = marks.panels(ax, data.settings)
    for setting, panel in zip(data.settings, panels, strict=True):
        marks.draw_ten(panel)
        curves = [c for c in data.curves if data.cast.by_name[c.arm.name].setting() == setting]
        for i, curve in enumerate(curves):
            look = data.cast.looks[curve.arm.name]
            aside = 10 ** (ASIDE * (i - (len(curves) - 1) / 2))
            places = [x * aside for x in curve.lengths]
            points = [ratio.point for ratio in curve.ratios]
            panel.plot(places, points, color=look.colour, marker=look.marker, zorder=3)
            marks.draw_intervals(panel, places, curve.ratios, look.colour)
        scales.log_axis(panel.xaxis, scales.number_text)
        scales.log_axis(panel.yaxis, scales.number_text)
    marks.label(ax, f"{data.unit} (log scale)", "LR*(LoRA) / LR*(FullFT), log scale")
    estimates = [ratio for curve in data.curves for ratio in curve.ratios]
    seeds = marks.seeds_text(estimates, "search seed", "point")
    marks.title(ax, "Learning-rate ratio against training length", f"{data.cast.subject}; {seeds}")
    names = [data.cast.by_name[curve.arm.name].series for curve in data.curves]
    handles = marks.series_handles(data.cast, names)
    if any(ratio.interval for ratio in estimates):
        handles.append(marks.mark_handle("90 % interval", "|", 11))
    handles.append(marks.line_handle("10 times", color=GREY, linestyle=":", linewidth=1.4))
    handles.append(marks.line_handle("5 to 20 times", color="#dcdcdc", linewidth=7))
    marks.legend(ax, handles)


def _caption(data: LengthFigure) -> str:
    return (
        "Each point is the ratio of best learning rates had training ended there: runs are scored "
        "by their evaluations up to then, diverged ones at the worst score from their end on. "
        "Points of one arm share their runs, so their intervals are not independent. Lengths at "
        "which a plateau is not inside its grid have no ratio."
        + data.cast.left_out(curve.arm.name for curve in data.curves)
        + data.not_judged
    )


def _missing(sweep: Sweep, search: SearchSummary, data: LengthFigure) -> str:
    if sweep.selects_only:
        return no_optimum(sweep, search)
    if data.curves:
        return ""
    pairs = [set(c.names) for c in comparisons(sweep) if c.baseline is not None]
    if not any(names <= set(search.curves) for names in pairs):
        return "No LoRA arm and its FullFT arm both have a score for every search run."
    return "At no evaluation do a LoRA arm and its FullFT arm both have a plateau inside the grid."


FIGURE = FigureSpec(
    name="ratio_by_length",
    title="Learning-rate ratio against training length",
    order=60,
    data=length_figure,
    draw=draw_ratio_by_length,
    caption=_caption,
    missing=_missing,
    lacks=lacks_baseline,
    height=lambda data: marks.height(data.cast, extra=3, panels=len(data.settings)),
)
