"""An experiment directory -> the frames that everything else in ``analysis`` is computed from.

Only runs that ``plan.json`` names are results. Whatever else lies in the directory, and whatever
the plan names that is not there, ends up in :attr:`Sweep.excluded` with its kind and the reason,
never in silence:

* ``no record``: planned, and not finished: not started, still running, or failed so far.
* ``unreadable record``: no JSON, of a schema version that is not known here, lacking a field, with
  a value of the wrong type or an unknown status, or of another run than the place it lies in.
* ``not planned``: a record in a place that the plan does not name. A run id belongs to one arm, so
  that a copied run cannot count twice.
* ``failed attempt``: a try that left no result, since the run was last reopened. A retry that ended
  well is the run's only record; the tries before it take nothing away.
* ``unreadable metrics``: lines that were cut short; the other lines of the file count.

What is in an imported sweep was decided when it was imported, by the rules of
:mod:`analysis.reading.importing.resolve`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.reading.files import (
    PLANNED_COLUMNS,
    content_of,
    json_lines,
    read_json,
    read_record,
    read_selection,
)
from analysis.reading.importing.directory import read_imported
from analysis.reading.metrics import read_metrics
from analysis.reading.plan_file import read_plan
from analysis.reading.sweep import (
    ATTEMPT_COLUMNS,
    EXCLUDED_COLUMNS,
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
    if plan["experiment"]["kind"] == "imported":
        return read_imported(path, plan)
    found = _Found()
    for run in plan["runs"]:
        found.add(path, run, int(plan["max_retries"]))
    metrics, broken = read_metrics(path, found.records)
    excluded = [
        *found.excluded,
        *(_excluded(a, "failed attempt", _describe(a)) for a in found.attempts),
        *_unplanned(path, plan),
        *(_unreadable(r, broken[r["run_id"]]) for r in found.records if r["run_id"] in broken),
    ]
    planned = pd.DataFrame(plan["runs"], columns=list(PLANNED_COLUMNS))
    return Sweep(
        path=path,
        plan=plan,
        runs=typed_frame(found.records, RECORD_COLUMNS),
        metrics=metrics,
        planned=planned.assign(status=pd.Series(found.statuses, dtype="object")),
        excluded=typed_frame(excluded, EXCLUDED_COLUMNS),
        attempts=typed_frame(found.attempts, ATTEMPT_COLUMNS),
        selections={
            arm: rate for arm in plan["arms"] if (rate := read_selection(path, arm)) is not None
        },
    )


@dataclass
class _Found:
    """What lies in the places that a plan names."""

    records: list[dict[str, Any]] = field(default_factory=list)
    excluded: list[dict[str, Any]] = field(default_factory=list)
    attempts: list[dict[str, Any]] = field(default_factory=list)
    statuses: list[str] = field(default_factory=list)
    """One for each planned run."""

    def add(self, path: Path, run: dict[str, Any], max_retries: int) -> None:
        """Look at the place of the next run."""
        failed = _attempts(path, run)
        record, problem = read_record(path, run)
        if record is None:
            kind, reason = _without_record(problem, failed)
            self.excluded.append(_excluded(run, kind, reason))
        else:
            self.records.append(record)
        self.attempts.extend(failed)
        self.statuses.append(_status(record, failed, max_retries))


def samples(sweep: Sweep, run_id: str, limit: int) -> list[dict[str, Any]]:
    """The last ``limit`` stored completions of a planned run; empty if it stored none."""
    arm = sweep.planned["arm"][sweep.planned["run_id"] == run_id].iloc[0]
    lines, _ = json_lines(content_of(f"{sweep.path}/{arm}/{run_id}/samples.jsonl"))
    return lines[-limit:]


def provenance(sweep: Sweep, run_id: str) -> dict[str, Any]:
    """``provenance.json`` of a planned run; empty if it is not there or not an object."""
    arm = sweep.planned["arm"][sweep.planned["run_id"] == run_id].iloc[0]
    return _provenance(sweep.path, str(arm), run_id)


def provenances(sweep: Sweep) -> list[dict[str, Any]]:
    """The same of every run that has a record, in the order of ``runs``."""
    places = zip(sweep.runs["arm"], sweep.runs["run_id"], strict=True)
    return [_provenance(sweep.path, str(arm), str(run_id)) for arm, run_id in places]


def _provenance(path: Path, arm: str, run_id: str) -> dict[str, Any]:
    value, _ = read_json(path / arm / run_id / "provenance.json")
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
    lines, _ = json_lines(content_of(f"{path}/{run['arm']}/{run['run_id']}/attempts.jsonl"))
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
    for file in sorted(glob("*/*/record.json", root_dir=path)):
        arm, run_id, _ = Path(file).parts
        if (arm, run_id) not in places:
            run = {"arm": arm, "run_id": run_id}
            yield _excluded(run, "not planned", "a record that plan.json does not name in this arm")


def _unreadable(record: dict[str, Any], lines: int) -> dict[str, Any]:
    reason = f"{lines} unreadable line{'s' if lines > 1 else ''} of metrics.jsonl left out"
    return _excluded(record, "unreadable metrics", reason)
