"""The tables of the report as typed rows; what is printed and what is written as CSV are these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from analysis.arms import Arm, Choice, arms, choice, scored
from analysis.claims.comparison import comparisons
from analysis.figure_data import SearchSummary
from analysis.load import Sweep
from analysis.optimum import LrRatio, Optimum, lr_ratio
from analysis.stats import Estimate, cross_fitted_mean, mean_interval, paired_difference
from study.records.record import RESULT_STATUSES

WAITING = ("given up", "missing")
STATUSES = (*RESULT_STATUSES, *WAITING)
REPORTED = "report seeds"
ALL_DIVERGED = "report seeds, every run diverged"
CROSS_FITTED = "search seeds, cross-fitted"
BEST_OF_SEED = "best of the grid on one search seed, optimistic"


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
    greedy: Estimate | None
    optimum: Optimum | None
    ratio: LrRatio | None
    """Over the FullFT arm it is compared with."""
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
    baselines = {pair.lora.name: pair.full for pair in comparisons(sweep)}
    return [_arm_row(sweep, search, arm, baselines.get(arm.name)) for arm in arms(sweep)]


def _arm_row(sweep: Sweep, search: SearchSummary, arm: Arm, full: Arm | None) -> ArmRow:
    reported = scored(sweep.runs, arm.name, "report")
    searched = scored(sweep.runs, arm.name, "search")
    score, source = _score(reported, search, arm)
    return ArmRow(
        arm=arm,
        choice=choice(sweep, arm.name),
        score=score,
        score_from=source,
        # The untrained model is evaluated once a seed, whatever learning rate follows.
        base=_mean((reported if len(reported) else searched.drop_duplicates("seed"))["score_base"]),
        gain=_mean(reported["score_final"] - reported["score_base"]),
        difference=_difference(sweep, arm, full),
        greedy=_mean(reported["score_greedy"]),
        optimum=search.optima.get(arm.name),
        ratio=_ratio(search, arm, full),
        flags=_flag_counts(sweep, arm),
        cost=_cost(sweep, arm),
    )


def _score(reported: pd.DataFrame, search: SearchSummary, arm: Arm) -> tuple[Estimate | None, str]:
    """The score over report seeds; without those, an honest one from the search seeds."""
    if len(reported):
        all_diverged = (reported["status"] == "diverged").all()
        return _mean_score(reported), ALL_DIVERGED if all_diverged else REPORTED
    curve = search.curves.get(arm.name)
    if curve is None:
        return None, "no complete phase yet"
    if curve.n_seeds > 1:
        return cross_fitted_mean(curve.scores), CROSS_FITTED
    return Estimate(float(curve.scores.max()), None, None, 1), BEST_OF_SEED


def _mean_score(rows: pd.DataFrame) -> Estimate | None:
    score = _mean(rows["score_final"])
    if score is not None and (rows["status"] == "diverged").all():
        return replace(score, low=None, high=None)  # equal worst values are no sign of precision
    return score


def _mean(values: pd.Series[Any]) -> Estimate | None:
    present = values.dropna()
    return mean_interval(present.to_numpy(dtype=float)) if len(present) else None


def _difference(sweep: Sweep, arm: Arm, full: Arm | None) -> Estimate | None:
    if full is None:
        return None
    own, other = (
        scored(sweep.runs, name, "report").set_index("seed")["score_final"]
        for name in (arm.name, full.name)
    )
    seeds = sorted(set(own.index) & set(other.index))
    if not seeds:
        return None
    return paired_difference(own[seeds].to_numpy(), other[seeds].to_numpy()).estimate()


def _ratio(search: SearchSummary, arm: Arm, full: Arm | None) -> LrRatio | None:
    if full is None or not {arm.name, full.name} <= set(search.curves):
        return None
    return lr_ratio(search.curves[arm.name], search.curves[full.name], search.fraction)


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
            score = _mean_score(results[results["learning_rate"] == rate])
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


def arms_frame(rows: Sequence[ArmRow]) -> pd.DataFrame:
    """The arms as columns of numbers, for ``tables/arms.csv``."""
    return pd.DataFrame([_arm_columns(row) for row in rows])


def _arm_columns(row: ArmRow) -> dict[str, Any]:
    found, ratio = row.optimum, row.ratio
    return {
        "arm": row.arm.name,
        "method": row.arm.method,
        "rank": row.arm.rank,
        **_columns("score", row.score),
        "score_from": row.score_from,
        **_columns("base", row.base),
        **_columns("gain", row.gain),
        **_columns("difference_to_full", row.difference),
        **_columns("greedy", row.greedy),
        "selected_learning_rate": row.choice.learning_rate if row.choice else None,
        "selected_at_edge": row.choice.edge if row.choice else None,
        "selection_final": row.choice.final if row.choice else None,
        **_columns("best_learning_rate", found.lr if found else None),
        **_columns("plateau_start", found.ramp if found else None),
        **_columns("plateau_end", found.cliff if found else None),
        **_columns("ratio_to_full", ratio.centre if ratio else None),
        **_columns("ramp_ratio_to_full", ratio.ramp if ratio else None),
        **_columns("cliff_ratio_to_full", ratio.cliff if ratio else None),
        "optimum_flags": " ".join(found.flags) if found else None,
        "record_flags": " ".join(f"{flag}:{count}" for flag, count in row.flags),
        "trainable_params": row.cost.trainable_params,
        "total_params": row.cost.total_params,
        "train_flops_median": row.cost.train_flops,
        "rollout_flops_median": row.cost.rollout_flops,
        "wall_time_s_median": row.cost.wall_time_s,
        "peak_memory_bytes_max": row.cost.peak_memory_bytes,
        "cost_runs": row.cost.runs,
    }


def cells_frame(rows: Sequence[CellRow]) -> pd.DataFrame:
    """The learning-rate grid, for ``tables/learning_rates.csv``."""
    return pd.DataFrame(
        {
            "arm": row.arm.name,
            "learning_rate": row.learning_rate,
            **_columns("score", row.score),
            **dict(row.statuses),
            "selected": row.chosen,
        }
        for row in rows
    )


def statuses_frame(rows: Sequence[StatusRow]) -> pd.DataFrame:
    """Counts by status, for ``tables/statuses.csv``."""
    return pd.DataFrame(
        {"arm": row.arm.name, "phase": row.phase, **dict(row.statuses)} for row in rows
    )


def _columns(name: str, estimate: Estimate | None) -> dict[str, Any]:
    if estimate is None:
        return dict.fromkeys((name, f"{name}_low", f"{name}_high", f"{name}_n"))
    return {
        name: estimate.point,
        f"{name}_low": estimate.low,
        f"{name}_high": estimate.high,
        f"{name}_n": estimate.n,
    }
