"""An experiment directory -> the frames that everything else in ``analysis`` is computed from.

Only runs that ``plan.json`` names are results. Whatever else lies in the directory, and whatever
the plan names that is not there, ends up in :attr:`Sweep.excluded` with the reason, never in
silence.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.reading.files import (
    PLANNED_COLUMNS,
    json_lines,
    read_json,
    read_record,
    read_selection,
)
from analysis.reading.plan_file import read_plan
from analysis.reading.sweep import (
    ATTEMPT_COLUMNS,
    EXCLUDED_COLUMNS,
    METRIC_COLUMNS,
    RECORD_COLUMNS,
    Sweep,
    typed_frame,
)


def load(path: Path) -> Sweep:
    """Read an experiment directory.

    Args:
        path: ``runs/<experiment>``, finished or not.

    Raises:
        ValueError: if the directory is missing, empty or not an experiment, or its ``plan.json``
            or a selection is not what ``study`` writes.
    """
    plan = read_plan(path)
    planned = pd.DataFrame(plan["runs"], columns=list(PLANNED_COLUMNS))
    records: list[dict[str, Any]] = []
    excluded: list[dict[str, Any]] = []
    attempts: list[dict[str, Any]] = []
    statuses: list[str] = []
    for run in plan["runs"]:
        failed = _attempts(path, run)
        record, problem = read_record(path, run)
        if record is None:
            kind, reason = _without_record(problem, failed)
            excluded.append(_excluded(run, kind, reason))
        else:
            records.append(record)
        attempts.extend(failed)
        statuses.append(_status(record, failed, int(plan["max_retries"])))
    excluded.extend(_excluded(a, "failed attempt", _describe(a)) for a in attempts)
    excluded.extend(_unplanned(path, plan))
    metrics = [line for record in records for line in _metrics(path, record, excluded)]
    return Sweep(
        path=path,
        plan=plan,
        runs=typed_frame(records, RECORD_COLUMNS),
        metrics=pd.DataFrame(metrics, columns=list(METRIC_COLUMNS)),
        planned=planned.assign(status=pd.Series(statuses, dtype="object")),
        excluded=typed_frame(excluded, EXCLUDED_COLUMNS),
        attempts=typed_frame(attempts, ATTEMPT_COLUMNS),
        selections={
            arm: rate for arm in plan["arms"] if (rate := read_selection(path, arm)) is not None
        },
    )


def samples(sweep: Sweep, run_id: str, limit: int) -> list[dict[str, Any]]:
    """The last ``limit`` stored completions of a planned run; empty if it stored none."""
    arm = sweep.planned["arm"][sweep.planned["run_id"] == run_id].iloc[0]
    lines, _ = json_lines(sweep.path / str(arm) / run_id / "samples.jsonl")
    return lines[-limit:]


def provenance(sweep: Sweep, run_id: str) -> dict[str, Any]:
    """``provenance.json`` of a planned run; empty if it is not there or not an object."""
    arm = sweep.planned["arm"][sweep.planned["run_id"] == run_id].iloc[0]
    value, _ = read_json(sweep.path / str(arm) / run_id / "provenance.json")
    return value or {}


def _without_record(problem: str, failed: list[dict[str, Any]]) -> tuple[str, str]:
    if problem:
        return "unreadable record", problem
    if not failed:
        return "no record", "planned, no record yet: not started or still running"
    tries = f"{len(failed)} failed attempt{'s' if len(failed) > 1 else ''}"
    return "no record", f"planned, no record after {tries}; the last one: {_describe(failed[-1])}"


def _status(record: dict[str, Any] | None, failed: list[dict[str, Any]], max_retries: int) -> str:
    if record is not None:
        return str(record["status"])
    spent = sum(1 for attempt in failed if attempt["spent"])
    return "given up" if spent > max_retries else "missing"


def _attempts(path: Path, run: dict[str, Any]) -> list[dict[str, Any]]:
    """Failed attempts of a run since it was last reopened."""
    lines, _ = json_lines(path / run["arm"] / run["run_id"] / "attempts.jsonl")
    failed: list[dict[str, Any]] = []
    for line in lines:
        if line.get("status") == "reopened":
            failed.clear()
        else:
            failed.append({**{c: line.get(c, "") for c in ATTEMPT_COLUMNS}, **_names(run)})
    return failed


def _describe(attempt: dict[str, Any]) -> str:
    return f"{attempt['status']} ({attempt['reason']})"


def _names(run: dict[str, Any]) -> dict[str, Any]:
    return {"run_id": run["run_id"], "arm": run["arm"]}


def _excluded(run: dict[str, Any], kind: str, reason: str) -> dict[str, Any]:
    return {**_names(run), "kind": kind, "reason": reason}


def _unplanned(path: Path, plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Records in places that the plan does not name: an id belongs to exactly one arm."""
    places = {(run["arm"], run["run_id"]) for run in plan["runs"]}
    for file in sorted(path.glob("*/*/record.json")):
        place = (file.parent.parent.name, file.parent.name)
        if place not in places:
            run = {"arm": place[0], "run_id": place[1]}
            yield _excluded(run, "not planned", "a record that plan.json does not name in this arm")


def _metrics(
    path: Path, record: dict[str, Any], excluded: list[dict[str, Any]]
) -> Iterator[tuple[str, int, str, float]]:
    lines, broken = json_lines(path / record["arm"] / record["run_id"] / "metrics.jsonl")
    if broken:
        reason = f"{broken} unreadable line{'s' if broken > 1 else ''} of metrics.jsonl left out"
        excluded.append(_excluded(record, "unreadable metrics", reason))
    for line in lines:
        for name, value in line.items():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if name != "step" and number and isinstance(line.get("step"), int):
                yield record["run_id"], line["step"], name, float(value)
