"""What a finished run of an arm costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.claims.costs import numbers
from analysis.reading.arms import Arm
from analysis.reading.sweep import Sweep

NUMBERS = (
    "trainable_params",
    "total_params",
    "train_flops",
    "rollout_flops",
    "wall_time_s",
    "peak_memory_bytes",
    "probes.evaluation_flops",
    "probes.weights_bytes",
)


@dataclass(frozen=True)
class Cost:
    """Over the runs of an arm that went to the end; None is what no run states."""

    trainable_params: int | None = None
    total_params: int | None = None
    train_flops: float | None = None
    """Median per run, analytic."""
    rollout_flops: float | None = None
    wall_time_s: float | None = None
    """Median over ``runs``."""
    wall_time_range_s: tuple[float, float] | None = None
    peak_memory_bytes: int | None = None
    """Largest."""
    evaluation_flops: float | None = None
    """Median per run, analytic: of held-out evaluations, which are no part of training."""
    weights_bytes: int | None = None
    """Largest: the adapter, or the whole model, as a run kept it on disk."""
    runs: int = 0

    @property
    def known(self) -> bool:
        """Whether there is anything to show."""
        return any(
            value is not None
            for value in (self.trainable_params, self.train_flops, self.wall_time_s)
        )


def arm_cost(sweep: Sweep, arm: Arm, runs: pd.DataFrame) -> Cost:
    """Cost of an arm.

    Args:
        sweep: The experiment.
        arm: Of the sweep.
        runs: The arm's rows of ``sweep.runs``.
    """
    done = runs[runs["status"] == "completed"]
    columns = {name: numbers(done, name).dropna() for name in NUMBERS}
    trainable = columns["trainable_params"]
    planned = sweep.plan["arms"][arm.name].get("trainable_params")
    wall = columns["wall_time_s"]
    return Cost(
        trainable_params=int(trainable.iloc[0]) if len(trainable) else planned,
        total_params=_largest(columns["total_params"]),
        train_flops=_median(columns["train_flops"]),
        rollout_flops=_median(columns["rollout_flops"]),
        wall_time_s=_median(wall),
        wall_time_range_s=(float(wall.min()), float(wall.max())) if len(wall) else None,
        peak_memory_bytes=_largest(columns["peak_memory_bytes"]),
        evaluation_flops=_median(columns["probes.evaluation_flops"]),
        weights_bytes=_largest(columns["probes.weights_bytes"]),
        runs=len(done),
    )


def _median(values: pd.Series[Any]) -> float | None:
    return float(values.median()) if len(values) else None


def _largest(values: pd.Series[Any]) -> int | None:
    return int(values.max()) if len(values) else None
