"""An Optuna storage of ours -> the frames that its experiment directory would give.

What a trial carries is checked as a file of the directory is; see :mod:`analysis.reading.load`. If
storages were merged a run may have several records: the first counts, and one that differs from it
is excluded as a ``second record``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.reading.files import checked_record, selected_rate
from analysis.reading.found import Found, excluded, since_reopened
from analysis.reading.plan_file import check_plan
from analysis.reading.sources.experiment import Attempt, StoredExperiment, read_experiment
from analysis.reading.sweep import METRIC_COLUMNS, SCORE_METRIC, Sweep


def load_stored(url: str, experiment: str | None) -> Sweep:
    """Read an experiment from its Optuna storage; nothing is written to it.

    Args:
        url: ``postgresql://USER@HOST/DATABASE``, ``sqlite:///FILE`` or ``journal:FILE``.
        experiment: Its name; None: it is the storage's only one.

    Raises:
        ValueError: if the storage cannot be read, what it holds is not what ``study`` writes, or it
            is not clear which experiment is meant.
    """
    stored = read_experiment(url, experiment)
    plan = _checked_plan(stored)
    tries: dict[tuple[str, str], list[Attempt]] = {}
    for attempt in stored.attempts:
        key = attempt.arm, str(attempt.attributes.get("run_id"))
        tries.setdefault(key, []).append(attempt)
    found, curves = Found(), list[tuple[str, dict[int, float]]]()
    second: list[dict[str, Any]] = []
    for run in plan["runs"]:
        mine = _Tries(run, tries.pop((run["arm"], run["run_id"]), []))
        record, problem = mine.record()
        found.add(run, record, problem, mine.failed(), int(plan["max_retries"]))
        second.extend(mine.second_records())
        if record is not None:
            curves.append((str(run["run_id"]), mine.accuracy()))
    left_out = [*_unplanned(tries), *second]
    return found.sweep(plan, _metrics(curves), _rates(stored), left_out, storage=stored.place)


def _checked_plan(stored: StoredExperiment) -> dict[str, Any]:
    where = f"the plan in {stored.place}"
    if not isinstance(stored.plan, dict):
        raise ValueError(f"{where} is a JSON {type(stored.plan).__name__}, not an object")
    check_plan(where, stored.plan)
    return stored.plan


def _rates(stored: StoredExperiment) -> dict[str, float | None]:
    selections = stored.selections if isinstance(stored.selections, dict) else {}
    return {
        arm: selected_rate(f"the selection of {arm} in {stored.place}", selection)
        for arm, selection in selections.items()
        if arm in stored.plan["arms"] and isinstance(selection, dict)
    }


@dataclass(frozen=True)
class _Tries:
    """Everything that was tried for one planned run."""

    run: dict[str, Any]
    attempts: list[Attempt]

    def _recorded(self) -> list[Attempt]:
        return [attempt for attempt in self.attempts if "record" in attempt.attributes]

    def record(self) -> tuple[dict[str, Any] | None, str]:
        """The record, or None and why what is there is no result."""
        recorded = self._recorded()
        if not recorded:
            return None, ""
        value = recorded[0].attributes["record"]
        if not isinstance(value, dict):
            return None, f"the record is a JSON {type(value).__name__}, not an object"
        record, problem = checked_record(value, self.run)
        return record, f"the record {problem}" if problem else ""

    def second_records(self) -> Iterator[dict[str, Any]]:
        """Records that differ from the one that counts."""
        records = [attempt.attributes["record"] for attempt in self._recorded()]
        for other in records[1:]:
            if other != records[0]:
                reason = "a record that differs from the first one of this run, which counts"
                yield excluded(self.run, "second record", reason)

    def accuracy(self) -> dict[int, float]:
        """Held-out accuracy by step, of the attempt whose record counts."""
        values = self._recorded()[0].accuracy
        return {step: values[step] for step in sorted(values) if math.isfinite(values[step])}

    def failed(self) -> list[dict[str, Any]]:
        """Failed attempts since the run was last reopened."""
        ended = [a for a in self.attempts if a.failed and "record" not in a.attributes]
        return since_reopened(self.run, (_line(i, a) for i, a in enumerate(ended, start=1)))


def _line(number: int, attempt: Attempt) -> dict[str, Any]:
    """A failed attempt as a line of ``attempts.jsonl`` has it."""
    facts = attempt.attributes
    return {
        "attempt": facts.get("attempt", number),
        "status": str(facts.get("status", "killed")),
        "reason": str(facts.get("status_reason", "")),
        "spent": bool(facts.get("spent", False)),  # the death of its worker costs no retry
        "time": str(facts.get("time", "")),
    }


def _unplanned(tries: dict[tuple[str, str], list[Attempt]]) -> Iterator[dict[str, Any]]:
    """Records of runs that the plan does not name: an id belongs to exactly one arm."""
    for (arm, run_id), attempts in sorted(tries.items()):
        if any("record" in attempt.attributes for attempt in attempts):
            run = {"arm": arm, "run_id": run_id}
            yield excluded(run, "not planned", "a record that the plan does not name in this arm")


def _metrics(curves: list[tuple[str, dict[int, float]]]) -> pd.DataFrame:
    """The curves as measurements, of the types that reading files gives."""
    ids = [run_id for run_id, _ in curves]
    rows = [(i, *point) for i, (_, curve) in enumerate(curves) for point in curve.items()]
    codes, steps, values = zip(*rows, strict=True) if rows else ((), (), ())
    metric = pd.Index([SCORE_METRIC] if rows else [], dtype=object)
    columns = (
        pd.Categorical.from_codes(list(codes), pd.Index(ids, dtype=object)),
        pd.Series(steps, dtype="int64"),
        pd.Categorical.from_codes([0] * len(rows), metric),
        pd.Series(values, dtype="float64"),
    )
    return pd.DataFrame(dict(zip(METRIC_COLUMNS, columns, strict=True)))
