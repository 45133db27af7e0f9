"""Optuna's journal file, whose lock the kernel releases and whose torn last line is cut off.

A writer that the kernel kills, or a full disk, leaves a last line without its end. Optuna would
glue the next entry to it and never read the journal again, so whoever takes the lock looks at the
last byte first. What a torn line said is restored from plan and records.
"""

from __future__ import annotations

import errno
import json
import os
import warnings
from pathlib import Path
from typing import Any

import optuna
from filelock import FileLock
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.storages.journal._file import get_lock_file

from study.records.store import LOCK_POLL_S

BLOCK = 1 << 16


def open_journal(path: Path) -> JournalStorage:
    """The storage in the journal at ``path``, which is made if it is not there.

    Raises:
        ValueError: if an entry other than the last cannot be read.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            return JournalStorage(Journal(str(path), RepairingLock(path)))
    except (json.JSONDecodeError, ValueError, KeyError) as error:
        raise ValueError(
            f"{path} cannot be read as an Optuna journal ({error}); once no worker of this "
            "experiment runs, move it away: the next launch makes it again from the records"
        ) from error


class Journal(JournalFileBackend):
    """Appends without waiting for the disk.

    A journal that a power failure cut short is made whole again from the records, which are
    synced; Optuna would sync several times a run.
    """

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Append entries under the lock."""
        lines = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs).encode()
        with get_lock_file(self._lock), open(self._file_path, "ab", buffering=0) as file:
            if file.write(lines) < len(lines):  # the next who takes the lock cuts it off
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._file_path)


class RepairingLock(JournalFileOpenLock):
    """A lock that the kernel releases when its holder dies; taking it repairs the journal.

    Optuna's own lock files outlive a killed worker and stop everybody for half a minute.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._lock = FileLock(journal.with_suffix(".lock"))

    def acquire(self) -> bool:
        """Wait for the lock, then cut off an unfinished last line."""
        self._lock.acquire(poll_interval=LOCK_POLL_S)
        try:
            cut_torn_line(self._journal)
        except BaseException:
            self._lock.release()
            raise
        return True

    def release(self) -> None:
        """Let others have it."""
        self._lock.release()


def cut_torn_line(journal: Path) -> bool:
    """Cut off a last line without its end, kept in ``.torn`` beside; call under the lock.

    Returns:
        Whether there was one.
    """
    with journal.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        start = end
        while start > 0:
            at = max(0, start - BLOCK)
            file.seek(at)
            block = file.read(start - at)
            if end == start and block.endswith(b"\n"):
                return False
            newline = block.rfind(b"\n")
            start = at if newline < 0 else at + newline + 1
            if newline >= 0:
                break
        if start == end:
            return False
        file.seek(start)
        with journal.with_suffix(".torn").open("ab") as kept:
            kept.write(file.read() + b"\n")
        file.truncate(start)
    return True
