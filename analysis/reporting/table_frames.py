"""The typed rows of the report's tables as frames, for the CSV files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from analysis.estimates.stats import Estimate
from analysis.reporting.cells import CellRow, Repeat, StatusRow
from analysis.reporting.ranks import RankRatio
from analysis.reporting.tables import ArmRow
from analysis.reporting.tasks import OverTasks

RATIO_COLUMNS = ["ratio", "ratio_low", "ratio_high", "ratio_n"]
RANK_COLUMNS = [
    *("group", "arm", "reference", "rank", "reference_rank"),
    *RATIO_COLUMNS,
    *("no_interval_because", "flags"),
]
REPEAT_COLUMNS = [
    *("arm", "phase", "learning_rate", "seed"),
    *("runs", "lowest", "highest", "spread"),
]


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
        "difference_not_compared": row.difference_obstacle,
        **_columns("greedy", row.greedy),
        "selected_learning_rate": row.choice.learning_rate if row.choice else None,
        "selected_at_edge": row.choice.edge if row.choice else None,
        "selection_final": row.choice.final if row.choice else None,
        **_columns("best_learning_rate", found.lr if found else None),
        **_columns("plateau_start", found.ramp if found else None),
        **_columns("plateau_end", found.cliff if found else None),
        **_columns("ratio_to_full", ratio.centre if ratio else None),
        "ratio_not_compared": row.ratio_obstacle,
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
        "evaluation_flops_median": row.cost.evaluation_flops,
        "weights_bytes_max": row.cost.weights_bytes,
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


def ranks_frame(rows: Sequence[RankRatio]) -> pd.DataFrame:
    """Ratios between arms that differ in rank alone, for ``tables/rank_ratios.csv``."""
    return pd.DataFrame(
        [
            {
                "group": row.group,
                "arm": row.arm.name,
                "reference": row.reference.name,
                "rank": row.arm.rank,
                "reference_rank": row.reference.rank,
                **_columns("ratio", row.ratio.centre if row.ratio else None),
                "no_interval_because": row.obstacle,
                "flags": " ".join(row.ratio.flags) if row.ratio else None,
            }
            for row in rows
        ],
        columns=RANK_COLUMNS,
    )


def tasks_frame(rows: Sequence[OverTasks]) -> pd.DataFrame:
    """Methods over several tasks, for ``tables/tasks.csv``."""
    return pd.DataFrame(
        {
            "arms": row.name,
            "tasks": row.tasks,
            **_columns("interquartile_mean", row.mean),
            **_columns("beats_full", row.improvement),
        }
        for row in rows
    )


def repeats_frame(rows: Sequence[Repeat]) -> pd.DataFrame:
    """Cells that were run more than once, for ``tables/repeats.csv``."""
    return pd.DataFrame(
        [
            {
                "arm": row.arm,
                "phase": row.phase,
                "learning_rate": row.learning_rate,
                "seed": row.seed,
                "runs": len(row.scores),
                "lowest": row.scores[0],
                "highest": row.scores[-1],
                "spread": row.spread,
            }
            for row in rows
        ],
        columns=REPEAT_COLUMNS,
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
