"""Single files of an experiment directory, each checked against what ``study`` writes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from study.records.record import RESULT_STATUSES, SCHEMA_VERSION, SCORED_STATUSES, Record

PLANNED_COLUMNS = ("run_id", "arm", "phase", "learning_rate", "seed")
RECORD_TYPES = get_type_hints(Record)
TYPES_IN_WORDS = {
    float: "a number",
    int: "an integer",
    list: "a list of texts",
    dict: "an object",
    str: "text",
}
ABSENT = "is not there"


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
    absent = sorted(set(RECORD_TYPES) - set(record))
    if absent:
        return f"lacks {', '.join(absent)}"
    for name, kind in RECORD_TYPES.items():
        if not _fits(record[name], kind):
            return f"has {name}={record[name]!r}, not {_in_words(kind)}"
    status = record["status"]
    if status not in RESULT_STATUSES:
        return f"has unknown status {status!r}"
    if status in SCORED_STATUSES and record["score_final"] is None:
        return f"has status {status!r} and no score_final"
    for key in PLANNED_COLUMNS:
        if not _same(record[key], run[key]):
            return f"says {key}={record[key]!r}, the plan {run[key]!r}"
    return ""


def is_number(value: object) -> bool:
    """Whether a JSON value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def is_integer(value: object) -> bool:
    """Whether a JSON value is an integer."""
    return isinstance(value, int) and not isinstance(value, bool)


def _fits(value: object, kind: Any) -> bool:
    """Whether a JSON value is of the type that the record declares."""
    if kind is float:
        return is_number(value)
    if kind is int:
        return is_integer(value)
    origin = get_origin(kind) or kind
    if origin is list:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if isinstance(origin, type) and origin in (str, dict, type(None)):
        return isinstance(value, origin)
    return any(_fits(value, option) for option in get_args(kind))


def _in_words(kind: Any) -> str:
    options = (get_origin(kind) or kind, *get_args(kind))
    return next(TYPES_IN_WORDS[option] for option in options if option in TYPES_IN_WORDS)


def _same(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=1e-6)  # identities keep six significant digits
    return a == b


def read_selection(path: Path, arm: str) -> float | None:
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
    if rate is None or not is_number(rate):
        raise ValueError(f"{file} names no learning_rate, got {rate!r}")
    return float(rate)
