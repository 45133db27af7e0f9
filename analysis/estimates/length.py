"""How LR* and its ratio move with the length of the training.

A run evaluated on the way is, under a constant learning rate, a run that ended there: its score at
a step is the mean of the last evaluations up to it. Under a schedule with a horizon that is not so,
and the curves say what a run had reached, not what a shorter one would.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from analysis.estimates.curve import FloatArray, LrCurve, learning_rate_curves
from analysis.estimates.grid_terms import LENGTH_SLOPE
from analysis.estimates.optimum import EDGES, UNSTATED
from analysis.estimates.plateau import Plateau, find_plateau
from analysis.estimates.stats import Contrast, welch_difference
from analysis.reading.sweep import Sweep
from study.records.record import SCORED_STATUSES

MIN_STEPS = 3
"""Fewer lengths give no slope: two points lie on a line whatever the truth."""


def curves_by_step(sweep: Sweep) -> dict[int, dict[str, LrCurve]]:
    """Learning-rate curves as they were when training had reached each evaluation step.

    The steps are those after the first at which every scored search run that got so far was
    evaluated. A run scores the mean of its last ``final_window`` evaluations up to the step, the
    untrained model's apart. A run that diverged before scores the declared worst value; one that
    diverges later does not yet.

    Args:
        sweep: Its search phase is read.

    Returns:
        Curves by step and arm; an arm with a run that was over before without diverging is left
        out.
    """
    runs, scores = _trajectories(sweep)
    return {step: _curves(runs, scores, step) for step in _steps(runs, scores)}


def _curves(runs: pd.DataFrame, scores: pd.DataFrame, step: int) -> dict[str, LrCurve]:
    over = runs["steps_done"].astype(float) < step
    alive = runs["status"].isin(SCORED_STATUSES) & ~(over & (runs["status"] == "diverged"))
    reached = scores.loc[:, :step].ffill(axis=1)[step].reindex(runs["run_id"]).to_numpy()
    reached = np.where(over, np.nan, reached)  # arms of larger batches take fewer steps
    return learning_rate_curves(
        runs.assign(
            score_final=np.where(alive, reached, runs["score_final"].astype(float)),
            status=np.where(alive, "completed", runs["status"]),
        )
    )


def _steps(runs: pd.DataFrame, scores: pd.DataFrame) -> list[int]:
    done = runs.set_index("run_id")["steps_done"].astype(float).reindex(scores.index).to_numpy()
    steps = scores.columns.to_numpy(dtype=np.float64)
    missing = scores.isna().to_numpy(dtype=np.bool_) & (done[:, None] >= steps)
    return [int(step) for step in steps[~missing.any(axis=0)]]


def _trajectories(sweep: Sweep) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The search runs, and ``[run_id, step]`` means of the last ``final_window`` evaluations.

    NaN where a run was not evaluated; steps at which none was are no columns.
    """
    runs = sweep.grid_runs[sweep.grid_runs["phase"] == "search"]
    scored = runs[runs["status"].isin(SCORED_STATUSES)]
    metrics = sweep.metrics
    mine = (metrics["metric"] == sweep.score_metric) & metrics["run_id"].isin(scored["run_id"])
    mine &= metrics["step"] > 0
    values = metrics[mine].astype({"value": float})
    scores = values.groupby(["run_id", "step"])["value"].mean()  # sorted by run and step
    window = scored.set_index("run_id")["final_window"].astype(float).fillna(1.0)
    by_run = scores.groupby(level="run_id")
    total, count = by_run.cumsum(), by_run.cumcount() + 1
    widths = window.reindex(scores.index.get_level_values("run_id")).to_numpy()
    before = pd.Series(0.0, index=scores.index)
    for width in window.unique():
        own = widths == width
        before[own] = total.groupby(level="run_id").shift(int(width)).fillna(0.0)[own]
    means: pd.Series = (total - before) / np.minimum(count, widths)
    return runs, means.unstack("step").reindex(scored["run_id"])


def ratio_slope(
    arm: Mapping[int, LrCurve], baseline: Mapping[int, LrCurve], fraction: float
) -> Contrast | None:
    """Slope of the log ratio on log10 of the training length, in decades per decade.

    Lengths share their runs, so each seed gives one slope of its midpoints and the arms are
    compared by Welch's t; the point is the slope of the mean curves' midpoints.

    Args:
        arm: Curves by step.
        baseline: Likewise.
        fraction: Of the plateau.

    Returns:
        The slope, negative if the ratio falls as training goes on; None with fewer than three
        steps at which both arms have a plateau inside their grids.
    """
    both = sorted(set(arm) & set(baseline))
    found = {step: (find_plateau(arm[step], fraction), find_plateau(baseline[step], fraction))
             for step in both}  # fmt: skip
    clear = [step for step in both if _is_clear(*found[step])]
    if len(clear) < MIN_STEPS:
        return None
    x = np.log10(clear)
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    first, second = ([found[step][side] for step in clear] for side in (0, 1))
    spread = welch_difference(_seed_slopes(first, weights), _seed_slopes(second, weights))
    point = sum(
        w * (a.mean.centre - b.mean.centre) for w, a, b in zip(weights, first, second, strict=True)
    )
    h = max(first[-1].spacing, second[-1].spacing)
    return replace(spread, point=float(point), grid_term=LENGTH_SLOPE * h / float(np.ptp(x)))


def _is_clear(*plateaus: Plateau) -> bool:
    blurred = (UNSTATED | EDGES) - {"few_seeds"}
    return all(blurred.isdisjoint(plateau.flags) for plateau in plateaus)


def _seed_slopes(plateaus: list[Plateau], weights: FloatArray) -> FloatArray:
    centres = np.stack([plateau.centres for plateau in plateaus])
    return np.asarray(weights @ centres, dtype=np.float64)
