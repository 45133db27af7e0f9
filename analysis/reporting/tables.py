"""The arms of a sweep in numbers; :mod:`.table_frames` has them as CSV columns.

Scores and differences are shown as the sweep states them, also where lower is better.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.claims.comparison import Comparison, comparisons
from analysis.claims.difference import score_obstacle
from analysis.estimates.optimum import LrRatio, Optimum, lr_ratio
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import (
    MIN_SEEDS,
    Estimate,
    cross_fitted_mean,
    mean_interval,
    paired_difference,
)
from analysis.reading.arms import Arm, Choice, choice, reported, scored
from analysis.reading.sweep import Sweep
from analysis.reporting.cells import arms_by_subject, cell_rows, status_rows
from analysis.reporting.costs import Cost, arm_cost

__all__ = ["ArmRow", "arm_rows", "cell_rows", "status_rows"]

REPORTED = "report seeds"
ALL_DIVERGED = "report seeds, every run diverged"
CROSS_FITTED = "search seeds, cross-fitted"
NO_REPORT = "nothing: a search that only selects gives no score, only report seeds do"
BEST_OF = "best of {n} on the search seeds, optimistic"
BEST_OF_ONE = "best learning rate of a single seed, optimistic"
NOTHING_YET = "no complete phase yet"
HOLES = "no score: a seed lacks a score at some learning rate"


@dataclass(frozen=True)
class ArmRow:
    """One arm in numbers."""

    arm: Arm
    choice: Choice | None
    score: Estimate | None
    score_from: str
    """Which seeds the score comes from, in words."""
    base: Estimate | None
    """The untrained model on the prompts of the same runs."""
    gain: Estimate | None
    """Score minus base, by run."""
    difference: Estimate | None
    """Score minus that of the FullFT arm it is compared with, paired by report seed (t)."""
    difference_obstacle: str
    """Flag that forbids the difference; empty if none does."""
    greedy: Estimate | None
    optimum: Optimum | None
    ratio: LrRatio | None
    """Over the FullFT arm it is compared with."""
    ratio_obstacle: str
    """Flag that forbids the ratio; empty if none does."""
    flags: tuple[tuple[str, int], ...]
    """Flags of the arm's records and how many carry each."""
    cost: Cost


def arm_rows(sweep: Sweep, search: SearchSummary) -> list[ArmRow]:
    """One row per arm, those of one model and task together, FullFT first."""
    pairs = {pair.arm.name: pair for pair in comparisons(sweep)}
    runs = {str(name): rows for name, rows in sweep.runs.groupby("arm", sort=False)}
    none = sweep.runs.iloc[:0]
    return [
        _arm_row(sweep, search, arm, pairs.get(arm.name), runs.get(arm.name, none))
        for arm in arms_by_subject(sweep)
    ]


def _arm_row(
    sweep: Sweep, search: SearchSummary, arm: Arm, pair: Comparison | None, runs: pd.DataFrame
) -> ArmRow:
    report = reported(sweep, arm.name)
    searched = scored(runs, arm.name, "search")
    score, source = _score(sweep, report, search, arm)
    ratio_obstacle = pair.obstacle if pair else None
    difference_obstacle = score_obstacle(sweep, pair) if pair else None
    gained = report.assign(gain=report["score_final"] - report["score_base"])
    return ArmRow(
        arm=arm,
        choice=choice(sweep, arm.name),
        score=score,
        score_from=source,
        # The untrained model is evaluated once a seed, whatever learning rate follows.
        base=_mean(report if len(report) else searched, "score_base"),
        gain=_mean(gained, "gain"),
        difference=None if difference_obstacle else _difference(sweep, pair),
        difference_obstacle=difference_obstacle.flag if difference_obstacle else "",
        greedy=_mean(report, "score_greedy"),
        optimum=search.optima.get(arm.name),
        ratio=None if ratio_obstacle else _ratio(search, pair),
        ratio_obstacle=ratio_obstacle.flag if ratio_obstacle else "",
        flags=_flag_counts(runs),
        cost=arm_cost(sweep, arm, runs),
    )


def _score(
    sweep: Sweep, report: pd.DataFrame, search: SearchSummary, arm: Arm
) -> tuple[Estimate | None, str]:
    """The score over report seeds; without those, an honest one from the search seeds."""
    if len(report):
        all_diverged = (report["status"] == "diverged").all()
        return _mean(report, "score_final"), ALL_DIVERGED if all_diverged else REPORTED
    if sweep.selects_only:
        return None, NO_REPORT
    curve = search.curves.get(arm.name)
    if curve is None:
        return None, HOLES if sweep.complete else NOTHING_YET
    if curve.n_seeds >= MIN_SEEDS:
        return as_stated(sweep, cross_fitted_mean(curve.scores)), CROSS_FITTED
    n = curve.n_seeds
    best = Estimate(float(curve.means.max()), None, None, n)
    return as_stated(sweep, best), BEST_OF_ONE if n == 1 else BEST_OF.format(n=n)


def as_stated(sweep: Sweep, oriented: Estimate) -> Estimate:
    """An estimate from a curve, where higher is better, in the sweep's own direction."""
    if sweep.direction == "maximize":
        return oriented
    low, high = (None if x is None else -x for x in (oriented.high, oriented.low))
    return Estimate(-oriented.point, low, high, oriented.n, oriented.confidence)


def _mean(rows: pd.DataFrame, column: str) -> Estimate | None:
    """Mean over seeds; rows of one seed are not independent, and count as one."""
    values = rows.dropna(subset=column).groupby("seed")[column].mean()
    return mean_interval(values.to_numpy(dtype=float)) if len(values) else None


def _difference(sweep: Sweep, pair: Comparison | None) -> Estimate | None:
    if pair is None or pair.baseline is None:
        return None
    own, other = (
        reported(sweep, name).groupby("seed")["score_final"].mean() for name in pair.names
    )
    seeds = sorted(set(own.index) & set(other.index))
    if not seeds:
        return None
    return paired_difference(own[seeds].to_numpy(), other[seeds].to_numpy()).estimate()


def _ratio(search: SearchSummary, pair: Comparison | None) -> LrRatio | None:
    if pair is None or pair.baseline is None or not set(pair.names) <= set(search.curves):
        return None
    lora, full = (search.curves[name] for name in pair.names)
    return lr_ratio(lora, full, search.fraction_of(*pair.names))


def _flag_counts(runs: pd.DataFrame) -> tuple[tuple[str, int], ...]:
    lists: list[Any] = [flags for flags in runs["flags"] if isinstance(flags, list | tuple)]
    return tuple(sorted(Counter(str(flag) for flags in lists for flag in flags).items()))
