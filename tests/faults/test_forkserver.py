"""The forkserver is killed: the next child comes from a new one."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from multiprocessing import forkserver

import pytest

from study.sweep.work.messages import PackAssignment
from study.sweep.work.process import Nursery
from tests.sums import TALLY

NOTHING = PackAssignment(
    runs=[], engine_module="tests.engine_double", stops_early=False, origin={"git_commit": ""}
)


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    """A nursery from which a child has come."""
    found = Nursery()
    assert exit_code(found) == 0
    yield found


def exit_code(nursery: Nursery) -> int | None:
    with nursery.child(NOTHING) as (child, _):
        child.join(timeout=60)
    return child.exitcode


def forkserver_pid() -> int:
    pid = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    assert isinstance(pid, int)
    return pid


@pytest.mark.timeout(100)
def test_between_two_children(nursery: Nursery) -> None:
    os.kill(forkserver_pid(), signal.SIGKILL)
    TALLY.injections += 1
    assert exit_code(nursery) == 0


@pytest.mark.timeout(100)
def test_while_a_child_starts(nursery: Nursery) -> None:
    pid = forkserver_pid()
    os.kill(pid, signal.SIGSTOP)  # or it would be too fast
    threading.Timer(0.5, os.kill, (pid, signal.SIGKILL)).start()
    TALLY.injections += 1
    assert exit_code(nursery) == 0
    assert forkserver_pid() != pid
