"""The directory of an experiment: what is where, and which file makes a run done.

A run is done when ``record.json`` exists; it is written last, under the experiment's lock, by a
hard link that fails if there is one already, so two writers cannot both win. The directory may lie
on a disk that several machines share.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock

from study.records.files import (
    is_json,
    link_first,
    look_afresh,
    move,
    mtime_ns,
    read_text,
    undo,
    write_json,
    write_text,
)
from study.records.record import Record, read_record

LOCK_POLL_S = 0.005
"""How often a lock that another process holds is tried again; critical sections take milliseconds.
"""
REOPENED = 0
"""Number of the attempt under which it is noted that a run was reopened; real ones begin at 1."""
PUBLISHED = ("config.yaml", "provenance.json", "metrics.jsonl", "evaluations.parquet",
             "samples.jsonl", "probes.json", "adapter", "model")  # fmt: skip
"""What moves from the attempt's directory to the run's when a result is published."""


class ExperimentStore:
    """Files of one experiment below ``runs_dir``."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._records: dict[Path, tuple[int, Record]] = {}
        """Records by file, with the time at which it was written: workers look often."""

    @property
    def plan_path(self) -> Path:
        """Where the plan is."""
        return self.path / "plan.json"

    @property
    def journal_path(self) -> Path:
        """Optuna's storage."""
        return self.path / "optuna.journal"

    @property
    def workers_dir(self) -> Path:
        """One small file per living worker: what it trains, how far it is."""
        return self.path / "workers"

    def run_dir(self, arm: str, run_id: str) -> Path:
        """The directory of a run."""
        return self.path / arm / run_id

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the experiment's lock: one writer of plan, selections and new claims at a time."""
        self.path.mkdir(parents=True, exist_ok=True)
        with FileLock(self.path / "plan.lock").acquire(poll_interval=LOCK_POLL_S):
            look_afresh(self.path)  # what the holder before us made
            yield

    def read_plan(self) -> dict[str, Any] | None:
        """The parsed ``plan.json``, or None if there is none."""
        text = read_text(self.plan_path)
        return None if text is None else dict(json.loads(text))

    def plan_stamp(self) -> tuple[int, int]:
        """Changes whenever ``plan.json`` does: it is replaced, never written over.

        The file is opened for it: of a name alone, a network disk may remember an older file.
        """
        with self.plan_path.open("rb") as file:
            found = os.fstat(file.fileno())
        return found.st_ino, found.st_mtime_ns

    def write_plan(self, data: dict[str, Any]) -> None:
        """Replace ``plan.json`` in one step."""
        write_json(self.plan_path, data, sync=True)

    def read_selections(self) -> dict[str, dict[str, Any]]:
        """Selections by arm."""
        files = sorted((self.path / "selection").glob("*.json"))
        texts = {file.stem: read_text(file) for file in files}
        return {arm: json.loads(text) for arm, text in texts.items() if text is not None}

    def write_selection(self, arm: str, data: dict[str, Any]) -> None:
        """Write an arm's selection once; an existing one stays."""
        target = self.path / "selection" / f"{arm}.json"
        if not target.exists():
            write_json(target, data, sync=True)

    def record(self, arm: str, run_id: str) -> Record | None:
        """The record of a run, or None if the run is not done."""
        path = self.run_dir(arm, run_id) / "record.json"
        if path not in self._records:
            look_afresh(path.parent)
        stamp = mtime_ns(path)
        if stamp is None:
            return None
        if path not in self._records or self._records[path][0] != stamp:
            found = read_record(path)
            if found is None:
                return None
            self._records[path] = (stamp, found)
        return self._records[path][1]

    def begun(self, arm: str) -> list[str]:
        """Runs of an arm that have a directory: each that was ever begun has."""
        try:
            with os.scandir(self.path / arm) as entries:
                return sorted(entry.name for entry in entries)
        except FileNotFoundError:
            return []

    def accuracies(self, arm: str, run_id: str) -> dict[int, float]:
        """Held-out accuracy by optimizer step, of a run with a record."""
        path = self.run_dir(arm, run_id) / "metrics.jsonl"
        lines = (read_text(path) or "").splitlines()
        rows = [json.loads(line) for line in lines if '"eval/accuracy"' in line]
        return {row["step"]: row["eval/accuracy"] for row in rows}

    def publish(self, record: Record, attempt_dir: Path) -> bool:
        """Make a result final: move the attempt's files up, then link ``record.json``.

        Returns:
            False if another writer has published this run before; the attempt is dropped then.
        """
        run_dir = self.run_dir(record.arm, record.run_id)
        with self.lock():
            look_afresh(run_dir)
            first = not (run_dir / "record.json").exists()
            if first:
                moves = move(PUBLISHED, attempt_dir, run_dir)
                draft = attempt_dir / "record.json"
                write_json(draft, asdict(record), sync=True)
                first = link_first(draft, run_dir / "record.json")
                if not first:  # the disk did not keep the lock, or the look: the other's stand
                    undo(moves)
            # It is gone if another worker took it for a dead one's and published it.
            shutil.rmtree(attempt_dir, ignore_errors=True)
        return first

    def finished_attempt(self, arm: str, run_id: str) -> Path | None:
        """An attempt that left a result which nobody published, its worker having died.

        A result that a power failure left empty is removed: its run is trained again.
        """
        self._look_afresh(arm, run_id)
        for attempt_dir in sorted((self.run_dir(arm, run_id) / "attempts").glob("*")):
            look_afresh(attempt_dir)
            text = read_text(attempt_dir / "result.json")
            if text is not None and is_json(text):
                return attempt_dir
            if text is not None:
                (attempt_dir / "result.json").unlink(missing_ok=True)
        return None

    def clear_published(self, arm: str, run_id: str) -> None:
        """Remove what a worker that died right after it published left of the attempt."""
        for result in (self.run_dir(arm, run_id) / "attempts").glob("*/result.json"):
            shutil.rmtree(result.parent, ignore_errors=True)

    def new_attempt(self, arm: str, run_id: str) -> Path:
        """Create the directory of the next attempt at a run.

        Earlier attempts that nobody noted are those whose worker died; they are noted now and
        cost no retry.
        """
        self._look_afresh(arm, run_id)
        parent = self.run_dir(arm, run_id) / "attempts"
        parent.mkdir(parents=True, exist_ok=True)
        taken = sorted(int(p.name) for p in parent.iterdir() if p.name.isdigit())
        noted = {line["attempt"] for line in self._attempt_lines(arm, run_id)}
        for number in taken:
            if number not in noted:
                self.append_attempt(arm, run_id, number, "killed", "its worker died", spent=False)
        path = parent / str(max(taken, default=0) + 1)
        path.mkdir()
        return path

    def append_attempt(
        self,
        arm: str,
        run_id: str,
        attempt: int,
        status: str,
        reason: str,
        spent: bool = True,
        pack: int = 1,
    ) -> None:
        """Note a failed attempt, once.

        A worker that slept may come back to an attempt that another has noted as a dead one's.

        Args:
            arm: The run's arm.
            run_id: The run.
            attempt: Number of the attempt.
            status: ``failed``, ``oom``, ``killed`` or ``stalled``.
            reason: Why, in a sentence.
            spent: Whether it counts against the run's retries.
            pack: Runs that failed together, for a reason that may be any one's; a run with more
                than 1 here is tried again alone.
        """
        line = {"attempt": attempt, "status": status, "reason": reason, "spent": spent}
        line |= {"pack": pack} if pack > 1 else {}
        self._look_afresh(arm, run_id)
        path = self._attempts_path(arm, run_id)
        noted = self._attempt_lines(arm, run_id)
        if attempt != REOPENED and any(entry["attempt"] == attempt for entry in noted):
            return
        whole = [*noted, {**line, "time": now()}]
        write_text(path, "".join(json.dumps(entry) + "\n" for entry in whole))

    def reopen(self, arm: str, run_id: str) -> None:
        """Forgive a run its spent retries; its history stays."""
        self.append_attempt(arm, run_id, REOPENED, "reopened", "retry=true", spent=False)

    def attempts(self, arm: str, run_id: str) -> list[dict[str, Any]]:
        """Failed attempts of a run since it was last reopened."""
        lines = self._attempt_lines(arm, run_id)
        reopened = [i for i, line in enumerate(lines) if line["status"] == "reopened"]
        return lines[reopened[-1] + 1 :] if reopened else lines

    def _attempt_lines(self, arm: str, run_id: str) -> list[dict[str, Any]]:
        lines = (read_text(self._attempts_path(arm, run_id)) or "").splitlines(keepends=True)
        return [
            json.loads(line) for line in lines if line.endswith("\n")
        ]  # a torn last line is none

    def _attempts_path(self, arm: str, run_id: str) -> Path:
        return self.run_dir(arm, run_id) / "attempts.jsonl"

    def _look_afresh(self, arm: str, run_id: str) -> None:
        """See what other machines have made of a run by now."""
        for directory in (self.path, self.path / arm, self.run_dir(arm, run_id)):
            look_afresh(directory)


def now() -> str:
    """The time as ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
