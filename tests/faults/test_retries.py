"""Runs whose retries are spent are given up and listed; ``retry=true`` reopens them."""

from __future__ import annotations

import json
import time
from pathlib import Path

import psutil
import pytest

from study.sweep.schedule import read_state
from tests.cluster.launches import PRETENDED, WAIT_S, launch, launched, records
from tests.faults.harness import PATIENCE_S, Sweep
from tests.faults.injections import Fault
from tests.sums import TALLY

MODULE = "tests.cluster.torch_free"


def work(sweep: Sweep, *faults: Fault, retry: bool = False) -> None:
    for worker in sweep.launch(faults, retry=retry):
        assert worker.wait(timeout=PATIENCE_S) == 0, sweep.output()


@pytest.mark.timeout(200)
@pytest.mark.parametrize("engine", ["trl", "packed"])
def test_what_was_given_up_stays_so_until_it_is_reopened(tmp_path: Path, engine: str) -> None:
    sweep = Sweep(tmp_path, engine, max_retries=0)
    work(sweep, Fault("during rollout", action="error"))
    TALLY.injections += 1
    given_up = read_state(sweep.store).given_up
    assert len(given_up) == 1
    work(sweep)
    assert read_state(sweep.store).given_up == given_up
    # The reopened run fails once more, and is given up once more.
    again = Fault("during rollout", action="out of memory")
    work(sweep, again, retry=True)
    TALLY.injections += 1
    assert read_state(sweep.store).given_up == given_up
    sweep.check_so_far()
    sweep.finish(retry=True)
    (run_id,) = given_up
    (path,) = sweep.store.path.glob(f"*/{run_id}/attempts.jsonl")
    story = [json.loads(line)["status"] for line in path.read_text().splitlines()]
    assert story == ["failed", "reopened", "oom", "reopened"]
    ended = [t.user_attrs["status"] for t in sweep.seen().ended[run_id]]
    assert ended == [*story, "completed"]


@pytest.mark.timeout(300)
@pytest.mark.integration
def test_the_command_that_lists_given_up_runs_trains_them_with_retry(tmp_path: Path) -> None:
    limits = ("max_retries=0", "workers=1")
    (tmp_path / "peace").mkdir()
    assert launch(MODULE, tmp_path / "peace", *PRETENDED, *limits).returncode == 0
    expected = records(tmp_path / "peace")
    with launched(tmp_path, *limits) as parent:
        for _ in range(2):
            kill_a_child(parent.pid)
        said, _ = parent.communicate(timeout=WAIT_S)
    assert parent.returncode == 1 and said.count("given up") >= 1, said
    left = records(tmp_path)
    assert len(left) == 4 and expected.items() > left.items()
    again = launch(MODULE, tmp_path, *PRETENDED, *limits)
    assert again.returncode == 1 and records(tmp_path) == left
    done = launch(MODULE, tmp_path, *PRETENDED, *limits, "retry=true")
    assert done.returncode == 0, done.stdout + done.stderr
    assert records(tmp_path) == expected
    TALLY.launches += 3


def kill_a_child(parent: int) -> None:
    """As a system that is out of memory does to what trains."""
    deadline = time.monotonic() + WAIT_S
    while not (found := training(parent)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    found[0].kill()
    TALLY.injections += 1
    psutil.wait_procs(found[:1], timeout=20)


def training(parent: int) -> list[psutil.Process]:
    """Children of a forkserver below a process."""
    below = psutil.Process(parent).children(recursive=True)
    servers = {p.pid for p in below if "multiprocessing.forkserver" in " ".join(words(p))}
    return [p for p in below if p.ppid() in servers]


def words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []
