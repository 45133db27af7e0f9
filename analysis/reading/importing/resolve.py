"""Which rows of a foreign sweep are results. One rule for each kind of row, in this order:

* ``unreadable value``: a mapped cell is not of the column's type. Left out: it says nothing.
* ``not comparable``: no learning rate above 0, a method other than full fine-tuning or LoRA, a rank
  below 1, a phase other than search and report. Left out: it has no place in a curve.
* ``unknown status``: the status is no word that is known here. Left out: it may be no result.
* ``unfinished``: the status says that the run goes on, failed or was stopped by hand, or it did
  fewer steps than planned without a status. Left out; failed runs are not results.
* ``retry``: a run id comes several times among the finished rows. The last one counts, the earlier
  ones are left out; they would count twice. A run id that names different cells is an error.
* no finite score: a run that diverged, or ended without a score, counts as diverged at the worst
  score if one was declared (``--worst-score``); otherwise it is left out as ``no score``. Rows of
  status ``no_signal`` and ``pruned`` are kept and have no score, as in our own sweeps.

Rows of one arm, phase, learning rate and seed under different run ids are all kept: the curve
averages them as one, and the listing states their spread. A cell whose rows were all left out
though they have a place is a hole: it stays in the plan without a result, since a curve without the
rates at which runs failed would flatter its arm.

Learning rates keep six significant digits, as in the identity of our own runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from study.records.record import RESULT_STATUSES

COMPLETED = "completed complete finished done success succeeded ok"
DIVERGED = "diverged nan"
UNFINISHED = (
    "running waiting pending queued scheduled fail failed failure crashed crash error killed oom "
    "stalled preempted preempting cancelled canceled aborted timeout interrupted unfinished"
)
STATUSES = {
    **dict.fromkeys(COMPLETED.split(), "completed"),
    **dict.fromkeys(DIVERGED.split(), "diverged"),
    **dict.fromkeys(UNFINISHED.split(), "unfinished"),
    **{status: status for status in RESULT_STATUSES},
}
"""What a status of a source means, in lower case."""
METHODS = {
    **dict.fromkeys(("full", "fullft", "fft", "fullfinetuning", "fullfinetune"), "full"),
    "lora": "lora",
}
"""Words for the two methods, without case and punctuation."""
PHASES = ("search", "report")
OF_LORA = ("lora_rank", "lora_alpha", "alpha_rule", "target_modules")
"""Columns that say nothing of full fine-tuning, whatever they hold."""
PLACED = ("unknown status", "unfinished", "no score")
"""Kinds of rows that are left out of a cell that the grid has."""


@dataclass(frozen=True)
class Left:
    """A row that is no result."""

    kind: str
    reason: str


@dataclass(frozen=True)
class Resolved:
    """Rows of a source, parted."""

    results: pd.DataFrame
    """The rows that count."""
    left: pd.DataFrame
    """The others, with ``kind`` and ``reason``."""


def method_of(word: str) -> str | None:
    """``full`` or ``lora``; None if the word means neither."""
    return METHODS.get("".join(c for c in word.lower() if c.isalnum()))


def resolve(rows: pd.DataFrame, problems: list[str], worst_score: float | None) -> Resolved:
    """Part the rows of a source into results and rows that are left out.

    Args:
        rows: Mapped columns, one row a run; ``status`` in the source's own words.
        problems: What is unreadable in each row, empty if nothing is.
        worst_score: What a run without a finite score counts with; None: it is left out.
    """
    kept: list[dict[str, Any]] = []
    left: list[dict[str, Any]] = []
    for cells, problem in zip(rows.to_dict("records"), problems, strict=True):
        named: dict[str, Any] = {str(key): value for key, value in cells.items()}
        found = Left("unreadable value", problem) if problem else _first_problem(named)
        if found is None:
            found = _score(named, worst_score)
        if found is None:
            kept.append(named)
        else:
            left.append({**named, "kind": found.kind, "reason": found.reason})
    last = {row["run_id"]: row for row in kept}
    for row in kept:
        _check_one_cell(row, last[row["run_id"]])
        if row is not last[row["run_id"]]:
            reason = "an earlier row of a run id that comes again further down"
            left.append({**row, "kind": "retry", "reason": reason})
    results = [row for row in kept if row is last[row["run_id"]]]
    columns = [*rows.columns]
    return Resolved(
        pd.DataFrame(results, columns=columns, dtype=object),
        pd.DataFrame(left, columns=[*columns, "kind", "reason"], dtype=object),
    )


def _check_one_cell(row: dict[str, Any], other: dict[str, Any]) -> None:
    for key in ("method", "lora_rank", "phase", "learning_rate", "seed"):
        if row[key] != other[key]:
            raise ValueError(
                f"run_id must name one run, {row['run_id']!r} has {key}={row[key]!r} and "
                f"{other[key]!r}: map run_id to another column, or to none"
            )


def _first_problem(row: dict[str, Any]) -> Left | None:
    rules: tuple[Callable[[dict[str, Any]], Left | None], ...] = (_place, _status)
    return next((found for rule in rules if (found := rule(row)) is not None), None)


def _status(row: dict[str, Any]) -> Left | None:
    word = row["status"]
    if word is None:
        done, planned = row.get("steps_done"), row.get("steps_planned")
        if done is not None and planned is not None and done < planned:
            return Left("unfinished", f"{done} of {planned} steps done")
        row["status"] = "completed"
        return None
    status = STATUSES.get(str(word).strip().lower())
    if status is None:
        return Left("unknown status", f"status {word!r} is no word for a result or a failure")
    if status == "unfinished":
        return Left("unfinished", f"status {word!r}")
    row["status"] = status
    return None


def _place(row: dict[str, Any]) -> Left | None:
    rate, rank, method = row["learning_rate"], row["lora_rank"], row["method"]
    problem = ""
    if rate is None or not (math.isfinite(rate) and rate > 0):
        problem = f"learning_rate > 0 must hold, got {_shown(rate)}"
    elif method is None or method_of(method) is None:
        problem = f"method must be full or lora, got {_shown(method)}"
    elif rank is not None and method_of(method) == "lora" and rank < 1:
        problem = f"lora_rank >= 1 must hold, got {rank}"
    elif row["phase"] not in PHASES:
        problem = f"phase must be search or report, got {_shown(row['phase'])}"
    elif row["seed"] is None:
        problem = "it names no seed"
    elif row["run_id"] is None:
        problem = "it names no run id"
    elif "arm" in row and row["arm"] is None:
        problem = "it names no arm"
    if problem:
        return Left("not comparable", problem)
    row["method"] = method_of(method)
    row["learning_rate"] = float(f"{rate:.6g}")
    if row["method"] == "full":  # sweep tools write their defaults down for every run
        row |= {key: None for key in OF_LORA if key in row}
    return None


def _shown(value: object) -> str:
    return "nothing" if value is None else f"{value!r}"


def _score(row: dict[str, Any], worst_score: float | None) -> Left | None:
    score = row["score_final"]
    if row["status"] in ("no_signal", "pruned"):
        row["score_final"] = None
        return None
    if score is not None and math.isfinite(score):
        return None
    row["score_final"] = None
    what = "no score" if score is None else f"score {score:g}"
    if worst_score is None:
        return Left("no score", f"{row['status']}, {what}; --worst-score X would count it as X")
    if row["status"] == "completed":
        row["status_reason"] = f"{what} in the source"
    row["status"], row["score_final"] = "diverged", worst_score
    return None
