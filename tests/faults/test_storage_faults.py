"""A journal that is torn, lost or unreadable; a database that goes away; records half on disk."""

from __future__ import annotations

import itertools
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from study.plan.experiment import PlannedRun
from study.sweep.claims import storage as storage_module
from study.sweep.errors import StorageAwayError
from study.sweep.schedule import read_state
from tests.cluster.postgres import private_server
from tests.faults.harness import Sweep
from tests.faults.injections import POINTS, Fault
from tests.sums import TALLY


def half_way(tmp_path: Path) -> Sweep:
    """A sweep whose worker died after some of its runs."""
    sweep = Sweep(tmp_path)
    (worker,) = sweep.launch([Fault("between record and tell", nth=4)])
    worker.wait(timeout=60)
    TALLY.injections += 1
    return sweep


def struck(sweep: Sweep, *, forgot: bool = False) -> None:
    TALLY.injections += 1
    sweep.finish(forgot=forgot)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("tail", [b'{"op_code": 4, "wor', b"\0" * 512, b"\xff\xfe garbage"])
def test_a_tail_that_is_no_entry(tmp_path: Path, tail: bytes) -> None:
    sweep = half_way(tmp_path)
    with sweep.store.journal_path.open("ab") as file:
        file.write(tail)
    struck(sweep)
    assert tail in sweep.store.journal_path.with_suffix(".torn").read_bytes()


@pytest.mark.timeout(200)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.nightly)])
def test_a_journal_cut_off_anywhere(tmp_path: Path, seed: int) -> None:
    sweep, rng = half_way(tmp_path), random.Random(seed)
    for nth in range(2, 6):
        content = sweep.store.journal_path.read_bytes()
        sweep.store.journal_path.write_bytes(content[: rng.randrange(len(content))])
        TALLY.injections += 1
        (worker,) = sweep.launch([Fault("between record and tell", nth=nth)])
        worker.wait(timeout=60)
        TALLY.injections += 1
        sweep.check_so_far()
    sweep.finish()


@pytest.mark.timeout(120)
def test_a_journal_that_is_gone_is_made_again_from_the_records(tmp_path: Path) -> None:
    sweep = half_way(tmp_path)
    sweep.store.journal_path.unlink()
    struck(sweep, forgot=True)


@pytest.mark.timeout(120)
def test_an_unreadable_journal_is_said_and_moved_away_by_hand(tmp_path: Path) -> None:
    sweep = half_way(tmp_path)
    lines = sweep.store.journal_path.read_bytes().splitlines(keepends=True)
    sweep.store.journal_path.write_bytes(b"".join([*lines[:3], b"{broken\n", *lines[3:]]))
    with pytest.raises(ValueError, match="move it away: the next launch makes it again"):
        sweep.launch()
    sweep.store.journal_path.rename(tmp_path / "away")
    struck(sweep, forgot=True)


@pytest.mark.timeout(120)
def test_a_record_that_a_power_failure_left_empty_is_named(tmp_path: Path) -> None:
    sweep = half_way(tmp_path)
    record = next(sweep.store.path.glob("*/*/record.json"))
    content = record.read_text()
    record.write_text("")
    with pytest.raises(ValueError, match=r"record\.json"):
        sweep.launch()
    record.write_text(content)
    struck(sweep)


@pytest.mark.timeout(120)
def test_what_a_power_failure_left_empty_of_an_attempt_and_a_worker_is_passed_over(
    tmp_path: Path,
) -> None:
    sweep = half_way(tmp_path)
    run = next(iter(read_state(sweep.store).open_runs))
    attempt = sweep.store.new_attempt(run.arm, run.run_id)
    (attempt / "result.json").write_text("")
    (sweep.store.workers_dir / "elsewhere-1.json").write_text("")
    struck(sweep)


def wait_for(sweep: Sweep, workers: Sequence[subprocess.Popen[bytes]], count: int) -> None:
    deadline = time.monotonic() + 60
    while len(list(sweep.store.path.glob("*/*/record.json"))) < count:
        assert time.monotonic() < deadline, sweep.output()
        assert all(worker.poll() is None for worker in workers), sweep.output()
        time.sleep(0.02)


@pytest.mark.cluster
@pytest.mark.timeout(200)
@pytest.mark.parametrize("engine", ["trl", "packed"])
def test_workers_outlive_their_database(tmp_path: Path, engine: str) -> None:
    with private_server() as server:
        sweep = Sweep(tmp_path, engine, seeds=4, storage=server.url)
        workers = sweep.launch(workers=2, step_s=0.1)
        for count in (2, 6):
            wait_for(sweep, workers, count)
            server.kill()
            TALLY.injections += 1
            time.sleep(1.5)
            server.start()
        for worker in workers:
            assert worker.wait(timeout=100) == 0, sweep.output()
        sweep.finish()


HOLD = """
import sys, time
from pathlib import Path
from study.records.store import ExperimentStore
from study.sweep.claims.storage import Storage
with Storage(ExperimentStore(Path(sys.argv[1])), sys.argv[2]).lock("toy"):
    print("held", flush=True)
    time.sleep(100)
"""


@pytest.mark.cluster
@pytest.mark.timeout(120)
def test_a_machine_that_stops_inside_the_lock_holds_nobody_up(tmp_path: Path) -> None:
    short = "import study.sweep.claims.storage; study.sweep.claims.storage.HELD_S = 1.0\n"
    with private_server() as server:
        sweep = Sweep(tmp_path, storage=server.url)
        command = [sys.executable, "-c", short + HOLD, str(sweep.store.path), server.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
            assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
            holder.send_signal(signal.SIGSTOP)
            TALLY.injections += 1
            try:
                sweep.finish()
            finally:
                holder.kill()


@pytest.mark.cluster
@pytest.mark.timeout(120)
def test_who_lost_the_lock_while_it_was_stopped_claims_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_module, "HELD_S", 0.5)
    with private_server() as server:
        sweep = Sweep(tmp_path, storage=server.url)
        plan, looks = sweep.plan(), 0

        def pick(unheld: Iterable[PlannedRun]) -> list[PlannedRun]:
            nonlocal looks
            looks += 1
            time.sleep(1.0 if looks == 1 else 0.0)
            return list(itertools.islice(unheld, 2))

        claims = sweep.claims()
        taken = claims.take(plan.arms, plan.runs, pick)
        TALLY.injections += 1
        assert [claim.run for claim in taken] == plan.runs[:2]
        assert looks == 2
        assert claims.held(plan) == {run.run_id for run in plan.runs[:2]}
        for claim in taken:
            claims.give_back(claim, "interrupted")
        sweep.finish()


@pytest.mark.cluster
@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", ["trl", "packed"])
def test_deaths_at_every_point_with_a_database(tmp_path: Path, engine: str) -> None:
    with private_server() as server:
        faults = [Fault(name) for name in POINTS if name != "record told, state not"]
        sweep = Sweep(tmp_path / "points", engine, storage=server.url)
        assert sweep.suffer(faults) == len(faults)
    with private_server() as server:  # of its own: both sweeps have one name and equal runs
        rng = random.Random(5)
        at_random = Sweep(tmp_path / "random", engine, 8, storage=server.url, rng=rng)
        at_random.kill_at_random(workers=2, kills=4)


def test_a_database_that_stays_away_ends_a_worker_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_module, "PATIENCE_S", 1.0)
    with private_server() as server:
        sweep = Sweep(tmp_path, storage=server.url)
        claims = sweep.claims()
        server.kill()
        with pytest.raises(StorageAwayError, match=r"has not answered for 1 s .*command resumes"):
            claims.take(sweep.plan().arms, sweep.plan().runs)
        server.start()
        assert claims.take(sweep.plan().arms, sweep.plan().runs)
