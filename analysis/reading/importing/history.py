"""Measurements over steps of a foreign sweep -> the tidy frame of metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.reading.importing.columns import check_columns
from analysis.reading.sweep import METRIC_COLUMNS, SCORE_METRIC

KEYS = ("run_id", "step")


@dataclass(frozen=True)
class History:
    """Measurements of a foreign sweep."""

    metrics: pd.DataFrame
    """``run_id, step, metric, value``, ascending in step within a run and metric."""
    notes: list[str]
    """What was left out, a sentence each."""


def read_history(
    frame: pd.DataFrame, column_map: Mapping[str, str], place: str, run_ids: set[str]
) -> History:
    """Turn a wide table (one row a run and step) into tidy measurements.

    Args:
        frame: The table; cells as their source has them.
        column_map: ``run_id``, ``step`` and metrics (``eval/accuracy``) -> its columns.
        place: What to call it in a message.
        run_ids: Runs that count; measurements of others are left out.

    Raises:
        ValueError: if a column is not there, or run_id, step or any metric is not mapped.
    """
    absent = [key for key in KEYS if key not in column_map]
    metrics = [name for name in column_map if name not in KEYS]
    if absent or not metrics:
        lacks = " and ".join([*absent, *([] if metrics else ["a metric"])])
        raise ValueError(
            f"--history-map needs run_id, step and at least one metric, as in eval/accuracy=COLUMN;"
            f" it lacks {lacks}. {place} has {', '.join(map(str, frame.columns))}"
        )
    check_columns(column_map, frame, place, "--history-map")
    ids = frame[column_map["run_id"]].astype(str)
    steps = pd.to_numeric(frame[column_map["step"]], errors="coerce")
    whole = steps.notna() & (steps % 1 == 0)
    known = ids.isin(run_ids)
    tidy = [
        _one_metric(ids, steps, frame[column_map[name]], name, known & whole) for name in metrics
    ]
    notes = [
        f"{count} {what}"
        for count, what in (
            (int((~known).sum()), "history rows of runs that are not there, left out"),
            (int((known & ~whole).sum()), "history rows whose step is no whole number, left out"),
        )
        if count
    ]
    return History(pd.concat(tidy, ignore_index=True), notes)


def _one_metric(
    ids: pd.Series[str],
    steps: pd.Series[float],
    cells: pd.Series[Any],
    name: str,
    usable: pd.Series[bool],
) -> pd.DataFrame:
    values = pd.to_numeric(cells, errors="coerce")
    keep = usable & values.notna()
    frame = pd.DataFrame(
        {
            "run_id": ids[keep],
            "step": steps[keep].astype("int64"),
            "metric": name,
            "value": values[keep].astype(float),
        },
        columns=list(METRIC_COLUMNS),
    )
    return frame.sort_values(["run_id", "step"], kind="stable")


def score_metric(history: pd.DataFrame, score_column: str) -> str:
    """The metric that scores are made of: the evaluation of the history, else the score's column.

    ``eval/accuracy`` if it is there, else the only metric called ``eval/...``, else the score's
    column if the history has a metric of that name, else the only one measured before training.
    """
    names = [str(name) for name in history["metric"].unique()]
    evaluations = [name for name in names if name.startswith("eval/")]
    if SCORE_METRIC in evaluations:
        return SCORE_METRIC
    at_start = [str(name) for name in history["metric"][history["step"] == 0].unique()]
    if not evaluations and score_column not in names:
        evaluations = at_start
    return evaluations[0] if len(evaluations) == 1 else score_column


def untrained_scores(history: pd.DataFrame, metric: str) -> tuple[str, dict[str, float]]:
    """What each run scored before training: the score's metric at step 0.

    The metric is called as the score, or ``eval/`` before that, or ``eval/accuracy``; else it is
    the only one that was measured at step 0.

    Returns:
        The metric's name, empty if there is none, and its value by run id.
    """
    at_start = history[history["step"] == 0]
    names = [str(name) for name in at_start["metric"].unique()]
    wanted = [name for name in (metric, f"eval/{metric}", SCORE_METRIC) if name in names]
    if not wanted and len(names) != 1:
        return "", {}
    name = wanted[0] if wanted else names[0]
    values = at_start[at_start["metric"] == name].groupby("run_id")["value"].mean()
    return name, {str(run_id): float(value) for run_id, value in values.items()}
