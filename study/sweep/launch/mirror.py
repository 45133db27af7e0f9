"""Keeps the W&B mirror running beside a sweep, in a process of its own that may fail unharmed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from study.config import TrackerConfig
from study.records.store import ExperimentStore

LAST_PASS_S = 120.0
"""Time the mirror is given after the last run; W&B may hang, a sweep must not."""


@contextmanager
def mirroring(store: ExperimentStore, tracker: TrackerConfig) -> Iterator[None]:
    """Follow the sweep with ``python -m study.tracking`` until the block ends.

    Whatever becomes of the mirror, the block runs: it can be mirrored later.
    """
    if tracker.name == "none":
        yield
        return
    log = store.path / "wandb" / "mirror.log"
    process = _started(store, tracker, log)
    try:
        yield
    finally:
        if process is None or not _ended_well(process):
            again = f"python -m study.tracking {store.path} --mode {tracker.mode}"
            print(f"W&B mirror incomplete, see {log}; again with: {again}", file=sys.stderr)


def _started(
    store: ExperimentStore, tracker: TrackerConfig, log: Path
) -> subprocess.Popen[bytes] | None:
    command = [sys.executable, "-m", "study.tracking", str(store.path), "--follow"]
    command += ["--mode", tracker.mode, "--project", tracker.project]
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a") as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for the sweep; the mirror finishes its pass
            )
    except OSError as error:  # a full disk, no memory for a process
        print(f"warning: no W&B mirror: {error}", file=sys.stderr)
        return None


def _ended_well(process: subprocess.Popen[bytes]) -> bool:
    """Tell the mirror that this was the last change, and give it its time."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        return process.wait(LAST_PASS_S) == 0
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
