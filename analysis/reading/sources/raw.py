"""A sweep as its source has it, before anything is mapped."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd


@dataclass(frozen=True)
class RawSweep:
    """Rows of a source, one a run, under the source's own column names."""

    origin: str
    """The place, without a password."""
    runs: pd.DataFrame
    sha256: str
    """Of the file, or of the rows where there is none."""
    column_map: dict[str, str] = field(default_factory=dict)
    """Record column -> source column, where the source's own words say it: used unless the user
    maps the column otherwise."""
    history: pd.DataFrame | None = None
    """Measurements over steps, where the source has them too."""
    history_map: dict[str, str] = field(default_factory=dict)
    """``run_id``, ``step`` and metrics -> columns of ``history``."""


def file_sha256(path: Path) -> str:
    """Hash of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def rows_sha256(*frames: pd.DataFrame) -> str:
    """Hash of rows that come from no single file."""
    text = "\n\n".join(frame.to_csv(index=False) for frame in frames)
    return hashlib.sha256(text.encode()).hexdigest()


def existing_file(path: Path) -> Path:
    """``path``, if it is a file.

    Raises:
        ValueError: if it is not.
    """
    if not path.is_file():
        raise ValueError(
            f"{path} {'is a directory, not a file' if path.is_dir() else 'is not there'}"
        )
    return path
