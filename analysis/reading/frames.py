"""The frame of runs as a table of plain cells, and back: objects travel as JSON text."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

NESTED = ("factors", "dtypes", "probes", "target_modules", "flags")
"""Columns of objects and lists. As Parquet structs, objects with different keys would each come
back with the keys of all others."""


def to_plain(runs: pd.DataFrame) -> pd.DataFrame:
    """The frame with nested columns as JSON text; a missing one stays missing."""
    texts = {name: [_text(value) for value in runs[name]] for name in NESTED if name in runs}
    return runs.assign(**{name: pd.Series(v, runs.index, object) for name, v in texts.items()})


def from_plain(runs: pd.DataFrame) -> pd.DataFrame:
    """What :func:`to_plain` was given.

    Raises:
        ValueError: if a nested column holds no JSON.
    """
    values = {name: [_value(text) for text in runs[name]] for name in NESTED if name in runs}
    return runs.assign(**{name: pd.Series(v, runs.index, object) for name, v in values.items()})


def _text(value: Any) -> str | None:
    return json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else None


def _value(text: Any) -> Any:
    return json.loads(text) if isinstance(text, str) else None
