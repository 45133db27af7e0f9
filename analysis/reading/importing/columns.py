"""Source columns -> record columns: what may be mapped, and how a value is read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args, get_origin

import pandas as pd

from analysis.reading.files import RECORD_TYPES

NOT_MAPPED = ("schema_version", "experiment", "factors", "dtypes", "probes", "flags")
"""Columns of a record that an import writes itself, or takes in parts."""
PARTS = ("dtypes", "factors", "probes")
"""Columns that hold an object: mapped part by part, as in ``dtypes.base`` or ``factors.warmup``."""
DTYPE_PARTS = ("base", "adapter", "optimizer")
REQUIRED = ("learning_rate", "score_final")
"""Of these a row may hold something infinite, and is then resolved by a rule of its own."""
TARGETS = tuple(name for name in RECORD_TYPES if name not in NOT_MAPPED)


def parse_pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """``a=x,b=y`` of a command line, given once or several times.

    A comma separates pairs only where another ``name=`` follows, so that a column of the source may
    have one in its name.

    Raises:
        ValueError: if a part is no pair, or a name is given twice.
    """
    pairs: dict[str, str] = {}
    for part in (part for text in texts for part in re.split(r",(?=[^,=]+=)", text)):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not (name and equals and value):
            raise ValueError(f"{option} takes NAME=VALUE pairs joined by commas, got {part!r}")
        if name in pairs:
            raise ValueError(f"{option} names {name} twice")
        pairs[name] = value
    return pairs


def check_targets(names: Mapping[str, str], option: str) -> None:
    """Refuse names that no record has.

    Raises:
        ValueError: with the names there are.
    """
    for name in names:
        column, dot, part = name.partition(".")
        if dot and column in PARTS and part and (column != "dtypes" or part in DTYPE_PARTS):
            continue
        if name not in TARGETS:
            raise ValueError(
                f"{option}: a record has no column {name!r}; it has {', '.join(TARGETS)}, "
                f"dtypes.base, dtypes.adapter, dtypes.optimizer, factors.NAME and probes.NAME"
            )


def check_columns(names: Mapping[str, str], frame: pd.DataFrame, place: str, option: str) -> None:
    """Refuse columns that the source does not have.

    Raises:
        ValueError: with the columns there are.
    """
    for target, column in names.items():
        if column not in frame.columns:
            raise ValueError(
                f"{option} {target}={column}: {place} has no column {column!r}; it has "
                f"{', '.join(map(str, frame.columns))}"
            )


def read_column(values: pd.Series[Any], target: str) -> tuple[list[Any], list[str]]:
    """A column as the record has it.

    Args:
        values: Cells as the source has them, text or not.
        target: The record's column.

    Returns:
        The values, None where the cell is empty, and what is wrong with each cell (empty: nothing).
    """
    read, kind = _reader(target)
    found: list[Any] = []
    problems: list[str] = []
    for value in values:
        problem = ""
        try:
            result = None if _is_missing(value) else read(value)
        except ValueError:
            result, problem = None, f"{target} is {value!r}, not {kind}"
        found.append(result)
        problems.append(problem)
    return found, problems


def _is_missing(value: object) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or (not isinstance(value, list | dict) and bool(pd.isna(value)))  # type: ignore[call-overload]


def _reader(target: str) -> tuple[Callable[[Any], Any], str]:
    kind = RECORD_TYPES.get(target)
    if kind is None:  # a part of an object
        return (str, "text") if target.startswith("dtypes.") else (_plain, "a value")
    options = get_args(kind) if get_origin(kind) not in (list, dict) else ()
    for option in (kind, *options):
        if option is float:
            return (_any_number if target in REQUIRED else _number), "a number"
        if option is int:
            return _integer, "an integer"
        if get_origin(option) is list:
            return _texts, "a list of texts"
    return str, "text"


def _number(value: Any) -> float | None:
    """A finite number; NaN is nothing."""
    number = _any_number(value)
    if math.isinf(number):
        raise ValueError
    return None if math.isnan(number) else number


def _any_number(value: Any) -> float:
    if isinstance(value, bool | list | dict):
        raise ValueError
    return float(value)


def _integer(value: Any) -> int | None:
    number = _number(value)
    if number is not None and number != int(number):
        raise ValueError
    return None if number is None else int(number)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = json.loads(value)  # JSONDecodeError is a ValueError
    if isinstance(value, str):
        return sorted(filter(None, re.split(r"[\s,;]+", value)))
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError
    return sorted(value)


def _plain(value: Any) -> Any:
    """A number where the cell is one, as in ``factors.warmup``; else its text."""
    if isinstance(value, bool | int | float):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    if not math.isfinite(number):
        return str(value)
    return int(number) if number == int(number) else number
