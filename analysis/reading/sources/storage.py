"""Optuna storages, opened for reading alone: nothing is created in them, nothing is changed."""

from __future__ import annotations

import json
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

import optuna
import sqlalchemy as sa
import sqlalchemy.exc
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

from analysis.reading.sources.raw import existing_file
from study.records.location import scrubbed, sqlalchemy_url, without_password

CONNECT_TIMEOUT_S = 10
READ_ONLY = {
    "connect_timeout": CONNECT_TIMEOUT_S,
    "options": "-c default_transaction_read_only=on",
}
"""The server itself refuses what would change a PostgreSQL storage."""
UNREADABLE = (
    sqlalchemy.exc.SQLAlchemyError,
    optuna.exceptions.OptunaError,
    RuntimeError,  # written by another version of Optuna
    KeyError,
    json.JSONDecodeError,
    UnicodeDecodeError,
)
"""What a storage raises that is none, or not one that can be read here."""
FORMS = (
    "a storage is sqlite:///FILE, journal:FILE or postgresql://USER@HOST/DATABASE, where a "
    "password, if any, has its special characters percent-encoded, got {place}"
)
DRIVERS = {"psycopg": "pip install -e '.[postgres]'"}


@contextmanager
def opened(url: str) -> Iterator[BaseStorage]:
    """An Optuna storage for reading.

    Args:
        url: ``postgresql://USER@HOST/DATABASE``, ``sqlite:///FILE`` or ``journal:FILE``.

    Raises:
        ValueError: if it cannot be opened or read, here or while it is in use; one sentence, in
            which no password is.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    place = without_password(url)
    if place.endswith(":..."):
        raise ValueError(FORMS.format(place=place))
    try:
        storage = _storage(url)
        try:
            yield storage
        finally:
            storage.remove_session()
            if isinstance(storage, RDBStorage):
                storage.engine.dispose()
    except UNREADABLE as error:
        why = scrubbed(_why(error), url)
        # Without its cause: what a driver says may quote the URL, and a traceback shows causes.
        raise ValueError(f"{place} cannot be read as an Optuna storage: {why}") from None


def _storage(url: str) -> BaseStorage:
    if url.startswith("journal:"):
        path = existing_file(Path(url.removeprefix("journal:")))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            return JournalStorage(JournalFileBackend(str(path)))
    if url.startswith("sqlite:///"):
        path = Path(url.removeprefix("sqlite:///"))
        _check_sqlite(path)
        read_only = f"sqlite:///file:{quote(str(path.resolve()))}?mode=ro&uri=true"
        return RDBStorage(read_only, skip_table_creation=True)
    return _database(url)


def _database(url: str) -> RDBStorage:
    place = without_password(url)
    try:
        parsed = sa.make_url(sqlalchemy_url(url))
    except (sqlalchemy.exc.ArgumentError, ValueError):
        parsed = None
    if parsed is None or "@" in (parsed.host or ""):
        raise ValueError(FORMS.format(place=place))
    is_postgres = parsed.get_backend_name() == "postgresql"
    settings = {"connect_args": READ_ONLY} if is_postgres else {}
    try:
        return RDBStorage(
            parsed.render_as_string(hide_password=False),
            engine_kwargs=settings,
            skip_table_creation=True,
        )
    except ImportError as error:
        driver = str(getattr(error.__cause__, "name", None) or parsed.drivername)
        how = DRIVERS.get(driver, f"pip install {driver}")
        raise ValueError(
            f"{place} needs the driver {driver}, which is not installed: {how}"
        ) from None


def _check_sqlite(path: Path) -> None:
    """Refuse what Optuna would otherwise create, or add its tables to."""
    existing_file(path)
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            tables = {str(name) for (name,) in database.execute("SELECT name FROM sqlite_master")}
    except sqlite3.DatabaseError as error:
        raise ValueError(f"{path} is not a SQLite file that can be read: {error}") from error
    if not {"studies", "trials"} <= tables:
        raise ValueError(
            f"{path} is no Optuna storage: import a table of it as {path} --table NAME"
        )


def _why(error: Exception) -> str:
    """The first line of what a library says: a driver's own words where there are some."""
    cause = error.__cause__ if isinstance(error, optuna.exceptions.OptunaError) else error
    said = getattr(cause, "orig", None) or cause or error
    lines = [line.strip() for line in str(said).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
