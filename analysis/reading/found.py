"""What was found of the runs that a plan names, wherever it was looked for.

Whatever the plan names that is not there is excluded with its kind and the reason, never in
silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.reading.files import PLANNED_COLUMNS
from analysis.reading.sweep import (
    ATTEMPT_COLUMNS,
    EXCLUDED_COLUMNS,
    RECORD_COLUMNS,
    Sweep,
    typed_frame,
)


@dataclass
class Found:
    """Records, failed attempts and statuses of planned runs."""

    records: list[dict[str, Any]] = field(default_factory=list)
    excluded: list[dict[str, Any]] = field(default_factory=list)
    attempts: list[dict[str, Any]] = field(default_factory=list)
    statuses: list[str] = field(default_factory=list)
    """One for each planned run."""

    def add(
        self,
        run: dict[str, Any],
        record: dict[str, Any] | None,
        problem: str,
        failed: list[dict[str, Any]],
        max_retries: int,
    ) -> None:
        """Note what was found of the next run.

        Args:
            run: The planned run.
            record: Its record, if there is one that counts.
            problem: Why the one that is there does not; empty if there is none.
            failed: Its failed attempts, in order.
            max_retries: Failed attempts after which a run is given up.
        """
        if record is None:
            kind, reason = _without_record(problem, failed)
            self.excluded.append(excluded(run, kind, reason))
        else:
            self.records.append(record)
        self.attempts.extend(failed)
        self.statuses.append(_status(record, failed, max_retries))

    def sweep(
        self,
        plan: dict[str, Any],
        metrics: pd.DataFrame,
        rates: Mapping[str, float | None],
        left_out: Iterable[dict[str, Any]],
        *,
        path: Path | None = None,
        storage: str | None = None,
    ) -> Sweep:
        """The frames, once every planned run was looked for.

        Args:
            plan: The plan.
            metrics: Measurements of the records.
            rates: Selected learning rate by arm; None while the arm's search is not over.
            left_out: Further rows of :attr:`Sweep.excluded`.
            path: The experiment directory, if it was read from one.
            storage: The storage it was read from otherwise.
        """
        failed = (excluded(a, "failed attempt", describe(a)) for a in self.attempts)
        planned = pd.DataFrame(plan["runs"], columns=list(PLANNED_COLUMNS))
        return Sweep(
            path=path,
            plan=plan,
            runs=typed_frame(self.records, RECORD_COLUMNS),
            metrics=metrics,
            planned=planned.assign(status=pd.Series(self.statuses, dtype="object")),
            excluded=typed_frame([*self.excluded, *failed, *left_out], EXCLUDED_COLUMNS),
            attempts=typed_frame(self.attempts, ATTEMPT_COLUMNS),
            selections={arm: rate for arm, rate in rates.items() if rate is not None},
            storage=storage,
        )


def since_reopened(run: dict[str, Any], lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Failed attempts of a run since it was last reopened, from its history."""
    failed: list[dict[str, Any]] = []
    for line in lines:
        if line.get("status") == "reopened":
            failed.clear()
        else:
            failed.append({**{c: line.get(c, "") for c in ATTEMPT_COLUMNS}, **_names(run)})
    return failed


def describe(attempt: dict[str, Any]) -> str:
    """How an attempt ended, in a few words."""
    return f"{attempt['status']} ({attempt['reason']})"


def excluded(run: dict[str, Any], kind: str, reason: str) -> dict[str, Any]:
    """A row of :attr:`Sweep.excluded`."""
    return {**_names(run), "kind": kind, "reason": reason}


def _names(run: dict[str, Any]) -> dict[str, Any]:
    return {"run_id": run["run_id"], "arm": run["arm"]}


def _without_record(problem: str, failed: list[dict[str, Any]]) -> tuple[str, str]:
    if problem:
        return "unreadable record", problem
    if not failed:
        return "no record", "planned, no record yet: not started or still running"
    tries = f"{len(failed)} failed attempt{'s' if len(failed) > 1 else ''}"
    return "no record", f"planned, no record after {tries}; the last one: {describe(failed[-1])}"


def _status(record: dict[str, Any] | None, failed: list[dict[str, Any]], max_retries: int) -> str:
    if record is not None:
        return str(record["status"])
    spent = sum(1 for attempt in failed if attempt["spent"])
    return "given up" if spent > max_retries else "missing"
