"""Learning curves: held-out score of every arm at the learning rate it goes by."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import Estimate, mean_interval
from analysis.figures import marks, scales
from analysis.figures.cast import Cast, cast
from analysis.figures.numbers import column
from analysis.figures.spec import FigureSpec
from analysis.figures.style import GREY, Look
from analysis.reading.arms import Arm, choice, rate_text, reported, scored
from analysis.reading.sweep import Sweep

PROMPTS, STEPS = "training prompts seen", "training steps"


@dataclass(frozen=True)
class SeedCurve:
    """Held-out score of one run against how far it had come."""

    run_id: str
    seed: int
    prompts: tuple[float, ...]
    scores: tuple[float, ...]
    diverged: bool
    worst: float
    """What the run counts with after its end, if it diverged."""


@dataclass(frozen=True)
class LearningCurve:
    """Held-out score of one arm at the learning rate it goes by."""

    arm: Arm
    learning_rate: float
    seeds: tuple[SeedCurve, ...]
    prompts: tuple[float, ...]
    means: tuple[Estimate, ...]
    """Over all seeds; from its end on, a diverged run counts with the worst score."""

    @property
    def mean(self) -> tuple[float, ...]:
        """Points of the means."""
        return tuple(mean.point for mean in self.means)


@dataclass(frozen=True)
class LearningFigure:
    """Learning curves of every arm."""

    cast: Cast
    phase: str
    """``report``, or ``search`` where no report run exists yet."""
    unit: str
    """What the curves are drawn against: prompts seen; steps where no batch size is known."""
    curves: tuple[LearningCurve, ...]

    @property
    def shown(self) -> list[str]:
        """Arms that have a curve."""
        return [curve.arm.name for curve in self.curves]

    @property
    def settings(self) -> tuple[str, ...]:
        """Titles of the panels."""
        return self.cast.settings_of(self.shown)


def learning_figure(sweep: Sweep, search: SearchSummary) -> LearningFigure:
    """Held-out score against prompts seen, at the learning rate each arm goes by."""
    found = cast(sweep)
    phase = "report" if (sweep.runs["phase"] == "report").any() else "search"
    rows = {m.arm.name: _rows(sweep, m.arm.name, phase) for m in found.members}
    wanted = [run for frame in rows.values() for run in frame["run_id"]]
    evaluations = evaluated(sweep, wanted)
    by_run = {str(run): frame for run, frame in evaluations.groupby("run_id")}
    curves = []
    for member in found.members:
        chosen = choice(sweep, member.arm.name)
        mine: Iterator[Any] = rows[member.arm.name].sort_values("seed").itertuples()
        seeds = tuple(seed_curve(row, by_run[row.run_id]) for row in mine if row.run_id in by_run)
        if chosen is not None and seeds:
            curves.append(_curve(member.arm, chosen.learning_rate, seeds))
    return LearningFigure(found, phase, unit(sweep), tuple(curves))


def _rows(sweep: Sweep, arm: str, phase: str) -> pd.DataFrame:
    if phase == "report":
        return reported(sweep, arm)
    rows, chosen = scored(sweep.runs, arm, phase), choice(sweep, arm)
    return rows[rows["learning_rate"] == (chosen.learning_rate if chosen else None)]


def unit(sweep: Sweep) -> str:
    """What learning curves are drawn against."""
    return PROMPTS if column(sweep.runs, "prompts_per_step").notna().any() else STEPS


def evaluated(sweep: Sweep, run_ids: Sequence[str], metric: str | None = None) -> pd.DataFrame:
    """Evaluations of some runs: ``run_id``, ``prompts`` (or steps, see :func:`unit`), ``value``.

    Args:
        sweep: The experiment.
        run_ids: Runs that are wanted.
        metric: Another one than the score's.
    """
    rows = sweep.metrics[sweep.metrics["metric"] == (metric or sweep.score_metric)]
    rows = rows[rows["run_id"].isin(set(run_ids))].sort_values(["run_id", "step"])
    size = column(sweep.runs, "prompts_per_step")
    if unit(sweep) == STEPS:
        size = size.fillna(1.0)
    sizes = dict(zip(sweep.runs["run_id"], size, strict=True))
    prompts = rows["step"].astype(float) * rows["run_id"].map(sizes).astype(float)
    return rows.assign(prompts=prompts)[["run_id", "prompts", "value"]].dropna()


def seed_curve(row: Any, evaluations: pd.DataFrame) -> SeedCurve:
    """The curve of one run.

    Args:
        row: Of the frame of runs.
        evaluations: From :func:`evaluated`, of this run.
    """
    prompts, scores = (tuple(evaluations[name].tolist()) for name in ("prompts", "value"))
    lost = row.status == "diverged"
    return SeedCurve(str(row.run_id), int(row.seed), prompts, scores, lost, float(row.score_final))


def _curve(arm: Arm, rate: float, seeds: tuple[SeedCurve, ...]) -> LearningCurve:
    prompts, means = mean_curve(seeds)
    return LearningCurve(arm, rate, seeds, prompts, means)


def mean_curve(
    seeds: Sequence[SeedCurve],
) -> tuple[tuple[float, ...], tuple[Estimate, ...]]:
    """Where all seeds have a value, their mean; over fewer seeds it would jump."""
    prompts: list[float] = []
    means: list[Estimate] = []
    for place in sorted({p for seed in seeds for p in seed.prompts}):
        values = [_score_at(seed, place) for seed in seeds]
        if not any(math.isnan(value) for value in values):
            prompts.append(place)
            means.append(mean_interval(values))
    return tuple(prompts), tuple(means)


def _score_at(curve: SeedCurve, prompts: float) -> float:
    if prompts in curve.prompts:
        return curve.scores[curve.prompts.index(prompts)]
    return curve.worst if curve.diverged and prompts > curve.prompts[-1] else math.nan


def draw_learning(data: LearningFigure, ax: Axes) -> None:
    """Held-out score against prompts seen: seeds thin, mean thick."""
    panels = marks.panels(ax, data.settings)
    for setting, panel in zip(data.settings, panels, strict=True):
        curves = [c for c in data.curves if data.cast.by_name[c.arm.name].setting() == setting]
        for curve in curves:
            _draw_curve(curve, panel, data.cast.looks[curve.arm.name])
        values = [s for c in curves for seed in c.seeds for s in seed.scores]
        lower = data.cast.lower_is_better
        panel.set_ylim(*scales.score_limits(values, lower_is_better=lower))
    marks.label(ax, data.unit, data.cast.score_label)
    ends = [curve.means[-1] for curve in data.curves if curve.means]
    seeds = marks.seeds_text(ends, f"{data.phase} seed", "arm")
    text = "Learning curves at each arm's learning rate"
    marks.title(ax, text, f"{data.cast.subject}; {seeds}")
    _legend(data, ax)


def _draw_curve(curve: LearningCurve, ax: Axes, look: Look) -> None:
    for seed in curve.seeds:
        ax.plot(seed.prompts, seed.scores, color=look.colour, linewidth=0.8, alpha=0.5)
        if seed.diverged:
            last = (seed.prompts[-1:], seed.scores[-1:])
            ax.plot(*last, marker="x", color=look.colour, markersize=7, zorder=6)
    every = max(1, len(curve.prompts) // 12)
    style: dict[str, Any] = {"marker": look.marker, "markersize": 4, "markevery": every}
    ax.plot(curve.prompts, curve.mean, color=look.colour, zorder=3, **style)
    stated = [(x, e.interval) for x, e in zip(curve.prompts, curve.means, strict=True)]
    shown = [(x, interval) for x, interval in stated if interval]
    if shown:
        lows, highs = zip(*(interval for _, interval in shown), strict=True)
        places = [x for x, _ in shown]
        ax.fill_between(places, lows, highs, color=look.colour, alpha=0.13, linewidth=0)


def _legend(data: LearningFigure, ax: Axes) -> None:
    names = [data.cast.by_name[curve.arm.name].series for curve in data.curves]
    handles = marks.series_handles(data.cast, names)
    if not marks.is_frame(ax):
        rates = {curve.arm.name: rate_text(curve.learning_rate) for curve in data.curves}
        for handle, curve in zip(handles, data.curves, strict=True):
            handle.set_label(marks.plain(f"{curve.arm.name} at {rates[curve.arm.name]}"))
    handles.append(marks.line_handle("one run", color=GREY, linewidth=0.8))
    if any(mean.interval for curve in data.curves for mean in curve.means):
        handles.append(marks.line_handle("90 % t interval", color="#dcdcdc", linewidth=7))
    if any(seed.diverged for curve in data.curves for seed in curve.seeds):
        handles.append(marks.mark_handle("diverged run", "x", 6))
    marks.legend(ax, handles)


def _caption(data: LearningFigure) -> str:
    text = (
        "Thick: mean over seeds with its 90 % t interval; a diverged run counts with the worst "
        "score from its end on. Thin: single runs."
    )
    if data.phase == "search":
        text += (
            " These are search seeds at the rate of best mean, the same seeds that chose it: an "
            "optimistic view."
        )
    return text + data.cast.unshown(data.shown, f"an evaluation of a scored {data.phase} run")


FIGURE = FigureSpec(
    name="learning_curves",
    title="Learning curves",
    order=30,
    data=learning_figure,
    draw=draw_learning,
    caption=_caption,
    missing=lambda sweep, search, data: (
        "" if data.curves else "No held-out evaluation of a scored run is stored."
    ),
    height=lambda data: marks.height(data.cast, extra=4, panels=len(data.settings)),
)
