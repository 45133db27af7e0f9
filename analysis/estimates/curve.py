"""The search phase of one arm as a learning-rate curve."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame

from study.records.record import SCORED_STATUSES

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class LrCurve:
    """Scores of one arm over its learning-rate grid and its search seeds.

    Raises:
        ValueError: if the rates are not positive and ascending, the shapes disagree, or a score
            is missing.
    """

    arm: str
    learning_rates: tuple[float, ...]
    """Ascending."""
    scores: FloatArray
    """``[seeds, rates]``, higher is better; runs that diverged at the declared worst value."""
    seeds: tuple[int, ...]
    base: float | None
    """Score of the untrained model, on the same scale; None if it was never evaluated."""
    collapsed: BoolArray
    """``[seeds, rates]``: the run diverged. A run that merely forgot the task is seen by score."""

    def __post_init__(self) -> None:
        shape = (len(self.seeds), len(self.learning_rates))
        if min(shape) < 1 or self.scores.shape != shape or self.collapsed.shape != shape:
            raise ValueError(
                f"scores and collapsed of arm {self.arm} must have shape [seeds, rates] = {shape}, "
                f"got {self.scores.shape} and {self.collapsed.shape}"
            )
        if self.learning_rates[0] <= 0 or not np.all(np.diff(self.learning_rates) > 0):
            raise ValueError(
                f"learning rates of arm {self.arm} must be positive and ascending, "
                f"got {self.learning_rates}"
            )
        if not (np.isfinite(self.scores).all() and (self.base is None or isfinite(self.base))):
            raise ValueError(
                f"every score of arm {self.arm}, and its base, must be a finite number"
            )

    @property
    def n_seeds(self) -> int:
        """Search seeds."""
        return len(self.seeds)

    @property
    def positions(self) -> FloatArray:
        """The grid on the axis of all estimates: log10 of the learning rate, in decades."""
        return np.log10(np.asarray(self.learning_rates, dtype=np.float64))

    @property
    def means(self) -> FloatArray:
        """Mean score over seeds, ``[rates]``."""
        return np.asarray(self.scores.mean(axis=0), dtype=np.float64)


def learning_rate_curves(runs: DataFrame) -> dict[str, LrCurve]:
    """Gather the learning-rate curve of every arm whose search phase is complete.

    Runs of one cell and seed are averaged as one: they are not independent seeds. Under
    ``direction: minimize`` scores change sign, so that higher is better everywhere below.

    Args:
        runs: Rows of the tidy frame of runs: ``arm``, ``phase``, ``learning_rate``, ``seed``,
            ``status``, ``direction``, ``score_final``, ``score_base``. What counts as a result is
            the caller's choice; a row that is neither completed nor diverged leaves a hole.

    Returns:
        Curves by arm name. An arm with a hole in its seed x rate table is left out: a mean over
        different seeds is not a curve. An arm that never evaluated its untrained model has no base.
    """
    search = runs[runs["phase"] == "search"]
    curves = (_curve(str(name), rows) for name, rows in search.groupby("arm", sort=False))
    return {curve.arm: curve for curve in curves if curve is not None}


def _curve(arm: str, rows: DataFrame) -> LrCurve | None:
    seeds, rates = np.unique(rows["seed"]), np.unique(rows["learning_rate"])
    scored = rows[rows["status"].isin(SCORED_STATUSES)]
    cells = (
        np.searchsorted(seeds, scored["seed"]),
        np.searchsorted(rates, scored["learning_rate"]),
    )
    count = _sum(cells, np.ones(len(scored)), (len(seeds), len(rates)))
    total = _sum(cells, oriented_scores(scored, "score_final"), count.shape)
    base = oriented_scores(rows, "score_base")
    if not count.all() or np.isnan(total).any():
        return None
    diverged = np.where(scored["status"] == "diverged", 1.0, 0.0)
    return LrCurve(
        arm=arm,
        learning_rates=tuple(float(rate) for rate in rates),
        scores=total / count,
        seeds=tuple(int(seed) for seed in seeds),
        base=None if np.isnan(base).all() else float(np.nanmean(base)),
        collapsed=_sum(cells, diverged, count.shape) > 0,
    )


def _sum(
    cells: tuple[NDArray[np.intp], NDArray[np.intp]], values: FloatArray, shape: tuple[int, ...]
) -> FloatArray:
    """Add up the values that fall into each ``[seed, rate]`` cell."""
    table = np.zeros(shape)
    np.add.at(table, cells, values)
    return table


def oriented_scores(rows: DataFrame, column: str) -> FloatArray:
    """A score column as floats, negated where lower is better; NaN where there is no score."""
    sign = np.where(rows["direction"] == "minimize", -1.0, 1.0)
    values = rows[column].to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(sign * values, dtype=np.float64)
