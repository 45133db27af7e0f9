"""Numbers that several figures show: runs, the score of an arm, ratios of best learning rates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import pandas as pd

from analysis.claims.comparison import Comparison
from analysis.claims.facts import parameters
from analysis.estimates.optimum import Optimum
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import MIN_SEEDS, Estimate, cross_fitted_mean, mean_interval
from analysis.reading.arms import Arm, arms, choice, reported, same_rate, scored
from analysis.reading.sweep import Sweep

NO_SCORES = (
    "No run of the report phase has a score yet: an arm's report runs start when all its search "
    "runs have a record."
)


@dataclass(frozen=True)
class Point:
    """The score of one run."""

    x: float
    """Learning rate, rank or whatever the figure is drawn against."""
    seed: int
    score: float
    diverged: bool


@dataclass(frozen=True)
class ArmScore:
    """The score of one arm at the learning rate it goes by."""

    arm: Arm
    learning_rate: float
    points: tuple[Point, ...]
    """Its runs; ``x`` is the learning rate."""
    estimate: Estimate
    trainable_params: float
    """NaN where records do not tell."""
    train_flops: float
    """Of a run, averaged over its seeds; NaN where records do not tell."""


@dataclass(frozen=True)
class ArmScores:
    """The scores of the arms, all from one kind of seeds."""

    phase: str
    """``report``, or ``search`` where the sweep has no report phase."""
    cross_fitted: bool
    """Of search seeds: each is scored at the rate that the others chose."""
    rows: tuple[ArmScore, ...]

    @property
    def note(self) -> str:
        """What a subtitle must say of the seeds; empty for report seeds."""
        if self.phase == "report":
            return ""
        return ", cross-fitted" if self.cross_fitted else ", best of the rates"

    @property
    def caption(self) -> str:
        """Whose scores they are, in sentences."""
        if self.phase == "report":
            return "Fresh report seeds at the learning rate that the search seeds selected."
        if self.cross_fitted:
            return (
                "There is no report phase: the same seeds select the learning rate and score it, "
                "cross-fitted (each seed is scored at the rate that the others chose, and the "
                "interval is widened)."
            )
        return (
            "There is no report phase: the same seeds select the learning rate and score it, an "
            "optimistic view."
        )

    def of(self, name: str) -> ArmScore | None:
        """The score of an arm, if it has one."""
        return next((row for row in self.rows if row.arm.name == name), None)


def arm_scores(sweep: Sweep, search: SearchSummary) -> ArmScores:
    """Scores over report seeds; where a sweep has no report phase, over its search seeds.

    With three search seeds or more the score is cross-fitted, which needs a search without
    holes; with fewer it is that of the best rate, without an interval.
    """
    declared = (sweep.experiment.get("seeds") or {}).get("report")
    if declared or (sweep.runs["phase"] == "report").any():
        found = [_row(sweep, arm, reported(sweep, arm.name), None) for arm in arms(sweep)]
        return ArmScores("report", False, tuple(row for row in found if row is not None))
    enough = any(curve.n_seeds >= MIN_SEEDS for curve in search.curves.values())
    rows = []
    for arm in arms(sweep):
        curve = search.curves.get(arm.name)
        if enough and (curve is None or curve.n_seeds < MIN_SEEDS):
            continue
        estimate = None
        if enough and curve is not None:
            estimate = cross_fitted_mean(curve.scores)
            if sweep.direction == "minimize":
                estimate = negated(estimate)
        rows.append(_row(sweep, arm, _at_choice(sweep, arm.name), estimate))
    return ArmScores("search", enough, tuple(row for row in rows if row is not None))


def negated(estimate: Estimate) -> Estimate:
    """An estimate of an oriented score in natural units."""
    low, high = estimate.interval or (None, None)
    flipped = (None, None) if low is None or high is None else (-high, -low)
    return replace(estimate, point=-estimate.point, low=flipped[0], high=flipped[1])


def points(rows: pd.DataFrame, x: str) -> tuple[Point, ...]:
    """The runs of a frame in the order of ``x`` and seed."""
    ordered = rows.sort_values([x, "seed"])
    diverged = (ordered["status"] == "diverged").tolist()
    columns = (ordered[name].tolist() for name in (x, "seed", "score_final"))
    return tuple(
        Point(float(position), int(seed), float(score), gone)
        for position, seed, score, gone in zip(*columns, diverged, strict=True)
    )


def seed_means(runs: Sequence[Point]) -> list[float]:
    """One score for each seed: several runs of one rate and seed are not independent."""
    by_seed: dict[int, list[float]] = {}
    for point in runs:
        by_seed.setdefault(point.seed, []).append(point.score)
    return [fmean(scores) for scores in by_seed.values()]


def column(rows: pd.DataFrame, name: str) -> pd.Series[float]:
    """A column of numbers; NaN where the frame lacks it or an entry."""
    if name not in rows:
        return pd.Series(math.nan, index=rows.index, dtype=float)
    return pd.to_numeric(rows[name], errors="coerce").astype(float)


def _row(sweep: Sweep, arm: Arm, rows: pd.DataFrame, estimate: Estimate | None) -> ArmScore | None:
    chosen = choice(sweep, arm.name)
    if chosen is None or not len(rows):
        return None
    found = points(rows, "learning_rate")
    params = parameters(sweep, arm)
    return ArmScore(
        arm,
        chosen.learning_rate,
        found,
        estimate or mean_interval(seed_means(found)),
        math.nan if params is None else params,
        float(column(rows, "train_flops").mean()),
    )


def _at_choice(sweep: Sweep, arm: str) -> pd.DataFrame:
    rows = scored(sweep.runs, arm, "search")
    chosen = choice(sweep, arm)
    keep = [chosen is not None and same_rate(x, chosen.learning_rate) for x in rows.learning_rate]
    return rows[pd.Series(keep, index=rows.index, dtype=bool)]


def not_judged(pairs: Iterable[Comparison]) -> str:
    """A sentence or two for a caption where no claim may be judged on a pair that is drawn."""
    reasons = dict.fromkeys(pair.obstacle.reason for pair in pairs if pair.obstacle)
    return f" No claim is judged on it as it stands: {' '.join(reasons)}" if reasons else ""


def is_bound(flags: Sequence[str]) -> bool:
    """Whether a best learning rate is only a bound: the plateau reaches an end of the grid."""
    return "edge_low" in flags or "edge_high" in flags


def no_curves(sweep: Sweep) -> str:
    """Why a search that only selects has no learning-rate curve, the beginning of a sentence."""
    if sweep.is_joint:
        return "Arms were tried at learning rates of a joint search"
    return "Poor learning rates were stopped early"


def no_optimum(sweep: Sweep, search: SearchSummary) -> str:
    """Why no arm of a sweep has a best learning rate; empty if one has."""
    if sweep.selects_only:
        return f"{no_curves(sweep)}, so no best learning rate is estimated."
    if not search.optima:
        return "No arm has a score for every search run, so no best learning rate is estimated."
    if not any(math.isfinite(found.lr.point) for found in search.optima.values()):
        return "No arm's score rises far enough above the untrained model to have a best rate."
    return ""


def no_score(sweep: Sweep, scores: ArmScores) -> str:
    """Why no arm of a sweep has a score; empty if one has."""
    if scores.rows:
        return ""
    if scores.phase == "report":
        return NO_SCORES
    return "No arm has a scored run, or its search has holes, so there is no score to draw."


def located(optima: Iterable[Optimum | None]) -> str:
    """What LR* is in these arms, in a sentence: it depends on whether a base is known."""
    flags = [flag for found in optima if found for flag in found.flags]
    if "parabola" in flags:
        return (
            "LR* is the vertex of a parabola through the best learning rate and its neighbours, on "
            "the log axis, since the untrained model was never evaluated."
        )
    return "LR* is the middle of an arm's plateau, on the log axis."
