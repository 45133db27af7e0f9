"""What the errors of a database mean: away for now, or refused for good."""

from __future__ import annotations

import sqlite3

import optuna
import psycopg
import pytest
from sqlalchemy.exc import DBAPIError

from study.sweep.claims.database import ServerAwayError, is_outage, opening, reason

DENIED = 'connection failed: FATAL:  password authentication failed for user "me"'
READ_ONLY = psycopg.errors.ReadOnlySqlTransaction(
    "cannot execute UPDATE in a read-only transaction"
)
FULL = psycopg.errors.DiskFull("could not extend file")


def wrapped(error: Exception) -> DBAPIError:
    """As SQLAlchemy raises it."""
    base = sqlite3.Error if isinstance(error, sqlite3.Error) else psycopg.Error
    made = DBAPIError.instance("statement", {}, error, base)
    assert isinstance(made, DBAPIError)
    return made


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (psycopg.OperationalError("connection failed: connection refused"), True),
        (psycopg.OperationalError("FATAL:  sorry, too many clients already"), True),
        (READ_ONLY, True),  # a failover
        (FULL, True),
        (psycopg.OperationalError(DENIED), False),
        (psycopg.OperationalError('FATAL:  database "sweeps" does not exist'), False),
        (psycopg.errors.UndefinedTable('relation "trials" does not exist'), False),
        (sqlite3.OperationalError("database is locked"), True),
        (sqlite3.OperationalError("no such table: trials"), False),
    ],
)
def test_an_outage_is_what_waiting_can_mend(error: Exception, away: bool) -> None:
    assert is_outage(wrapped(error)) is away


def test_an_outage_inside_optuna_is_one() -> None:
    try:
        raise optuna.exceptions.StorageInternalError("commit") from wrapped(FULL)
    except optuna.exceptions.StorageInternalError as error:
        assert is_outage(error)
        assert reason(error) == "the server's disk is full: could not extend file"
        said = "cannot be opened: the server's disk is full"
        with pytest.raises(ServerAwayError, match=said), opening("postgresql://h/d"):
            raise


def test_who_opens_in_vain_hears_the_reason_once() -> None:
    refused = psycopg.OperationalError("connection failed: connection refused")
    with pytest.raises(ServerAwayError) as caught, opening("postgresql://me@h/d"):
        raise wrapped(refused)
    assert str(caught.value) == (
        "storage postgresql://me@h/d cannot be opened: connection failed: connection refused"
    )
    assert reason(caught.value) == "connection failed: connection refused"
    denied_for_good = pytest.raises(ValueError, match="authentication failed")
    with denied_for_good as denied, opening("postgresql://me@h/d"):
        raise wrapped(psycopg.OperationalError(DENIED))
    assert not isinstance(denied.value, ServerAwayError)
