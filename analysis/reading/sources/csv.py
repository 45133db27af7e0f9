"""A CSV file: one row a run, one line of names above."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from analysis.reading.sources.raw import RawSweep, existing_file, file_sha256


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
    except (pd.errors.ParserError, UnicodeDecodeError) as error:
        why = str(error).strip().splitlines()[0]
        raise ValueError(f"{path} is not a CSV file: {why}") from error
    if not isinstance(frame.index, pd.RangeIndex):  # pandas takes surplus cells for row names
        raise ValueError(f"{path} has rows with more cells than there are names in its first line")
    return frame.rename(columns=str.strip)
