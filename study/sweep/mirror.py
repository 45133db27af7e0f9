"""Keeps the W&B mirror running beside a sweep, in a process of its own that may fail unharmed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from study.config import TrackerConfig
from study.records.store import ExperimentStore

LAST_PASS_S = 120.0
"""Time the mirror is given after the last run; W&B may hang, a sweep must not."""


@contextmanager
def mirroring(store: ExperimentStore, tracker: TrackerConfig) -> Iterator[None]:
    """Follow the sweep with ``python -m study.tracking`` until the block ends."""
    if tracker.name == "none":
        yield
        return
    log = store.path / "wandb" / "mirror.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "study.tracking", str(store.path), "--follow"]
    command += ["--mode", tracker.mode, "--project", tracker.project]
    with log.open("a") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C is for the sweep; the mirror still finishes its pass
        )
    assert process.stdin is not None
    try:
        yield
    finally:
        process.stdin.close()  # tells the mirror that this was the last change
        try:
            process.wait(LAST_PASS_S)
        except subprocess.TimeoutExpired:
            process.kill()
        if process.returncode != 0:
            again = f"python -m study.tracking {store.path} --mode {tracker.mode}"
            print(f"W&B mirror incomplete, see {log}; again with: {again}", file=sys.stderr)
