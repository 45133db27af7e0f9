"""Which Optuna storage an experiment has, and the lock under which runs are claimed in it."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from time import monotonic, sleep
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import optuna
import sqlalchemy as sa
from filelock import FileLock
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage, RDBStorage
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import DBAPIError

from study.records.location import sqlalchemy_url, without_password
from study.records.store import LOCK_POLL_S, ExperimentStore
from study.sweep.claims import rows
from study.sweep.claims.database import (
    ServerAwayError,
    engine_settings,
    is_outage,
    opening,
    reason,
)
from study.sweep.claims.journal import open_journal
from study.sweep.errors import StorageAwayError

optuna.logging.set_verbosity(optuna.logging.WARNING)

PATIENCE_S = 600.0
"""A database may be away so long (a restart, a failover) before its workers give up."""
RETRY_EVERY_S = 1.0
HELD_S = 60.0
"""A database takes its lock back from a holder that says nothing for so long: it was stopped, or
its machine is gone. Less than a lease, which those who wait for the lock cannot renew."""


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
            ServerAwayError: if its server does not serve for now.
            ValueError: one sentence if it cannot be opened; it never says a password.
        """
        self.place = "journal" if url is None else without_password(url)
        self.patience_s = PATIENCE_S
        """How long :func:`patiently` waits; 0 for what need not be done."""
        self.in_use = False
        """Whether a method that is repeated :func:`patiently` is under way."""
        self.back_at = -math.inf
        """When it came back from its last outage, by ``time.monotonic()``."""
        self._file_lock = store.path / "claims.lock"
        self._engine: sa.Engine | None = None
        """Of a database; None: a journal."""
        if url is None:
            self.trials: BaseStorage = open_journal(store.journal_path)
            return
        with opening(url):
            backend = _database(sqlalchemy_url(url))
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
            with rows.alone(self._engine).connect() as connection:
                for trial_id, key, value in connection.execute(RUNNING, {"study_id": study_id}):
                    found.setdefault(trial_id, {})[key] = json.loads(value)
        return [
            RunningTrial(trial_id, str(a["run_id"]), a["lease"])
            for trial_id, a in found.items()
            if "run_id" in a and "lease" in a  # somebody else's trial is no claim
        ]

    def make(self, study_id: int, trial: FrozenTrial) -> int:
        """Make a running trial; returns Optuna's number of it."""
        if self._engine is not None:
            return rows.make(self._engine, study_id, trial)
        return self.trials.create_new_trial(study_id, template_trial=trial)

    def report(self, trial_id: int, step: int, value: float) -> None:
        """Keep a value of a step; nothing if the trial has ended."""
        if self._engine is not None:
            rows.report(self._engine, trial_id, step, value)
            return
        with suppress(UpdateFinishedTrialError):
            self.trials.set_trial_intermediate_value(trial_id, step, value)

    def end(
        self,
        trial_id: int,
        state: TrialState,
        attributes: Mapping[str, Any],
        values: list[float] | None = None,
    ) -> None:
        """End a trial with user attributes and values; nothing if it has ended."""
        if self._engine is not None:
            rows.end(self._engine, trial_id, state, attributes, values)
            return
        with suppress(UpdateFinishedTrialError):
            for key, value in attributes.items():
                self.trials.set_trial_user_attr(trial_id, key, value)
            self.trials.set_trial_state_values(trial_id, state, values)


def _database(url: str) -> RDBStorage:
    """The database, its tables made by one process at a time."""
    settings = engine_settings(url)
    engine = sa.create_engine(url, **settings)
    try:
        if engine.dialect.name != "postgresql":
            return RDBStorage(url, engine_kwargs=settings)
        with _advisory_lock(engine, "tables"):
            return RDBStorage(url, engine_kwargs=settings)
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


class Patient(Protocol):
    """Something that uses a storage."""

    storage: Storage


P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=Patient)


def patiently(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Repeat a method while its database is away, for ``storage.patience_s``.

    Inside another such method nothing is waited for: what that one holds, its lock included, is
    lost by then, so it has to begin again. Nor in a process that hands its runs back after an
    interrupt: the interrupt goes on, and what is not handed back is free when the process ends.

    Raises:
        StorageAwayError: if the database stayed away.
    """

    def repeat(self: S, *args: P.args, **kwargs: P.kwargs) -> R:
        storage, interrupt, outage = (
            self.storage,
            sys.exception(),
            Outage(self.storage.place, self.storage.patience_s),
        )
        if storage.in_use:
            return method(self, *args, **kwargs)
        storage.in_use = True
        try:
            while True:
                try:
                    found = method(self, *args, **kwargs)
                    if outage.end():
                        storage.back_at = monotonic()
                    return found
                except (DBAPIError, optuna.exceptions.StorageInternalError) as error:
                    if not is_outage(error):
                        raise
                    if isinstance(interrupt, KeyboardInterrupt):
                        raise interrupt from None
                    outage.wait(error)
        finally:
            storage.in_use = False

    return wraps(method)(repeat)  # type: ignore[return-value]  # the same signature


def opened_patiently(store: ExperimentStore, url: str | None) -> Storage:
    """The storage for a worker, which may start at night: it waits where a launch is refused.

    Args:
        store: The experiment.
        url: As for :class:`Storage`.

    Raises:
        StorageAwayError: if the database stayed away.
        ValueError: one sentence if it cannot be opened for another reason.
    """
    outage = Outage("journal" if url is None else without_password(url), PATIENCE_S)
    while True:
        try:
            storage = Storage(store, url)
            if outage.end():
                storage.back_at = monotonic()
            return storage
        except ServerAwayError as error:
            outage.wait(error)


class Outage:
    """The time in which a database cannot be used, if there is such a time; said once."""

    def __init__(self, place: str, patience_s: float) -> None:
        self._place, self._patience_s = place, patience_s
        self._began: float | None = None
        self._tried_again = False

    def wait(self, error: Exception) -> None:
        """Wait until it is time to try again: at once the first time.

        The server may only have closed the connections that were kept, which the first error
        replaces. (To ask each whether it lives, before each use, costs as much as the use.)

        Raises:
            StorageAwayError: if it has lasted too long.
        """
        if not self._tried_again:
            self._tried_again = True
            return
        place, patience_s, now = self._place, self._patience_s, monotonic()
        began = now if self._began is None else self._began
        if now - began >= patience_s:
            raise StorageAwayError(
                f"storage {place} has not answered for {patience_s:g} s ({reason(error)}); "
                "once it does, the same command resumes"
            ) from None
        if self._began is None:
            self._began = began
            _say(f"storage {place} is away ({reason(error)}); trying again for {patience_s:g} s")
        sleep(RETRY_EVERY_S)

    def end(self) -> bool:
        """The database has answered; whether it had been away."""
        if self._began is not None:
            _say(f"storage {self._place} is back after {monotonic() - self._began:.0f} s")
        return self._began is not None


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
