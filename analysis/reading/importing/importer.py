"""``python -m analysis import``: read, map, resolve, group, write; and say what was done."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.reading.arms import count_text
from analysis.reading.importing.directory import PLAN, write_imported
from analysis.reading.importing.grouping import Arms, group
from analysis.reading.importing.history import (
    History,
    read_history,
    score_metric,
    untrained_scores,
)
from analysis.reading.importing.listing import arms_line, left_lines, repeated_line
from analysis.reading.importing.mapping import Mapped, map_columns
from analysis.reading.importing.resolve import PLACED, Resolved, resolve
from analysis.reading.importing.tables import (
    excluded_frame,
    holes,
    only_value,
    plan_of,
    runs_frame,
)
from analysis.reading.plan_file import check_plan
from analysis.reading.sources import RawSweep, SourceOptions, read_source
from analysis.reading.sources.csv import csv_frame
from analysis.reading.sources.raw import file_sha256
from analysis.reading.sweep import DIRECTION, METRIC_COLUMNS
from study.config.laws import check_name

LOSSES = ("nll", "loss", "perplexity", "error", "ppl", "wer")
"""Parts of names of scores of which less is better, by custom."""


@dataclass(frozen=True, kw_only=True)
class ImportRequest:
    """What is to be imported, and how it is to be understood."""

    source: str
    """See :func:`analysis.reading.sources.read_source`."""
    out: Path
    """Directory to write; its name becomes the sweep's."""
    column_map: Mapping[str, str] = field(default_factory=dict)
    """Record column -> source column."""
    constants: Mapping[str, str] = field(default_factory=dict)
    """Record column -> value of all runs."""
    options: SourceOptions = field(default_factory=SourceOptions)
    history: Path | None = None
    """CSV file of measurements over steps."""
    history_map: Mapping[str, str] = field(default_factory=dict)
    """``run_id``, ``step`` and metrics -> columns of the history."""
    worst_score: float | None = None
    """Score of a run without a finite one; None: such runs are left out."""
    command: str = ""
    """The command line, to be kept with the sweep."""


def import_sweep(request: ImportRequest) -> list[str]:
    """Import a foreign sweep into an experiment directory.

    Returns:
        What was read and how it was understood, line by line.

    Raises:
        ValueError: if the source cannot be read, the map does not fit it, no row is a result, or
            something else is at ``request.out``.
    """
    check_name(request.out.name)
    raw, mapped, resolved = _rows(request)
    history = _history(request, raw, resolved.results)
    results, facts = _with_facts(resolved.results, mapped, history)
    placed, arms = _placed(results, resolved.left)
    counted, unfilled = placed.iloc[: len(results)], holes(placed, len(results))
    runs = runs_frame(counted, arms, request.out.name)
    excluded = excluded_frame(resolved.left, placed)
    lines = [
        *_read_lines(raw, mapped, runs),
        *facts,
        *history.notes,
        *left_lines(excluded, unfilled),
        *filter(None, [repeated_line(runs)]),
    ]
    planned = pd.concat([counted, unfilled], ignore_index=True)
    block = _import_block(request, raw, mapped, resolved, lines)
    plan = plan_of(request.out.name, planned, arms, str(runs["score_metric"].iloc[0]), block)
    check_plan(str(request.out / PLAN), plan)
    write_imported(request.out, plan, runs, history.metrics, excluded)
    return [*lines, f"report: python -m analysis report {request.out}"]


def _rows(request: ImportRequest) -> tuple[RawSweep, Mapped, Resolved]:
    if request.history is not None and not request.history_map:
        columns = ", ".join(map(str, csv_frame(request.history).columns))
        raise ValueError(
            "--history needs --history-map run_id=COLUMN,step=COLUMN,eval/accuracy=COLUMN; "
            f"{request.history} has {columns}"
        )
    if request.worst_score is not None and not math.isfinite(request.worst_score):
        raise ValueError(f"--worst-score must be a finite number, got {request.worst_score}")
    wants_history = bool(request.history_map) and request.history is None
    raw = read_source(request.source, replace(request.options, history=wants_history))
    mapped = map_columns(raw, request.column_map, request.constants)
    resolved = resolve(mapped.rows, mapped.problems, request.worst_score)
    if resolved.results.empty:
        reasons = "; ".join(dict.fromkeys(str(reason) for reason in resolved.left["reason"]))
        raise ValueError(f"no row of {raw.origin} is a result: {reasons}")
    return raw, mapped, resolved


def _read_lines(raw: RawSweep, mapped: Mapped, runs: pd.DataFrame) -> list[str]:
    return [
        f"read {count_text([len(raw.runs)], 'row')} of {raw.origin}",
        arms_line(runs),
        "columns: " + ", ".join(f"{k}={v}" for k, v in mapped.column_map.items()),
        *mapped.notes,
    ]


def _history(request: ImportRequest, raw: RawSweep, results: pd.DataFrame) -> History:
    run_ids = {str(run_id) for run_id in results["run_id"]}
    if request.history is not None:
        frame = csv_frame(request.history)
        return read_history(frame, request.history_map, str(request.history), run_ids)
    column_map = {**raw.history_map, **request.history_map}
    if raw.history is None:
        if request.history_map:
            raise ValueError(f"--history-map is read with --history FILE; {raw.origin} has none")
        return History(pd.DataFrame(columns=list(METRIC_COLUMNS)), [])
    if set(column_map) <= {"run_id", "step"}:
        return History(pd.DataFrame(columns=list(METRIC_COLUMNS)), [])
    return read_history(raw.history, column_map, f"the history of {raw.origin}", run_ids)


def _with_facts(
    results: pd.DataFrame, mapped: Mapped, history: History
) -> tuple[pd.DataFrame, list[str]]:
    """Results with direction, score metric and the untrained model's score; and what was found."""
    direction = only_value(results, "direction") or DIRECTION
    facts = [f"direction: {direction}"]
    if "direction" not in results:
        facts = ["direction: maximize, higher is better, since nothing says otherwise"]
        scored = mapped.column_map.get("score_final", "")
        if any(word in scored.lower() for word in LOSSES):
            facts = [f"{facts[0]}; {scored} sounds like a loss: if so, --set direction=minimize"]
    metric = only_value(results, "score_metric")
    metric = metric or score_metric(history.metrics, mapped.column_map.get("score_final", "score"))
    facts.append(f"score: {metric}")
    found = results.assign(direction=direction, score_metric=metric)
    if "score_base" in found and found["score_base"].notna().any():
        return found, facts
    source, base = untrained_scores(history.metrics, metric)
    if not base:
        why = "no history" if history.metrics.empty else "the history has no such metric at step 0"
        facts.append(f"score of the untrained model: none ({why}, no score_base)")
        return found, facts
    mean = sum(base.values()) / len(base)
    spread = f"{min(base.values()):g} to {max(base.values()):g} over {len(base)} runs"
    facts.append(f"score of the untrained model: {mean:.4g}, step 0 of {source} ({spread})")
    scores = [base.get(str(run_id)) for run_id in found["run_id"]]
    return found.assign(score_base=pd.Series(scores, found.index, dtype=object)), facts


def _placed(results: pd.DataFrame, left: pd.DataFrame) -> tuple[pd.DataFrame, Arms]:
    """Results, then the rows that were left out of a cell, each with its arm."""
    others = left[left["kind"].isin(PLACED)].drop(columns=["kind", "reason"])
    rows = pd.concat([results, others], ignore_index=True)
    rows = rows.astype(object).where(rows.notna(), None)
    arms = group(rows)
    return rows.assign(arm=arms.names), arms


def _import_block(
    request: ImportRequest, raw: RawSweep, mapped: Mapped, resolved: Resolved, lines: list[str]
) -> dict[str, Any]:
    """Where the sweep came from and how it was understood, for ``plan.json``."""
    history = request.history
    return {
        "source": raw.origin,
        "sha256": raw.sha256,
        "column_map": mapped.column_map,
        "constants": dict(request.constants),
        "history": None if history is None else str(history),
        "history_sha256": None if history is None else file_sha256(history),
        "history_map": dict(request.history_map),
        "worst_score": request.worst_score,
        "command": request.command,
        "rows": len(raw.runs),
        "results": len(resolved.results),
        "left_out": len(resolved.left),
        "resolved": lines,
    }
