"""Tables whose text others wrote, made safe for a spreadsheet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a cell begins that a spreadsheet computes."""


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write a CSV file in which no text is a formula: one that looks like it gets an apostrophe."""
    frame.rename(columns=_cell).apply(_cells).to_csv(path, index=False)


def _cells(column: pd.Series[Any]) -> pd.Series[Any]:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.rename_categories([_cell(value) for value in column.cat.categories])
    is_text = column.dtype == object or pd.api.types.is_string_dtype(column.dtype)
    return column.map(_cell) if is_text else column


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
