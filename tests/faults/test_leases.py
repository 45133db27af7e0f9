"""Workers on other machines, seen by their leases only: dead, asleep, with a wrong clock."""

from __future__ import annotations

import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest
from filelock import FileLock, Timeout
from optuna.trial import FrozenTrial, TrialState

from study.sweep.claims.storage import Storage
from tests.faults.harness import PATIENCE_S, Sweep
from tests.sums import TALLY

ENGINES = ["packed", pytest.param("trl", marks=pytest.mark.nightly)]
LEASE_S = 5.0
ELSEWHERE = f"""
    import socket, time
    import study.sweep.claims.claims, study.sweep.claims.leases
    socket.gethostname = lambda: "elsewhere"
    study.sweep.claims.leases.LEASE_S = {LEASE_S}
    study.sweep.claims.claims.RENEW_EVERY_S = 1.0
"""
HERE = "import study.sweep.claims.leases; study.sweep.claims.leases.WATCHED_S = 3.0"
BEHIND = """
    class Clock:
        time, monotonic = staticmethod(lambda: time.time() - 3600), time.monotonic
    study.sweep.claims.leases.time = Clock
"""
"""Its leases look as if they had run out long ago."""


def trials(sweep: Sweep) -> list[FrozenTrial]:
    storage = Storage(sweep.store, sweep.storage).trials
    return [t for s in storage.get_all_studies() for t in storage.get_all_trials(s._study_id)]


def wait_for_training(sweep: Sweep, count: int = 1) -> list[FrozenTrial]:
    """Wait until runs are under way and some are done; what is claimed then."""
    deadline = time.monotonic() + 60
    while True:
        running = [t for t in trials(sweep) if t.state is TrialState.RUNNING]
        under_way = list(sweep.store.path.glob("*/*/attempts/*/metrics.jsonl"))
        if running and under_way and len(list(sweep.store.path.glob("*/*/record.json"))) >= count:
            return running
        assert time.monotonic() < deadline, sweep.output()
        time.sleep(0.02)


def family(worker: subprocess.Popen[bytes]) -> list[psutil.Process]:
    process = psutil.Process(worker.pid)
    return [process, *process.children(recursive=True)]


def put_to_sleep(sweep: Sweep, worker: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Stop a family while it holds no lock of a file: systems take those back from the dead only.

    A file server would: its clients lose their locks when they do not answer.
    """
    while True:
        processes = family(worker)
        for process in processes:
            process.send_signal(signal.SIGSTOP)
        if not any(is_locked(path) for path in sweep.store.path.glob("*.lock")):
            return processes
        for process in reversed(processes):
            process.send_signal(signal.SIGCONT)
        time.sleep(0.05)


def is_locked(path: Path) -> bool:
    try:
        with FileLock(path).acquire(timeout=0.05):
            return False
    except Timeout:
        return True


def work_here(sweep: Sweep, step_s: float = 0.0) -> None:
    for worker in sweep.launch(step_s=step_s, first=HERE):
        assert worker.wait(timeout=PATIENCE_S) == 0, sweep.output()


@pytest.mark.timeout(200)
@pytest.mark.parametrize("engine", ENGINES)
def test_runs_of_a_dead_machine_are_taken_over_after_the_lease(tmp_path: Path, engine: str) -> None:
    sweep = Sweep(tmp_path, engine)
    (away,) = sweep.launch(step_s=0.3, first=ELSEWHERE)
    wait_for_training(sweep)
    for process in family(away):
        process.kill()
    away.wait()
    TALLY.injections += 1
    held = {t.user_attrs["run_id"]: t for t in trials(sweep) if t.state is TrialState.RUNNING}
    work_here(sweep)
    assert held
    for old in held.values():
        told = next(t for t in trials(sweep) if t._trial_id == old._trial_id)
        if told.state is TrialState.FAIL:  # else it died between record and tell
            assert told.datetime_complete is not None
            assert told.datetime_complete.timestamp() >= old.user_attrs["lease"]["expires"]
            assert told.user_attrs["status"] == "killed"
    sweep.finish()


@pytest.mark.timeout(200)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_machine_that_slept_and_wakes_doubles_nothing(tmp_path: Path, engine: str) -> None:
    sweep = Sweep(tmp_path, engine)
    (away,) = sweep.launch(step_s=0.3, first=ELSEWHERE)
    wait_for_training(sweep)
    asleep = put_to_sleep(sweep, away)
    TALLY.injections += 1
    try:
        work_here(sweep)
    finally:
        for process in reversed(asleep):
            process.send_signal(signal.SIGCONT)
    assert away.wait(timeout=PATIENCE_S) == 0, sweep.output()
    sweep.finish()


@pytest.mark.nightly
@pytest.mark.timeout(200)
def test_a_clock_that_is_an_hour_behind_costs_no_result(tmp_path: Path) -> None:
    sweep = Sweep(tmp_path)
    (away,) = sweep.launch(step_s=0.1, first=ELSEWHERE + BEHIND)
    wait_for_training(sweep)
    TALLY.injections += 1
    work_here(sweep, step_s=0.1)
    assert away.wait(timeout=PATIENCE_S) == 0, sweep.output()
    told = Counter(t.user_attrs["run_id"] for t in trials(sweep) if "record" in t.user_attrs)
    assert set(told.values()) == {1}
    sweep.finish()
