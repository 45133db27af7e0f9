"""Where sweeps come from: one module a source, each a function that returns a :class:`RawSweep`.

Optuna and W&B are imported here alone, and only once they are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from analysis.reading.place import is_storage
from analysis.reading.sources.raw import RawSweep
from study.records.location import without_password

__all__ = ["RawSweep", "SourceOptions", "read_source"]

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


def read_source(source: str, options: SourceOptions) -> RawSweep:
    """Read a sweep from wherever ``source`` says.

    Args:
        source: A CSV file, a SQLite file, the URL of an Optuna storage (``sqlite:///FILE``,
            ``postgresql://...``, ``journal:FILE``), or ``wandb:ENTITY/PROJECT``.
        options: Further facts that some sources need.

    Raises:
        ValueError: if it is none of these, cannot be read, or an option is not of that source.
    """
    is_url = is_storage(source)
    shown = without_password(source) if is_url else source
    is_optuna = source.startswith((*DATABASES, "journal:"))
    is_sqlite = not is_optuna and source.lower().endswith(SQLITE_SUFFIXES)
    if options.table is not None and not is_sqlite:
        raise ValueError(f"--table is only read with a SQLite file, got {shown}")
    if options.study_name is not None and not is_optuna:
        raise ValueError(f"--study-name is only read with an Optuna storage, got {shown}")
    if is_optuna:
        from analysis.reading.sources.optuna import read_optuna

        return read_optuna(source, options.study_name)
    if source.startswith("wandb:"):
        from analysis.reading.sources.wandb import read_wandb

        return read_wandb(source.removeprefix("wandb:"), history=options.history)
    if is_url:
        raise ValueError(
            f"a source is a CSV file, a SQLite file, an Optuna storage (sqlite:///FILE, "
            f"postgresql://..., journal:FILE) or wandb:ENTITY/PROJECT, got {shown}"
        )
    if is_sqlite:
        from analysis.reading.sources.sqlite import read_sqlite

        return read_sqlite(Path(source), options.table)
    from analysis.reading.sources.csv import read_csv

    return read_csv(Path(source))
