"""Faults at chosen points, installed in the process that is to suffer them; each strikes once.

A worker's script imports this module first, and so does every child of it (a script is imported by
the children of its process), so a fault can strike on either side of the pipe and the product has
no hooks. What has struck leaves a marker, so that the next launch is spared it.
"""

from __future__ import annotations

import contextlib
import json
import os
import pydoc
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Point:
    """A call before or after which a fault strikes."""

    owner: str
    name: str
    side: str
    """``worker`` or ``child``."""
    after: bool = False


STORE, CLAIMS = "study.records.store.ExperimentStore", "study.sweep.claims.claims.Claims"
POINTS = {
    "before claim": Point(CLAIMS, "take", "worker"),
    "after claim": Point(CLAIMS, "take", "worker", after=True),
    "inside the claims' lock": Point(CLAIMS, "_claim", "worker", after=True),
    "before the attempt": Point(STORE, "new_attempt", "worker"),
    "after the attempt": Point(STORE, "new_attempt", "worker", after=True),
    "before publish": Point(STORE, "publish", "worker"),
    "files moved, no record": Point("study.records.store.os", "link", "worker"),
    "record, attempt still there": Point("study.records.store.shutil", "rmtree", "worker"),
    "between record and tell": Point(CLAIMS, "finish", "worker"),
    "record told, state not": Point(
        "optuna.storages.JournalStorage", "set_trial_state_values", "worker"
    ),
    "reporting an accuracy": Point(CLAIMS, "report", "worker"),
    "before the plan grows": Point(STORE, "write_plan", "worker"),
    "plan grown, not described": Point(STORE, "write_plan", "worker", after=True),
    "before a selection": Point(STORE, "write_selection", "worker"),
    "selection, plan not grown": Point(STORE, "write_selection", "worker", after=True),
    "child starts": Point("study.sweep.work.child.PackSink", "admit", "child"),
    "during rollout": Point("tests.engine_double", "_fault", "child"),
    "after metrics": Point("study.records.writer.RunWriter", "metrics", "child", after=True),
    "before an evaluation": Point("study.records.writer.RunWriter", "evaluation", "child"),
    "before the result": Point("study.sweep.work.child.Desk", "leave_result", "child"),
    "result, not announced": Point(
        "study.sweep.work.child.Desk", "leave_result", "child", after=True
    ),
}
"""By what a reader would call it."""


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def _raise(error: BaseException) -> Callable[[], None]:
    def strike() -> None:
        raise error

    return strike


def _hang() -> None:
    time.sleep(3600)


def fill(ballast: Path) -> None:
    """Leave no room on the disk of a file."""
    with ballast.open("ab", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)) == size:
                    pass


ACTIONS: dict[str, Callable[[], None]] = {
    "kill": _kill,
    "leave": lambda: os._exit(7),
    "sys.exit(0)": _raise(SystemExit(0)),
    "sys.exit(3)": _raise(SystemExit(3)),
    "out of memory": _raise(MemoryError("injected")),
    "error": _raise(RuntimeError("injected")),
    "hang": _hang,
    "fill the disk": lambda: fill(Path(os.environ["FAULT_BALLAST"])),
}
ON_ENGINE = ("leave", "sys.exit(0)", "sys.exit(3)", "out of memory", "error", "hang")
"""What an engine may do to its process beside dying."""


@dataclass(frozen=True)
class Fault:
    """What strikes where, at the how manieth call in its process."""

    point: str
    nth: int = 1
    action: str = "kill"

    @property
    def marker(self) -> str:
        """Name of the file that says it has struck."""
        return f"{self.point}, {self.nth}, {self.action}"


def install(faults: Sequence[tuple[str, int, str]], markers: str, script: str) -> None:
    """Install faults in this process, but for those of the other side.

    Called by a worker's script, before anything else of it.

    Args:
        faults: Point, number of the call, action.
        markers: Directory of the markers.
        script: ``__name__`` of the script, by which it knows that a child imports it.
    """
    side = "worker" if script == "__main__" else "child"
    for fault in (Fault(*values) for values in faults):
        if fault.point in TEARING:
            TEARING[fault.point](side, fault, Path(markers))
        elif POINTS[fault.point].side == side:
            _wrap(POINTS[fault.point], fault, Path(markers))


def _wrap(point: Point, fault: Fault, markers: Path) -> None:
    owner = pydoc.locate(point.owner)
    original, calls = getattr(owner, point.name), 0

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        strikes = calls == fault.nth and is_first(markers, fault)
        if strikes and not point.after:
            ACTIONS[fault.action]()
        result = original(*args, **kwargs)
        if strikes and point.after:
            ACTIONS[fault.action]()
        return result

    setattr(owner, point.name, call)


def is_first(markers: Path, fault: Fault) -> bool:
    """Whether the fault has not struck before; it counts as struck from now on."""
    try:
        (markers / fault.marker).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _half_a_journal_entry(side: str, fault: Fault, markers: Path) -> None:
    """A writer that dies, or a disk that fills, in the middle of an entry, the lock held."""
    from study.sweep.claims.journal import Journal

    original, calls = Journal.append_logs, 0

    def append(self: Journal, logs: list[dict[str, Any]]) -> None:
        nonlocal calls
        calls += 1
        if side == "worker" and calls == fault.nth and is_first(markers, fault):
            self._lock.acquire()
            with open(self._file_path, "ab") as file:
                file.write(json.dumps(logs[0]).encode()[: 10 + fault.nth])
            _kill()
        original(self, logs)

    Journal.append_logs = append  # type: ignore[method-assign]


def _half_a_metrics_line(side: str, fault: Fault, markers: Path) -> None:
    from study.records.writer import RunWriter

    original, calls = RunWriter.metrics, 0

    def metrics(self: RunWriter, step: int, values: Any) -> None:
        nonlocal calls
        calls += 1
        if side == "child" and calls == fault.nth and is_first(markers, fault):
            with (self.directory / "metrics.jsonl").open("a") as file:
                file.write('{"step": 1, "train/lo')
            _kill()
        original(self, step, values)

    RunWriter.metrics = metrics  # type: ignore[method-assign]


TEARING: dict[str, Callable[[str, Fault, Path], None]] = {
    "half a journal entry": _half_a_journal_entry,
    "half a metrics line": _half_a_metrics_line,
}
"""Points where something is left half written."""
