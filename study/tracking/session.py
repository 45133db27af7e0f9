"""A mirror process: passes over an experiment's files and, in mode ``online``, their upload."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from filelock import FileLock, Timeout

from study.records.store import ExperimentStore
from study.sweep.schedule import read_state
from study.tracking.marks import mirror_lock
from study.tracking.mirror import Mirror
from study.tracking.upload import Uploader

FOLLOW_EVERY_S = 3.0
REST = 4
"""A pass over a large sweep is followed by a rest of at least so many times its own length."""
NICE = 10
"""Training comes first on a machine whose cores are all busy."""
FIRST_WAIT_S, LONGEST_WAIT_S = 30.0, 600.0
"""Between uploads while W&B cannot be reached: doubled each time."""


class Session:
    """One mirror process: files, and in mode ``online`` their upload."""

    def __init__(
        self, store: ExperimentStore, project: str, online: bool, variables: Mapping[str, str]
    ) -> None:
        self.mirror = Mirror(store, project)
        log = self.mirror.marks.wandb_dir / "upload.log"
        self.uploader = Uploader(log, dict(variables)) if online else None
        self.wait_s, self.failed_at = 0.0, 0.0

    def step(self, *, live: bool, last: bool) -> int:
        """One pass; the ``last`` one waits no longer than :data:`FIRST_WAIT_S` after a failure.

        Returns:
            Number of runs whose files became complete.
        """
        fresh = self.mirror.step(live=live)
        if self.uploader is not None:
            self._upload(last)
            if live:
                self.uploader.follow([log.directory for log in self.mirror.live.values()])
        return fresh

    def _upload(self, last: bool) -> None:
        marks = self.mirror.marks
        waiting = [marks.wandb_dir / mark.directory for mark in marks.to_upload()]
        wait_s = min(self.wait_s, FIRST_WAIT_S) if last else self.wait_s
        if self.uploader is None or time.monotonic() < self.failed_at + wait_s:
            return
        reached = self.uploader.upload(waiting)
        marks.note_uploads()
        self.failed_at = time.monotonic()
        self.wait_s = 0.0 if reached else min(max(2 * self.wait_s, FIRST_WAIT_S), LONGEST_WAIT_S)

    def close(self) -> None:
        """End what is under way."""
        if self.uploader is not None:
            self.uploader.close()
        self.mirror.close()

    def complaints(self) -> list[str]:
        """What the store has and W&B's side lacks, in sentences."""
        failed = sorted(self.mirror.failed.items())
        found = [f"run {run_id} was not mirrored: {why}" for run_id, why in failed]
        waiting = len(self.mirror.marks.to_upload()) if self.uploader is not None else 0
        if waiting:
            log = self.mirror.marks.wandb_dir / "upload.log"
            found.append(f"{waiting} runs are not uploaded, see {log}; the same command resumes")
        return found


def follow(store: ExperimentStore, project: str, online: bool, variables: Mapping[str, str]) -> int:
    """Mirror until standard input closes, then once more.

    Of several mirrors of an experiment one works; the others wait for it to leave.

    Returns:
        Exit code: 1 if anything is missing on W&B's side.
    """
    os.nice(NICE)
    session, resting = None, 0.0
    lock = FileLock(mirror_lock(store))
    try:
        while True:
            last = _input_ends_within(max(FOLLOW_EVERY_S, resting))
            if session is None and _acquired(lock):
                session = Session(store, project, online, variables)
                session.mirror.marks.remove_unfinished(read_state(store).plan.experiment.name)
            began = time.monotonic()
            if session is not None:
                session.step(live=not last, last=last)
            resting = REST * (time.monotonic() - began)
            if last:
                return _said(session.complaints() if session is not None else [])
    finally:
        if session is not None:
            session.close()
        lock.release()


def _input_ends_within(seconds: float) -> bool:
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    return bool(ready) and not os.read(sys.stdin.fileno(), 1)


def _acquired(lock: FileLock) -> bool:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    return True


def mirror_once(
    store: ExperimentStore, project: str, online: bool, variables: Mapping[str, str], prune: bool
) -> int:
    """Mirror what is there.

    Returns:
        Exit code: 1 if anything is missing on W&B's side.

    Raises:
        ValueError: if another process mirrors the experiment now.
    """
    name = read_state(store).plan.experiment.name
    with _alone(store):
        session = Session(store, project, online, variables)
        session.mirror.marks.remove_unfinished(name)
        try:
            fresh = session.step(live=False, last=True)
        finally:
            session.close()
        marks = session.mirror.marks
        print(f"mirrored {fresh} run(s) of {store.path}")
        if online:
            done = sum(mark.uploaded is not None for mark in marks.by_run.values())
            print(f"W&B has {done} of {len(marks.by_run)} runs")
        if prune:
            print(f"removed W&B's files of {marks.prune()} uploaded run(s)")
        return _said(session.complaints())


@contextmanager
def _alone(store: ExperimentStore) -> Iterator[None]:
    lock = FileLock(mirror_lock(store))
    if not _acquired(lock):
        raise ValueError(f"{store.path} is being mirrored by another process; it will complete it")
    try:
        yield
    finally:
        lock.release()


def _said(complaints: list[str]) -> int:
    for sentence in complaints:
        print(sentence, file=sys.stderr)
    return 1 if complaints else 0
