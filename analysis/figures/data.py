"""The numbers behind every figure: frozen, typed, and drawn by :mod:`analysis.figures.draw`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.claims.learning_rate import HIGH, LOW
from analysis.estimates.optimum import Optimum
from analysis.estimates.stats import Estimate, mean_interval
from analysis.reading.arms import Arm, Choice, arms, base_score, choice, reported, scored, subject
from analysis.reading.sweep import Sweep

EVALUATION = "eval/accuracy"
"""Metric of the learning curves: held-out accuracy, sampled at training temperature."""
WORST_SCORE = 0.0
"""What a diverged run scores: no accuracy is lower."""


@dataclass(frozen=True)
class Point:
    """The score of one run."""

    x: float
    """Learning rate or rank."""
    seed: int
    score: float
    diverged: bool


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

    subject: str
    arms: tuple[Arm, ...]
    """Every arm of the sweep, drawn or not: they fix the colours."""
    curves: tuple[RateCurve, ...]
    base: float | None


@dataclass(frozen=True)
class RankPoint:
    """Report-seed score of one arm at its selected learning rate."""

    arm: Arm
    points: tuple[Point, ...]
    estimate: Estimate


@dataclass(frozen=True)
class RankFigure:
    """Report-seed score against rank, with FullFT beside it."""

    subject: str
    arms: tuple[Arm, ...]
    full: tuple[RankPoint, ...]
    lora: tuple[RankPoint, ...]
    base: float | None


@dataclass(frozen=True)
class SeedCurve:
    """Held-out accuracy of one run against prompts seen."""

    seed: int
    prompts: tuple[int, ...]
    scores: tuple[float, ...]
    diverged: bool


@dataclass(frozen=True)
class LearningCurve:
    """Held-out accuracy of one arm at the learning rate it goes by."""

    arm: Arm
    learning_rate: float
    seeds: tuple[SeedCurve, ...]
    prompts: tuple[int, ...]
    mean: tuple[float, ...]
    """Over all seeds; from its end on, a diverged run counts with the worst value."""


@dataclass(frozen=True)
class LearningFigure:
    """Learning curves of every arm."""

    subject: str
    arms: tuple[Arm, ...]
    phase: str
    """``report``, or ``search`` where no report run exists yet."""
    curves: tuple[LearningCurve, ...]


@dataclass(frozen=True)
class OptimumFigure:
    """LR* of every arm that has one, and ten times FullFT's."""

    subject: str
    rows: tuple[tuple[Arm, Optimum | None], ...]
    ten_times: float | None
    """Ten times LR* of the FullFT arm; None unless there is one, and its LR* has an interval."""
    window: tuple[float, float] | None
    """5 and 20 times it."""


def rate_figure(sweep: Sweep, optima: dict[str, Optimum]) -> RateFigure:
    """Held-out score against learning rate over the search seeds."""
    curves = []
    for arm in arms(sweep):
        rows = scored(sweep.runs, arm.name, "search")
        if len(rows):
            points = _points(rows, "learning_rate")
            chosen = choice(sweep, arm.name)
            curves.append(RateCurve(arm, points, _means(points), chosen, optima.get(arm.name)))
    return RateFigure(subject(sweep), arms(sweep), tuple(curves), base_score(sweep.runs, "search"))


def rank_figure(sweep: Sweep) -> RankFigure:
    """Score over the report seeds, at the selected learning rate, against rank."""
    full: list[RankPoint] = []
    lora: list[RankPoint] = []
    for arm in arms(sweep):
        points = _points(reported(sweep, arm.name), "lora_rank")
        if points:
            row = RankPoint(arm, points, mean_interval([p.score for p in points]))
            (full if arm.is_full else lora).append(row)
    return RankFigure(
        subject(sweep), arms(sweep), tuple(full), tuple(lora), base_score(sweep.runs, "report")
    )


def learning_figure(sweep: Sweep) -> LearningFigure:
    """Held-out accuracy against prompts seen, at the learning rate each arm goes by."""
    phase = "report" if (sweep.runs["phase"] == "report").any() else "search"
    evaluations = sweep.metrics[sweep.metrics["metric"] == EVALUATION]
    by_run = {str(run): rows for run, rows in evaluations.groupby("run_id")}
    curves = []
    for arm in arms(sweep):
        chosen = choice(sweep, arm.name)
        rows = reported(sweep, arm.name)
        if chosen is not None and phase == "search":
            rows = scored(sweep.runs, arm.name, phase)
            rows = rows[rows["learning_rate"] == chosen.learning_rate]
        seeds = tuple(_seed_curve(row, by_run[row.run_id]) for row in _rows(rows, by_run))
        if chosen is not None and seeds:
            curves.append(_learning_curve(arm, chosen.learning_rate, seeds))
    return LearningFigure(subject(sweep), arms(sweep), phase, tuple(curves))


def optimum_figure(sweep: Sweep, optima: dict[str, Optimum]) -> OptimumFigure:
    """LR* by arm and ten times FullFT's."""
    rows = tuple((arm, optima.get(arm.name)) for arm in arms(sweep))
    full = [found for arm, found in rows if arm.is_full]
    if len(full) != 1 or full[0] is None or full[0].lr.interval is None:
        return OptimumFigure(subject(sweep), rows, None, None)
    best = full[0].lr.point
    return OptimumFigure(subject(sweep), rows, 10 * best, (LOW * best, HIGH * best))


def _rows(rows: pd.DataFrame, by_run: dict[str, pd.DataFrame]) -> list[Any]:
    return [row for row in rows.sort_values("seed").itertuples() if row.run_id in by_run]


def _points(rows: pd.DataFrame, x: str) -> tuple[Point, ...]:
    ordered = rows.sort_values([x, "seed"])[[x, "seed", "score_final", "status"]]
    return tuple(
        Point(float(position), int(seed), float(score), status == "diverged")
        for position, seed, score, status in ordered.to_numpy().tolist()
    )


def _means(points: tuple[Point, ...]) -> tuple[tuple[float, Estimate], ...]:
    rates = sorted({point.x for point in points})
    return tuple(
        (rate, mean_interval([point.score for point in points if point.x == rate]))
        for rate in rates
    )


def _seed_curve(row: Any, evaluations: pd.DataFrame) -> SeedCurve:
    ordered = evaluations.sort_values("step")
    prompts = tuple(int(step) * int(row.prompts_per_step) for step in ordered["step"])
    scores = tuple(float(value) for value in ordered["value"])
    return SeedCurve(int(row.seed), prompts, scores, row.status == "diverged")


def _learning_curve(arm: Arm, rate: float, seeds: tuple[SeedCurve, ...]) -> LearningCurve:
    prompts: list[int] = []
    mean: list[float] = []
    for position in sorted({p for seed in seeds for p in seed.prompts}):
        values = [_score_at(seed, position) for seed in seeds]
        present = [value for value in values if value is not None]
        if len(present) == len(seeds):  # a mean over fewer seeds would jump
            prompts.append(position)
            mean.append(sum(present) / len(present))
    return LearningCurve(arm, rate, seeds, tuple(prompts), tuple(mean))


def _score_at(curve: SeedCurve, prompts: int) -> float | None:
    if prompts in curve.prompts:
        return curve.scores[curve.prompts.index(prompts)]
    return WORST_SCORE if curve.diverged and prompts > curve.prompts[-1] else None
