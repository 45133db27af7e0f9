"""Numbers to axes. Every function draws one frozen data class and computes nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from analysis.estimates.optimum import Optimum
from analysis.estimates.stats import Estimate
from analysis.figures.data import (
    LearningCurve,
    LearningFigure,
    OptimumFigure,
    Point,
    RankFigure,
    RankPoint,
    RateCurve,
    RateFigure,
)
from analysis.figures.style import (
    BLACK,
    GREY,
    Look,
    legend,
    line_handle,
    looks,
    mark_handle,
    plain,
    rate_axis,
    title,
)
from analysis.reading.arms import Arm, count_text, rate_text

SCORE_LABEL = "held-out accuracy, sampled"
ASIDE = 0.025
"""Decades by which neighbouring arms step aside, so that none hides another."""
ASIDE_RANK = 0.16
"""Octaves by which runs, and arms of equal rank, step aside."""


def draw_rates(data: RateFigure, ax: Axes) -> None:
    """Score against learning rate: seeds, means with intervals, choice, plateau, base."""
    style = looks(data.arms)
    for i, curve in enumerate(data.curves):
        shift = 10 ** (ASIDE * (i - (len(data.curves) - 1) / 2))
        _draw_rate_curve(curve, ax, style[curve.arm.name], shift)
    _draw_base(data.base, ax)
    _draw_plateaus(data, ax, style)
    rate_axis(ax, "learning rate")
    ax.set_ylabel(SCORE_LABEL)
    counts = [mean.n for curve in data.curves for _, mean in curve.means]
    seeds = count_text(counts, "search seed")
    title(ax, "Score against learning rate", f"{data.subject}; {seeds} per point")
    legend(ax, _rate_legend(data, style))


def _draw_rate_curve(curve: RateCurve, ax: Axes, look: Look, shift: float) -> None:
    rates = [rate * shift for rate, _ in curve.means]
    means = [mean for _, mean in curve.means]
    ax.plot(rates, [m.point for m in means], color=look.colour, marker=look.marker, zorder=3)
    for rate, mean in zip(rates, means, strict=True):
        _draw_interval(ax, rate, mean, look.colour)
    _draw_runs(ax, curve.points, shift, look.colour)
    if curve.choice is not None:
        scores = [m.point for rate, m in curve.means if rate == curve.choice.learning_rate]
        final, edge = curve.choice.final, "white"
        ax.plot(
            [curve.choice.learning_rate * shift] * len(scores),
            scores,
            marker="*",
            markersize=15,
            linestyle="none",
            color=look.colour if final else "white",
            markeredgecolor=edge if final else look.colour,
            zorder=5,
        )


def _draw_runs(ax: Axes, points: Sequence[Point], aside: float, colour: str) -> None:
    """Single runs, dots or (diverged) crosses, at ``aside`` times their place."""
    alive, lost = ([p for p in points if p.diverged is gone] for gone in (False, True))
    dots = ([p.x * aside for p in alive], [p.score for p in alive])
    ax.plot(*dots, "o", markersize=3.5, color=colour, alpha=0.5, mew=0)
    crosses = ([p.x * aside for p in lost], [p.score for p in lost])
    ax.plot(*crosses, "x", markersize=7, color=colour, zorder=6)


def _draw_interval(ax: Axes, x: float, estimate: Estimate, colour: str) -> None:
    if estimate.interval is not None:
        ax.plot([x, x], list(estimate.interval), color=colour, linewidth=1.4, marker="_", zorder=2)


def _draw_plateaus(data: RateFigure, ax: Axes, style: dict[str, Look]) -> None:
    """Plateaus as thin bars in a strip below zero, LR* and its interval on them."""
    top = max((p.score for curve in data.curves for p in curve.points), default=1.0)
    row = 0.05 * max(top, 0.1)
    plateaus = [c for c in data.curves if c.plateau and math.isfinite(c.plateau.lr.point)]
    lowest = min((mean.low or 0 for c in data.curves for _, mean in c.means), default=0)
    ax.set_ylim(min(lowest, 0) - row * (len(plateaus) + 1), None)
    for i, curve in enumerate(plateaus):
        assert curve.plateau is not None
        y = min(lowest, 0) - row * (i + 0.8)
        _draw_plateau(curve.plateau, ax, y, style[curve.arm.name].colour)
        ax.plot([curve.plateau.lr.point], [y], marker="|", color="white", markersize=5)
    ax.axhline(0, color=GREY, linewidth=0.8)
    ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= ax.get_ylim()[1]])


def _draw_plateau(plateau: Optimum, ax: Axes, y: float, colour: str) -> None:
    ends = (plateau.ramp.point, plateau.cliff.point)
    ax.plot(ends, (y, y), color=colour, linewidth=1.2, solid_capstyle="butt")
    for end, flag, arrow in zip(ends, ("edge_low", "edge_high"), "<>", strict=True):
        shape = arrow if flag in plateau.flags else "|"
        ax.plot([end], [y], marker=shape, color=colour, markersize=6)
    if plateau.lr.interval is not None:
        ax.plot(plateau.lr.interval, (y, y), color=colour, linewidth=5, solid_capstyle="butt")


def _rate_legend(data: RateFigure, style: dict[str, Look]) -> list[Line2D]:
    names = [curve.arm.name for curve in data.curves]
    handles = [line_handle(n, color=style[n].colour, marker=style[n].marker) for n in names]
    chosen = [curve.choice for curve in data.curves if curve.choice]
    star, face = ("selected rate", GREY) if all(c.final for c in chosen) else ("best mean", "white")
    if any(c.so_far for c in chosen):
        star = "best mean so far"
    handles.append(mark_handle(star, "*", 11, markerfacecolor=face, markeredgecolor=GREY))
    points = [point for curve in data.curves for point in curve.points]
    estimates = [mean for curve in data.curves for _, mean in curve.means]
    handles += _run_handles(points, estimates, data.base)
    found = [curve.plateau for curve in data.curves if curve.plateau]
    plateaus = [plateau for plateau in found if math.isfinite(plateau.lr.point)]
    if plateaus:
        handles.append(line_handle("plateau", color=GREY, linewidth=1.2, marker="|"))
    if any(plateau.lr.interval for plateau in plateaus):
        handles.append(line_handle("LR*, 90 %", color=GREY, linewidth=5))
    return handles


def _run_handles(
    points: list[Point], estimates: list[Estimate], base: float | None
) -> list[Line2D]:
    handles = [mark_handle("one run", "o", 4)]
    if any(point.diverged for point in points):
        handles.append(mark_handle("diverged run", "x", 6))
    if any(estimate.interval for estimate in estimates):
        handles.append(mark_handle("90 % t interval", "|", 11))
    if base is not None:
        handles.append(line_handle("untrained model", color=GREY, linestyle="--", linewidth=1.2))
    return handles


def draw_ranks(data: RankFigure, ax: Axes) -> None:
    """Report-seed score against rank, FullFT as a black band."""
    style = looks(data.arms)
    ranks = sorted({float(row.arm.rank or 1) for row in data.lora})
    left = min(ranks, default=1.0) / 2
    for row in data.full:
        if row.estimate.interval is not None:
            ax.axhspan(*row.estimate.interval, color=BLACK, alpha=0.14, linewidth=0)
        ax.axhline(row.estimate.point, color=BLACK, linewidth=1)
        _draw_rank_point(row, ax, left, style[row.arm.name])
    for row in data.lora:
        mates = [other for other in data.lora if other.arm.rank == row.arm.rank]
        octaves = 2 * ASIDE_RANK * (mates.index(row) - (len(mates) - 1) / 2)
        _draw_rank_point(row, ax, (row.arm.rank or 1) * 2**octaves, style[row.arm.name])
    _draw_base(data.base, ax)
    _rank_axis(data, ax, left, ranks)
    ax.set_ylabel(SCORE_LABEL)
    rows = [*data.full, *data.lora]
    seeds = count_text([row.estimate.n for row in rows], "report seed")
    title(ax, "Score at each arm's selected learning rate", f"{data.subject}; {seeds} per arm")
    handles = [
        mark_handle(name, style[name].marker, 6, color=style[name].colour)
        for name in (row.arm.name for row in rows)
    ]
    points = [point for row in rows for point in row.points]
    handles += _run_handles(points, [row.estimate for row in rows], data.base)
    if any(row.estimate.interval for row in data.full):
        handles.append(line_handle("FullFT, 90 %", color="#dbdbdb", linewidth=7))
    legend(ax, handles)


def _rank_axis(data: RankFigure, ax: Axes, left: float, ranks: list[float]) -> None:
    ticks = [left, *ranks] if data.full else ranks
    labels = [f"{rank:g}" for rank in ranks]
    ax.set_xscale("log", base=2)
    ax.set_xticks(ticks, ["FullFT", *labels] if data.full else labels)
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlim(min(ticks) / 1.6, max(ticks) * 1.6)
    ax.set_xlabel("LoRA rank (log scale)")


def _draw_rank_point(row: RankPoint, ax: Axes, x: float, look: Look) -> None:
    _draw_interval(ax, x, row.estimate, look.colour)
    mean = ([x], [row.estimate.point])
    ax.plot(*mean, color=look.colour, marker=look.marker, markersize=6, zorder=3)
    runs = [replace(point, x=x) for point in row.points]
    _draw_runs(ax, runs, 2**ASIDE_RANK, look.colour)


def draw_learning(data: LearningFigure, ax: Axes) -> None:
    """Held-out accuracy against prompts seen: seeds thin, mean thick."""
    style = looks(data.arms)
    for curve in data.curves:
        _draw_learning_curve(curve, ax, style[curve.arm.name])
    ax.set_ylim(bottom=0)
    ax.set_xlabel("training prompts seen")
    ax.set_ylabel(SCORE_LABEL)
    seeds = count_text([len(curve.seeds) for curve in data.curves], f"{data.phase} seed")
    title(ax, "Learning curves at each arm's learning rate", f"{data.subject}; {seeds} per arm")
    handles = []
    for curve in data.curves:
        look = style[curve.arm.name]
        label = f"{curve.arm.name} at {rate_text(curve.learning_rate)}"
        handles.append(line_handle(label, color=look.colour, marker=look.marker))
    handles.append(line_handle("one run", color=GREY, linewidth=0.8))
    if any(seed.diverged for curve in data.curves for seed in curve.seeds):
        handles.append(mark_handle("diverged run", "x", 6))
    legend(ax, handles)


def _draw_learning_curve(curve: LearningCurve, ax: Axes, look: Look) -> None:
    for seed in curve.seeds:
        ax.plot(seed.prompts, seed.scores, color=look.colour, linewidth=0.8, alpha=0.5)
        if seed.diverged:
            last = (seed.prompts[-1:], seed.scores[-1:])
            ax.plot(*last, marker="x", color=look.colour, markersize=7, zorder=6)
    mean = (curve.prompts, curve.mean)
    ax.plot(*mean, color=look.colour, marker=look.marker, markersize=4, zorder=3)


def draw_optima(data: OptimumFigure, ax: Axes) -> None:
    """LR* by arm, with ten times FullFT's LR* and the window from 5 to 20 times."""
    style = looks([arm for arm, _ in data.rows])
    for y, (arm, found) in enumerate(data.rows):
        if found is not None and math.isfinite(found.lr.point):
            look = style[arm.name]
            _draw_plateau(found, ax, y, look.colour)
            middle = ([found.lr.point], [y])
            ax.plot(*middle, marker=look.marker, markersize=10, color=look.colour, mec="white")
    if data.ten_times is not None and data.window is not None:
        ax.axvspan(*data.window, color=GREY, alpha=0.15, linewidth=0)
        ax.axvline(data.ten_times, color=GREY, linestyle=":", linewidth=1.4, zorder=1)
    rate_axis(ax, "LR*, the middle of the plateau (learning rate)")
    ax.set_yticks(range(len(data.rows)), [_row_label(arm, found) for arm, found in data.rows])
    ax.set_ylim(len(data.rows) - 0.4, -0.6)
    seeds = count_text([found.lr.n for _, found in data.rows if found], "search seed")
    title(ax, "Best learning rate of each arm", f"{data.subject}; {seeds} per arm")
    handles = [mark_handle("LR*", "o", 6)]
    handles.append(line_handle("plateau", color=GREY, linewidth=1.2, marker="|"))
    if any(found and found.lr.interval for _, found in data.rows):
        handles.append(line_handle("LR*, 90 %", color=GREY, linewidth=5))
    if data.ten_times is not None:
        handles.append(line_handle("10 x FullFT", color=GREY, linestyle=":", linewidth=1.4))
        handles.append(line_handle("5 to 20 x FullFT", color="#dcdcdc", linewidth=7))
    legend(ax, handles)


def _row_label(arm: Arm, found: Optimum | None) -> str:
    if found is None:
        return plain(f"{arm.name}\n(search incomplete)")
    flags = [flag for flag in found.flags if flag in ("edge_low", "edge_high", "flat")]
    return plain(f"{arm.name}\n({', '.join(flags)})" if flags else arm.name)


def _draw_base(base: float | None, ax: Axes) -> None:
    if base is not None:
        ax.axhline(base, color=GREY, linestyle="--", linewidth=1.2, zorder=1)
