"""Single files of an experiment directory, each checked against what ``study`` writes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from study.records.record import RESULT_STATUSES, SCHEMA_VERSION, Record

PLAN_SCHEMA_VERSION = 1
PLANNED_COLUMNS = ("run_id", "arm", "phase", "learning_rate", "seed")
REQUIRED_FIELDS = frozenset(
    f.name for f in fields(Record) if f.default is MISSING and f.default_factory is MISSING
)
SCORE_FIELDS = ("score_final", "score_best", "score_base", "score_greedy")
ABSENT = "is not there"


@dataclass(frozen=True)
class Selection:
    """The learning rate that an arm's search seeds chose."""

    learning_rate: float
    edge: str | None
    """``low`` or ``high`` when the best point is the grid's first or last."""


def read_json(path: Path) -> tuple[dict[str, Any] | None, str]:
    """The object in a JSON file, or None and what is wrong with the file."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None, ABSENT
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        return None, f"is not valid JSON ({error})"
    if not isinstance(value, dict):
        return None, f"holds a JSON {type(value).__name__}, not an object"
    return value, ""


def json_lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The objects of a JSON-lines file, and how many lines are not one (a write was cut short)."""
    if not path.is_file():
        return [], 0
    values: list[dict[str, Any]] = []
    broken = 0
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError:
            value = None
        if isinstance(value, dict):
            values.append(value)
        else:
            broken += 1
    return values, broken


def read_plan(path: Path) -> dict[str, Any]:
    """The plan of the experiment directory ``path``.

    Raises:
        ValueError: if the directory is missing, empty, or without a plan that ``study`` wrote.
    """
    if not path.is_dir():
        raise ValueError(f"no such experiment directory: {path}")
    if not any(path.iterdir()):
        raise ValueError(f"the experiment directory is empty: {path}")
    file = path / "plan.json"
    plan, problem = read_json(file)
    if problem == ABSENT:
        raise ValueError(f"not an experiment directory: no plan.json in {path}")
    if plan is None:
        raise ValueError(f"{file} {problem}")
    _check_plan(file, plan)
    return plan


def _check_plan(file: Path, plan: Mapping[str, Any]) -> None:
    foreign = f"{file} is not a plan written by study"
    if not {"schema_version", "experiment", "arms", "runs"} <= set(plan):
        raise ValueError(f"{foreign}: it needs schema_version, experiment, arms and runs")
    if plan["schema_version"] != PLAN_SCHEMA_VERSION:
        raise ValueError(
            f"{file} has schema_version {plan['schema_version']!r}; this version of analysis "
            f"reads {PLAN_SCHEMA_VERSION}"
        )
    experiment, arms, runs = plan["experiment"], plan["arms"], plan["runs"]
    if not isinstance(experiment, dict) or not {"name", "kind", "seeds"} <= set(experiment):
        raise ValueError(f"{foreign}: its experiment needs name, kind and seeds")
    if not isinstance(arms, dict) or not all(_is_arm(arm) for arm in arms.values()):
        raise ValueError(f"{foreign}: each of its arms needs a config and learning_rates")
    if not isinstance(runs, list) or not all(_is_planned(run, arms) for run in runs):
        raise ValueError(f"{foreign}: each of its runs needs {', '.join(PLANNED_COLUMNS)}")
    ids = [run["run_id"] for run in runs]
    if len(set(ids)) != len(ids):
        twice = next(i for i in ids if ids.count(i) > 1)
        raise ValueError(f"{file} names run {twice!r} twice")


def _is_arm(arm: object) -> bool:
    return (
        isinstance(arm, dict)
        and isinstance(arm.get("config"), dict)
        and isinstance(arm.get("learning_rates"), list)
    )


def _is_planned(run: object, arms: Mapping[str, Any]) -> bool:
    if not isinstance(run, dict) or not set(PLANNED_COLUMNS) <= set(run):
        return False
    names = all(isinstance(run[key], str) for key in ("run_id", "arm", "phase"))
    numbers = isinstance(run["learning_rate"], int | float) and isinstance(run["seed"], int)
    return names and numbers and run["arm"] in arms


def read_record(path: Path, run: Mapping[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """The record of a planned run, or None and why it is no result (empty: it is not there)."""
    record, problem = read_json(path / run["arm"] / run["run_id"] / "record.json")
    if record is None:
        return None, "" if problem == ABSENT else f"record.json {problem}"
    problem = _record_problem(record, run)
    if problem:
        return None, f"record.json {problem}"
    return {**record, "learning_rate": run["learning_rate"]}, ""


def _record_problem(record: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    version = record.get("schema_version")
    if version != SCHEMA_VERSION:
        return f"has unknown schema_version {version!r}, this version reads {SCHEMA_VERSION}"
    absent = sorted(REQUIRED_FIELDS - set(record))
    if absent:
        return f"lacks {', '.join(absent)}"
    if record["status"] not in RESULT_STATUSES:
        return f"has unknown status {record['status']!r}"
    for name in SCORE_FIELDS:
        if record[name] is not None and not isinstance(record[name], int | float):
            return f"has {name}={record[name]!r}, not a number"
    for key in PLANNED_COLUMNS:
        if not _same(record[key], run[key]):
            return f"says {key}={record[key]!r}, the plan {run[key]!r}"
    return ""


def _same(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=1e-6)  # identities keep six significant digits
    return a == b


def read_selection(path: Path, arm: str) -> Selection | None:
    """The learning rate an arm chose; None while its search is not over.

    Raises:
        ValueError: if the file is there and is not a selection.
    """
    file = path / "selection" / f"{arm}.json"
    value, problem = read_json(file)
    if problem == ABSENT:
        return None
    if value is None:
        raise ValueError(f"{file} {problem}")
    rate = value.get("learning_rate")
    if not isinstance(rate, int | float):
        raise ValueError(f"{file} names no learning_rate, got {rate!r}")
    return Selection(float(rate), value.get("edge"))
