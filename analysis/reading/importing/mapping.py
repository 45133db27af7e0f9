"""Source columns -> the columns of a record, with what was inferred on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.reading.importing.columns import (
    REQUIRED,
    TARGETS,
    check_columns,
    check_targets,
    read_column,
)
from analysis.reading.sources import RawSweep

FILLED = ("run_id", "phase", "status", "status_reason", "method", "lora_rank", "seed")
"""Columns that every row has after mapping, whatever the source has."""


@dataclass(frozen=True)
class Mapped:
    """Rows of a source under the record's column names."""

    rows: pd.DataFrame
    """One row per source row; None where a cell is empty."""
    problems: list[str]
    """What is unreadable in each row; empty if nothing is."""
    column_map: dict[str, str]
    """Record column -> source column, as used."""
    notes: list[str]
    """What was inferred, a sentence each."""


def map_columns(raw: RawSweep, chosen: Mapping[str, str], constants: Mapping[str, str]) -> Mapped:
    """Rename, read and complete the columns of a source.

    A source column that bears the name of a record column maps itself, unless the user says
    otherwise.

    Args:
        raw: The source.
        chosen: Record column -> source column, as the user wants it.
        constants: Record column -> the value of all rows.

    Raises:
        ValueError: if a name is unknown on either side, both a column and a constant are given, a
            required column lacks, or no cell of a column can be read.
    """
    check_targets(chosen, "--map")
    check_targets(constants, "--set")
    both = sorted(set(chosen) & set(constants))
    if both:
        raise ValueError(f"{both[0]} is given by --map and by --set: drop one")
    check_columns(chosen, raw.runs, raw.origin, "--map")
    column_map = _column_map(raw, chosen, constants)
    _check_required(raw, column_map, constants)
    columns: dict[str, list[Any]] = {}
    problems = [""] * len(raw.runs)
    for target, source in column_map.items():
        columns[target], found = read_column(raw.runs[source], target)
        _check_readable(columns[target], found, source)
        problems = [old or new for old, new in zip(problems, found, strict=True)]
    for target, text in constants.items():
        (value,), (problem,) = read_column(pd.Series([text], dtype=object), target)
        if problem:
            raise ValueError(f"--set {target}={text}: {problem}")
        columns[target] = [value] * len(raw.runs)
    notes = _complete(columns, len(raw.runs))
    return Mapped(pd.DataFrame(columns, dtype=object), problems, column_map, notes)


def _column_map(
    raw: RawSweep, chosen: Mapping[str, str], constants: Mapping[str, str]
) -> dict[str, str]:
    own = {str(name): str(name) for name in raw.runs.columns if str(name) in TARGETS}
    found = {**own, **raw.column_map, **chosen}
    return {target: source for target, source in found.items() if target not in constants}


def _check_required(
    raw: RawSweep, column_map: Mapping[str, str], constants: Mapping[str, str]
) -> None:
    absent = [name for name in REQUIRED if name not in {**column_map, **constants}]
    if not {"method", "lora_rank", "arm"} & {*column_map, *constants}:
        absent.append("method (or lora_rank)")
    if absent:
        raise ValueError(
            f"say which column of {raw.origin} is {' and which is '.join(absent)}, by --map "
            f"{absent[0].split()[0]}=COLUMN; it has {', '.join(map(str, raw.runs.columns))}"
        )


def _check_readable(values: list[Any], problems: list[str], source: str) -> None:
    """A column of which nothing can be read is a mistake in the map, not in the data."""
    wrong = next(filter(None, problems), "")
    if wrong and all(value is None for value in values):
        raise ValueError(f"no value of column {source!r} can be read: {wrong}")


def _complete(columns: dict[str, list[Any]], rows: int) -> list[str]:
    """Fill in what the source leaves out and what can be inferred; say what was."""
    notes: list[str] = []
    if "method" not in columns:
        ranks = columns.get("lora_rank", [None] * rows)
        columns["method"] = ["full" if rank is None else "lora" for rank in ranks]
        notes.append("no method column: lora where lora_rank is a number, full where it is empty")
    if "seed" not in columns:
        columns["seed"] = [0] * rows
        notes.append("no seed column: every run counts as seed 0, one seed")
    if "phase" not in columns:
        columns["phase"] = ["search"] * rows
    if "run_id" not in columns:
        columns["run_id"] = [f"row-{i + 1}" for i in range(rows)]
        notes.append("no run_id column: rows are called row-1, row-2 and so on, as they come")
    if all(arm is None for arm in columns.get("arm", [])):
        columns.pop("arm", None)
    for name in FILLED:
        columns.setdefault(name, [None] * rows)
    return notes
