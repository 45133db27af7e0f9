"""Connections to the database of an Optuna storage, and what is meant by its errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import optuna
import sqlalchemy as sa
from optuna.exceptions import OptunaError
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError

from study.records.location import sqlalchemy_url, without_password

POSTGRESQL: dict[str, int] = {
    "connect_timeout": 5,
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 4,
    "tcp_user_timeout": 60_000,
}
"""Parameters of libpq (the last in ms, the others in s) where the URL has none of its own: a server
whose machine vanished without a word is missed after a minute, where Linux waits for two hours."""
DISK_FULL = "53100"
"""SQLSTATE of a server whose disk is full."""
READ_ONLY = "25006"
"""SQLSTATE of a server that only reads: during a failover, the standby that takes over."""
REFUSALS = ("authentication failed", "no password supplied", "no pg_hba.conf entry",
            "does not exist", "no such table")  # fmt: skip
"""What servers say to those whom they will not serve later either."""


def engine_settings(url: str) -> dict[str, Any]:
    """Keyword arguments of SQLAlchemy's engine for a storage.

    Args:
        url: As SQLAlchemy wants it.
    """
    settings: dict[str, Any] = {}
    parsed = sa.make_url(url)
    if parsed.get_backend_name() == "postgresql":
        ours = {key: value for key, value in POSTGRESQL.items() if key not in parsed.query}
        settings["connect_args"] = ours
    return settings


def check_answers(url: str | None) -> None:
    """Refuse a PostgreSQL server that takes no connection: asked first, it costs seconds.

    Args:
        url: Of the storage; None: a journal.

    Raises:
        ValueError: one sentence, which never says a password.
    """
    if url is None or not url.startswith("postgresql"):
        return
    with opening(url):
        ours = sqlalchemy_url(url)
        with sa.create_engine(ours, poolclass=sa.NullPool, **engine_settings(ours)).connect():
            pass


class ServerAwayError(ValueError):
    """A storage cannot be opened because its server does not serve for now."""

    def __init__(self, sentence: str, why: str) -> None:
        super().__init__(sentence)
        self.why = why
        """What the driver said."""


@contextmanager
def opening(url: str) -> Iterator[None]:
    """What goes wrong while a storage is opened, in a sentence.

    Raises:
        ServerAwayError: if the server is down, or takes no more connections.
        ValueError: for everything else; neither says a password.
    """
    try:
        yield
    except (SQLAlchemyError, OptunaError, RuntimeError, ImportError) as error:
        why = reason(error)
        sentence = f"storage {without_password(url)} cannot be opened: {why}"
        if is_outage(error):
            raise ServerAwayError(sentence, why) from None
        raise ValueError(sentence) from None


def is_outage(error: BaseException | None) -> bool:
    """Whether the server cannot serve for now, as opposed to a statement that it refused.

    A full disk of the server is one too: whoever looks after it frees some, and the sweep goes on.
    """
    if isinstance(error, optuna.exceptions.StorageInternalError):
        return is_outage(error.__cause__)
    if not isinstance(error, DBAPIError):
        return False
    if error.connection_invalidated or getattr(error.orig, "sqlstate", None) == READ_ONLY:
        return True  # whatever the server called it when it ended the connection
    refused = any(words in str(error.orig) for words in REFUSALS)
    return isinstance(error, OperationalError | InterfaceError) and not refused


def reason(error: BaseException) -> str:
    """The first line of what a driver says, without SQLAlchemy's link to its pages."""
    if isinstance(error, ImportError):
        return f"{error}; pip install -e '.[postgres]'"
    if isinstance(error, ServerAwayError):
        return error.why
    if isinstance(error, optuna.exceptions.StorageInternalError) and error.__cause__:
        return reason(error.__cause__)
    original = error.orig if isinstance(error, DBAPIError) else error
    lines = [line.strip() for line in str(original).splitlines() if line.strip()]
    said = lines[0] if lines else type(error).__name__
    full = getattr(original, "sqlstate", None) == DISK_FULL
    return f"the server's disk is full: {said}" if full else said
