"""The tables of the report as typed rows; :mod:`.table_frames` has them as CSV columns."""

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
from analysis.reading.arms import Arm, Choice, arms, choice, reported, scored
from analysis.reading.sweep import Sweep
from study.records.record import RESULT_STATUSES

WAITING = ("given up", "missing")
STATUSES = (*RESULT_STATUSES, *WAITING)
REPORTED = "report seeds"
ALL_DIVERGED = "report seeds, every run diverged"
CROSS_FITTED = "search seeds, cross-fitted"
NO_REPORT = "nothing: a search that stops early gives no score, only report seeds do"
BEST_OF = "best of {n} on the search seeds, optimistic"


@dataclass(frozen=True)
class Cost:
    """What one finished run of an arm costs, over the runs that went to the end."""

    trainable_params: int | None
    total_params: int | None
    train_flops: float | None
    """Per run, analytic."""
    rollout_flops: float | None
    wall_time_s: float | None
    """Median over ``runs``."""
    wall_time_range_s: tuple[float, float] | None
    peak_memory_bytes: int | None
    runs: int


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


@dataclass(frozen=True)
class CellRow:
    """One arm at one learning rate, search seeds."""

    arm: Arm
    learning_rate: float
    score: Estimate | None
    statuses: tuple[tuple[str, int], ...]
    """Count by status, in the order of :data:`STATUSES`."""
    chosen: bool


@dataclass(frozen=True)
class StatusRow:
    """Planned runs of one arm and phase, by status."""

    arm: Arm
    phase: str
    statuses: tuple[tuple[str, int], ...]


def arm_rows(sweep: Sweep, search: SearchSummary) -> list[ArmRow]:
    """One row per arm, FullFT first."""
    pairs = {pair.lora.name: pair for pair in comparisons(sweep)}
    return [_arm_row(sweep, search, arm, pairs.get(arm.name)) for arm in arms(sweep)]


def _arm_row(sweep: Sweep, search: SearchSummary, arm: Arm, pair: Comparison | None) -> ArmRow:
    report = reported(sweep, arm.name)
    searched = scored(sweep.runs, arm.name, "search")
    score, source = _score(sweep, report, search, arm)
    ratio_obstacle = pair.obstacle if pair else None
    difference_obstacle = score_obstacle(sweep, pair) if pair else None
    return ArmRow(
        arm=arm,
        choice=choice(sweep, arm.name),
        score=score,
        score_from=source,
        # The untrained model is evaluated once a seed, whatever learning rate follows.
        base=_mean((report if len(report) else searched.drop_duplicates("seed"))["score_base"]),
        gain=_mean(report["score_final"] - report["score_base"]),
        difference=None if difference_obstacle else _difference(sweep, pair),
        difference_obstacle=difference_obstacle.flag if difference_obstacle else "",
        greedy=_mean(report["score_greedy"]),
        optimum=search.optima.get(arm.name),
        ratio=None if ratio_obstacle else _ratio(search, pair),
        ratio_obstacle=ratio_obstacle.flag if ratio_obstacle else "",
        flags=_flag_counts(sweep, arm),
        cost=_cost(sweep, arm),
    )


def _score(
    sweep: Sweep, report: pd.DataFrame, search: SearchSummary, arm: Arm
) -> tuple[Estimate | None, str]:
    """The score over report seeds; without those, an honest one from the search seeds."""
    if len(report):
        all_diverged = (report["status"] == "diverged").all()
        return _mean(report["score_final"]), ALL_DIVERGED if all_diverged else REPORTED
    if sweep.stops_early:
        return None, NO_REPORT
    curve = search.curves.get(arm.name)
    if curve is None:
        return None, "no complete phase yet"
    if curve.n_seeds >= MIN_SEEDS:
        return cross_fitted_mean(curve.scores), CROSS_FITTED
    n = curve.n_seeds
    return Estimate(float(curve.means.max()), None, None, n), BEST_OF.format(n=n)


def _mean(values: pd.Series[Any]) -> Estimate | None:
    present = values.dropna()
    return mean_interval(present.to_numpy(dtype=float)) if len(present) else None


def _difference(sweep: Sweep, pair: Comparison | None) -> Estimate | None:
    if pair is None or pair.full is None:
        return None
    own, other = (reported(sweep, name).set_index("seed")["score_final"] for name in pair.names)
    seeds = sorted(set(own.index) & set(other.index))
    if not seeds:
        return None
    return paired_difference(own[seeds].to_numpy(), other[seeds].to_numpy()).estimate()


def _ratio(search: SearchSummary, pair: Comparison | None) -> LrRatio | None:
    if pair is None or pair.full is None or not set(pair.names) <= set(search.curves):
        return None
    lora, full = (search.curves[name] for name in pair.names)
    return lr_ratio(lora, full, search.fraction)


def _flag_counts(sweep: Sweep, arm: Arm) -> tuple[tuple[str, int], ...]:
    lists = sweep.runs["flags"][sweep.runs["arm"] == arm.name]
    return tuple(sorted(Counter(str(flag) for flags in lists for flag in flags).items()))


def _cost(sweep: Sweep, arm: Arm) -> Cost:
    mine = sweep.runs[sweep.runs["arm"] == arm.name]
    done = mine[mine["status"] == "completed"]
    params = sweep.plan["arms"][arm.name].get("trainable_params")
    if done.empty:
        return Cost(params, None, None, None, None, None, None, 0)
    wall = done["wall_time_s"]
    return Cost(
        trainable_params=int(done["trainable_params"].iloc[0]),
        total_params=int(done["total_params"].iloc[0]),
        train_flops=float(done["train_flops"].median()),
        rollout_flops=float(done["rollout_flops"].median()),
        wall_time_s=float(wall.median()),
        wall_time_range_s=(float(wall.min()), float(wall.max())),
        peak_memory_bytes=int(done["peak_memory_bytes"].max()),
        runs=len(done),
    )


def cell_rows(sweep: Sweep) -> list[CellRow]:
    """One row per arm and learning rate of the search grid, missing runs counted."""
    rows = []
    search = sweep.planned[sweep.planned["phase"] == "search"]
    for arm in arms(sweep):
        chosen = choice(sweep, arm.name)
        results = scored(sweep.runs, arm.name, "search")
        planned = search[search["arm"] == arm.name]
        for rate in sorted(planned["learning_rate"].unique()):
            score = _mean(results["score_final"][results["learning_rate"] == rate])
            statuses = planned["status"][planned["learning_rate"] == rate]
            is_chosen = chosen is not None and chosen.learning_rate == rate
            rows.append(CellRow(arm, float(rate), score, _status_counts(statuses), is_chosen))
    return rows


def status_rows(sweep: Sweep) -> list[StatusRow]:
    """Planned runs by arm, phase and status."""
    rows = []
    for arm in arms(sweep):
        for phase in ("search", "report"):
            mine = (sweep.planned["arm"] == arm.name) & (sweep.planned["phase"] == phase)
            if mine.any():
                rows.append(StatusRow(arm, phase, _status_counts(sweep.planned["status"][mine])))
    return rows


def _status_counts(statuses: pd.Series[Any]) -> tuple[tuple[str, int], ...]:
    counts = Counter(str(status) for status in statuses)
    return tuple((status, counts[status]) for status in STATUSES)
