"""Which Optuna storage an experiment has, and the lock under which runs are claimed in it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from time import monotonic, sleep
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import optuna
import sqlalchemy as sa
from filelock import FileLock
from optuna.storages import BaseStorage, RDBStorage
from optuna.trial import TrialState
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError

from study.records.location import sqlalchemy_url, without_password
from study.records.store import LOCK_POLL_S, ExperimentStore
from study.sweep.claims.journal import open_journal
from study.sweep.errors import StorageAwayError

optuna.logging.set_verbosity(optuna.logging.WARNING)

PATIENCE_S = 600.0
"""A database may be away so long (a restart, a failover) before its workers give up."""
RETRY_EVERY_S = 1.0
HELD_S = 60.0
"""A database takes its lock back from a holder that says nothing for so long: it was stopped, or
its machine is gone. Less than a lease, which those who wait for the lock cannot renew."""
ENGINE = {"pool_pre_ping": True}
"""A connection that the server closed is replaced, not used."""


RUNNING = sa.text(
    "SELECT t.trial_id, a.key, a.value_json FROM trials t JOIN trial_user_attributes a "
    "ON a.trial_id = t.trial_id WHERE t.study_id = :study_id AND t.state = 'RUNNING' "
    "AND a.key IN ('run_id', 'lease') ORDER BY t.trial_id"
)


@dataclass(frozen=True)
class RunningTrial:
    """A claim as the storage has it."""

    trial_id: int
    run_id: str
    lease: dict[str, Any]


class Storage:
    """An experiment's Optuna storage."""

    def __init__(self, store: ExperimentStore, url: str | None = None) -> None:
        """Opens the storage, and makes its tables if it is a new database.

        Args:
            store: The experiment.
            url: ``sqlite:///FILE`` or ``postgresql://...``; None: a journal in the experiment's
                directory.

        Raises:
            ValueError: one sentence if the storage cannot be opened; it never says a password.
        """
        self.place = "journal" if url is None else without_password(url)
        self._file_lock = store.path / "claims.lock"
        self._engine: sa.Engine | None = None
        """Of a database; None: a journal."""
        if url is None:
            self.trials: BaseStorage = open_journal(store.journal_path)
            return
        try:
            backend = _database(sqlalchemy_url(url))
        except (SQLAlchemyError, RuntimeError, ImportError) as error:
            raise ValueError(f"storage {self.place} cannot be opened: {_why(error)}") from None
        self._engine = backend.engine
        self.trials = optuna.storages.get_storage(backend)

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """One claimant of the experiment called ``name`` at a time, on all machines."""
        if self._engine is None or self._engine.dialect.name != "postgresql":
            lock = FileLock(self._file_lock)
            with lock.acquire(poll_interval=LOCK_POLL_S):
                yield
            return
        with _advisory_lock(self._engine, name):
            yield

    def running(self, study_id: int) -> list[RunningTrial]:
        """Claims of a study that have not ended.

        From a database by one query: Optuna would load each unfinished trial whole, every time.
        """
        if self._engine is None:
            trials = self.trials.get_all_trials(
                study_id, deepcopy=False, states=(TrialState.RUNNING,)
            )
            found = {trial._trial_id: trial.user_attrs for trial in trials}
        else:
            found = {}
            with self._engine.connect() as connection:
                for trial_id, key, value in connection.execute(RUNNING, {"study_id": study_id}):
                    found.setdefault(trial_id, {})[key] = json.loads(value)
        return [
            RunningTrial(trial_id, str(a["run_id"]), a["lease"])
            for trial_id, a in found.items()
            if "run_id" in a and "lease" in a  # somebody else's trial is no claim
        ]


def _database(url: str) -> RDBStorage:
    """The database, its tables made by one process at a time."""
    engine = sa.create_engine(url)
    try:
        if engine.dialect.name != "postgresql":
            return RDBStorage(url, engine_kwargs=ENGINE)
        with _advisory_lock(engine, "tables"):
            return RDBStorage(url, engine_kwargs=ENGINE)
    finally:
        engine.dispose()


@contextmanager
def _advisory_lock(engine: sa.Engine, name: str) -> Iterator[None]:
    """PostgreSQL's own lock: the server releases it when its holder's connection ends."""
    key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)
    with engine.begin() as connection:
        limit = f"SET LOCAL idle_in_transaction_session_timeout = {HELD_S * 1000:.0f}"
        connection.execute(sa.text(limit))
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})
        yield


def _is_outage(error: BaseException | None) -> bool:
    """Whether the server is away, as opposed to a statement that it refused."""
    if isinstance(error, optuna.exceptions.StorageInternalError):
        return _is_outage(error.__cause__)
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True  # whatever the server called it when it ended the connection
    return isinstance(error, OperationalError | InterfaceError)


def _why(error: Exception) -> str:
    """The first line of what a driver says, without SQLAlchemy's link to its pages."""
    if isinstance(error, ImportError):
        return f"{error}; pip install -e '.[postgres]'"
    original = error.orig if isinstance(error, DBAPIError) else error
    lines = [line.strip() for line in str(original).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


class Patient(Protocol):
    """Something that uses a storage."""

    storage: Storage


P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=Patient)


def patiently(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Repeat a method while its database is away, for :data:`PATIENCE_S`.

    Raises:
        StorageAwayError: if the database stayed away.
    """

    def repeat(self: S, *args: P.args, **kwargs: P.kwargs) -> R:
        until = monotonic() + PATIENCE_S
        while True:
            try:
                return method(self, *args, **kwargs)
            except (DBAPIError, optuna.exceptions.StorageInternalError) as error:
                if not _is_outage(error):
                    raise
                if monotonic() > until:
                    raise StorageAwayError(
                        f"storage {self.storage.place} has not answered for {PATIENCE_S:g} s "
                        f"({_why(error)}); once it does, the same command resumes"
                    ) from None
            sleep(RETRY_EVERY_S)

    return wraps(method)(repeat)  # type: ignore[return-value]  # the same signature
