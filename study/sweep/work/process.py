"""Child processes: where they come from, what they share, and how they ended."""

from __future__ import annotations

import json
import multiprocessing
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from study.sweep.work.child import LEAVING_SIGNALS, run_child
from study.sweep.work.messages import PackAssignment

FORKSERVER_ENDS_S = 0.5
"""A killed process answers no more some time before its parent can see that it ended."""


class Nursery:
    """Starts children; the first one pays for the engine's import, if there is a forkserver."""

    def __init__(self) -> None:
        self._context: BaseContext | None = None

    @contextmanager
    def child(self, pack: PackAssignment) -> Iterator[tuple[BaseProcess, Connection]]:
        """A child that trains ``pack``, and the pipe to it; it is ended with the block."""
        context = self._prepared(pack.engine_module)
        ours, theirs = multiprocessing.Pipe()
        process: Any = context.Process(  # type: ignore[attr-defined]
            target=run_child, args=(theirs, pack)
        )
        try:
            _start(process)
            theirs.close()  # or the end of the child would not end the pipe
            yield process, ours
        finally:
            if process.pid is not None:  # Ctrl-C may come while it starts
                process.kill()
                process.join()
            ours.close()

    def _prepared(self, engine_module: str) -> BaseContext:
        if self._context is None:
            methods = multiprocessing.get_all_start_methods()
            name = "forkserver" if "forkserver" in methods else "spawn"
            self._context = multiprocessing.get_context(name)
            if name == "forkserver":
                # What is missing here every child imports anew: what trains, and what pyarrow
                # loads on first use.
                preload = [
                    engine_module,
                    "study.sweep.work.child",
                    "pandas",
                    "pyarrow.vendored.version",
                ]
                self._context.set_forkserver_preload(preload)
        if self._context.get_start_method() == "forkserver":  # a new one, should it have died
            with ignoring_interrupts():
                forkserver.ensure_running()
        return self._context


def _start(process: BaseProcess) -> None:
    """Start a child, again if the forkserver was killed in this very moment."""
    try:
        process.start()
    except (EOFError, ConnectionError):
        time.sleep(FORKSERVER_ENDS_S)
        with ignoring_interrupts():
            forkserver.ensure_running()
        process.start()


@contextmanager
def ignoring_interrupts() -> Iterator[None]:
    """Processes started here ignore what asks their parent to leave."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in LEAVING_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def exit_reason(exitcode: int | None) -> tuple[str, str]:
    """How a child ended: the status of the attempts that it left unfinished, and a sentence."""
    if exitcode is not None and exitcode < 0:
        name = signal.Signals(-exitcode).name
        return "killed", f"the training process was ended by {name}"
    return "failed", f"the training process left with exit code {exitcode} and no result"


def noted_error(directory: Path) -> tuple[str, str] | None:
    """Status and reason that a child left in an attempt's directory; None if it left none."""
    path = directory / "error.json"
    if not path.exists():
        return None
    error = json.loads(path.read_text())
    return error["status"], error["reason"]
