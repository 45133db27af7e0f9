"""A CSV file: one row a run, one line of names above."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd

from analysis.reading.sources.raw import RawSweep, existing_file, file_sha256

PARSER = "Error tokenizing data. C error: "
"""What pandas says before it says what is wrong."""
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


def read_csv(path: Path) -> RawSweep:
    """Read a CSV file.

    Raises:
        ValueError: if it is not there, is no CSV, or has no row.
    """
    frame = csv_frame(path)
    if frame.empty:
        raise ValueError(f"{path} holds column names and no row")
    return RawSweep(str(path), frame, file_sha256(path))


def csv_frame(path: Path) -> pd.DataFrame:
    """The cells of a CSV file as text; empty ones, and words for "nothing", are missing.

    Raises:
        ValueError: if it is not there, or is no CSV with a line of distinct names.
    """
    try:
        frame = pd.read_csv(existing_file(path), dtype=object, skipinitialspace=True)
    except pd.errors.EmptyDataError as error:
        raise ValueError(f"{path} is empty") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a CSV file: it is not text in UTF-8") from error
    except pd.errors.ParserError as error:
        why = str(error).strip().splitlines()[0].removeprefix(PARSER)
        raise ValueError(f"{path} is not a CSV file: {why}") from error
    _check_commas(path, [str(name) for name in frame.columns])
    _check_distinct(path)
    if not isinstance(frame.index, pd.RangeIndex):  # pandas takes surplus cells for row names
        raise ValueError(f"{path} has rows with more cells than there are names in its first line")
    return frame.rename(columns=str.strip)


def _check_commas(path: Path, names: list[str]) -> None:
    """Refuse other separators: with semicolons, decimal commas are likely, and guessing is not."""
    for separator, word in SEPARATORS.items():
        if len(names) == 1 and separator in names[0]:
            raise ValueError(
                f"cells of {path} must be separated by commas, its first line has {word} "
                f"({names[0]!r}): save it with commas between cells and points in numbers"
            )


def _check_distinct(path: Path) -> None:
    """Refuse a name that comes twice: which of the columns is meant cannot be known."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = (row for row in csv.reader(file, skipinitialspace=True) if any(row))
        names = [name.strip() for name in next(lines, [])]
    twice = [name for name in dict.fromkeys(names) if name and names.count(name) > 1]
    if twice:
        raise ValueError(f"{path} has more than one column called {twice[0]!r}: rename all but one")
