"""Single files of an experiment directory, each checked against what ``study`` writes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from study.records.record import RESULT_STATUSES, SCHEMA_VERSION, SCORED_STATUSES, Record


def _json_types(kind: Any) -> frozenset[type]:
    """The types that a declared type has in JSON; a whole number may stand for a number."""
    origin = get_origin(kind) or kind
    if origin in (list, dict) or not get_args(kind):
        return frozenset((float, int) if origin is float else (origin,))
    return frozenset().union(*map(_json_types, get_args(kind)))


PLANNED_COLUMNS = ("run_id", "arm", "phase", "learning_rate", "seed")
RECORD_TYPES = get_type_hints(Record)
JSON_TYPES = {name: _json_types(kind) for name, kind in RECORD_TYPES.items()}
"""Types of a record's values in JSON, worked out once: ten thousand records are checked."""
TYPES_IN_WORDS = {
    float: "a number",
    int: "an integer",
    list: "a list of texts",
    dict: "an object",
    str: "text",
}
ABSENT = "is not there"


def read_json(path: Path | str) -> tuple[dict[str, Any] | None, str]:
    """The object in a JSON file, or None and what is wrong with the file."""
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except FileNotFoundError:
        return None, ABSENT
    except OSError as error:
        return None, f"cannot be read ({error.strerror})"
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        return None, f"is not valid JSON ({error})"
    if not isinstance(value, dict):
        return None, f"holds a JSON {type(value).__name__}, not an object"
    return value, ""


def json_lines(content: bytes) -> tuple[list[dict[str, Any]], int]:
    """The objects of JSON lines, and how many lines are not one (a write was cut short)."""
    values: list[dict[str, Any]] = []
    broken = 0
    for line in content.decode("utf-8", errors="replace").split("\n"):
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


def content_of(path: str) -> bytes:
    """What a file holds; nothing where it is not there.

    Args:
        path: As text: to build a ``Path`` takes longer than to open a file.
    """
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return b""


def read_record(path: Path, run: Mapping[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """The record of a planned run, or None and why it is no result (empty: it is not there)."""
    record, problem = read_json(f"{path}/{run['arm']}/{run['run_id']}/record.json")
    if record is None:
        return None, "" if problem == ABSENT else f"record.json {problem}"
    record, problem = checked_record(record, run)
    return record, f"record.json {problem}" if problem else ""


def checked_record(
    record: Mapping[str, Any], run: Mapping[str, Any]
) -> tuple[dict[str, Any] | None, str]:
    """A parsed record of a planned run, or None and why it is no result."""
    problem = _record_problem(record, run)
    return (None, problem) if problem else ({**record, "learning_rate": run["learning_rate"]}, "")


def _record_problem(record: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    version = record.get("schema_version")
    if version != SCHEMA_VERSION:
        return f"has unknown schema_version {version!r}, this version reads {SCHEMA_VERSION}"
    absent = sorted(set(RECORD_TYPES) - set(record))
    if absent:
        return f"lacks {', '.join(absent)}"
    for name, types in JSON_TYPES.items():
        value = record[name]
        if type(value) not in types or not _is_sound(value):
            return f"has {name}={record[name]!r}, not {_in_words(RECORD_TYPES[name])}"
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


def _is_sound(value: object) -> bool:
    """Whether a number is finite and the items of a list are text."""
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, list) or all(isinstance(item, str) for item in value)


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
    return selected_rate(str(file), value)


def selected_rate(where: str, selection: Mapping[str, Any]) -> float:
    """The learning rate of a selection.

    Raises:
        ValueError: if there is none.
    """
    rate = selection.get("learning_rate")
    if rate is None or not is_number(rate):
        raise ValueError(f"{where} names no learning_rate, got {rate!r}")
    return float(rate)
