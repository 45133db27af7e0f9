"""A SQLite file: one table, one row a run."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd

from analysis.reading.sources.raw import RawSweep, existing_file, file_sha256

OPTUNA_TABLE = "trial_user_attributes"


def read_sqlite(path: Path, table: str | None) -> RawSweep:
    """Read one table of a SQLite file.

    Args:
        path: The file; it is opened for reading only.
        table: Its name; None: the only one.

    Raises:
        ValueError: if the file is not there or no database, or the table is not there, is empty,
            or is one of several and not named.
    """
    existing_file(path)
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            name = _table(path, _tables(database), table)
            frame = pd.read_sql_query(f'SELECT * FROM "{name}"', database)
    except (sqlite3.DatabaseError, pd.errors.DatabaseError) as error:
        raise ValueError(f"{path} is not a SQLite file that can be read: {error}") from error
    if frame.empty:
        raise ValueError(f"table {name} of {path} has no row")
    return RawSweep(f"{path}, table {name}", frame.astype(object), file_sha256(path))


def _tables(database: sqlite3.Connection) -> list[str]:
    query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
    return [str(name) for (name,) in database.execute(query) if not name.startswith("sqlite_")]


def _table(path: Path, tables: list[str], wanted: str | None) -> str:
    if OPTUNA_TABLE in tables and wanted is None:
        raise ValueError(f"{path} is an Optuna storage: import it as sqlite:///{path}")
    if not tables:
        raise ValueError(f"{path} has no table")
    if wanted is None and len(tables) > 1:
        raise ValueError(f"{path} has several tables, name one by --table: {', '.join(tables)}")
    if wanted is not None and wanted not in tables:
        raise ValueError(f"{path} has no table {wanted!r}; it has {', '.join(tables)}")
    return wanted or tables[0]
