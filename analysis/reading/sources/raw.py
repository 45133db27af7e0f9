"""A sweep as its source has it, before anything is mapped."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

SQLITE_SUFFIXES = (".db", ".sqlite", ".sqlite3")
DATABASES = ("sqlite:///", "postgresql://", "postgresql+", "mysql://", "mysql+")


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """What a source may need to be told besides its place."""

    table: str | None = None
    """Of a SQLite file; None: its only one."""
    study_name: str | None = None
    """Of an Optuna storage; None: all of its studies."""
    history: bool = False
    """Read a W&B project's history, which takes a request a run."""


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
    notes: tuple[str, ...] = ()
    """What was read into the source on the way, for the listing."""


def read_source(source: str, options: SourceOptions) -> RawSweep:
    """Read a sweep from wherever ``source`` says.

    Args:
        source: A CSV file, a SQLite file, the URL of an Optuna storage (``sqlite:///FILE``,
            ``postgresql://...``, ``journal:FILE``), or ``wandb:ENTITY/PROJECT``.
        options: Further facts that some sources need.

    Raises:
        ValueError: if it is none of these, cannot be read, or an option is not of that source.
    """
    is_optuna = source.startswith((*DATABASES, "journal:"))
    is_sqlite = not is_optuna and source.lower().endswith(SQLITE_SUFFIXES)
    if options.table is not None and not is_sqlite:
        raise ValueError(f"--table is only read with a SQLite file, got {source}")
    if options.study_name is not None and not is_optuna:
        raise ValueError(f"--study-name is only read with an Optuna storage, got {source}")
    if is_optuna:
        from analysis.reading.sources.optuna import read_optuna

        return read_optuna(source, options.study_name)
    if source.startswith("wandb:"):
        from analysis.reading.sources.wandb import read_wandb

        return read_wandb(source.removeprefix("wandb:"), history=options.history)
    if "://" in source:
        raise ValueError(
            f"a source is a CSV file, a SQLite file, an Optuna storage (sqlite:///FILE, "
            f"postgresql://..., journal:FILE) or wandb:ENTITY/PROJECT, got {source}"
        )
    if is_sqlite:
        from analysis.reading.sources.sqlite import read_sqlite

        return read_sqlite(Path(source), options.table)
    from analysis.reading.sources.csv import read_csv

    return read_csv(Path(source))


def without_password(url: str) -> str:
    """A URL as it may be shown and kept."""
    return re.sub(r"//([^:/@]*):[^@]*@", r"//\1:***@", url)


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
