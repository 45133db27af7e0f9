"""A journal that is torn, lost or unreadable; a database that goes away; records half on disk."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from study.sweep import storage as storage_module
from study.sweep.errors import StorageAwayError
from tests.cluster.postgres import private_server
from tests.faults.harness import TALLY, Sweep
from tests.faults.injections import POINTS, Fault


def half_way(tmp_path: Path) -> Sweep:
    """A sweep whose worker died after some of its runs."""
    sweep = Sweep(tmp_path)
    (worker,) = sweep.launch([Fault("between record and tell", nth=4)])
    worker.wait(timeout=60)
    TALLY.injections += 1
    return sweep


def struck(sweep: Sweep) -> None:
    TALLY.injections += 1
    sweep.finish()


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
    struck(sweep)


@pytest.mark.timeout(120)
def test_an_unreadable_journal_is_said_and_moved_away_by_hand(tmp_path: Path) -> None:
    sweep = half_way(tmp_path)
    lines = sweep.store.journal_path.read_bytes().splitlines(keepends=True)
    sweep.store.journal_path.write_bytes(b"".join([*lines[:3], b"{broken\n", *lines[3:]]))
    with pytest.raises(ValueError, match="move it away: the next launch makes it again"):
        sweep.launch()
    sweep.store.journal_path.rename(tmp_path / "away")
    struck(sweep)


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


@pytest.mark.cluster
@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", ["trl", "packed"])
def test_deaths_at_every_point_with_a_database(tmp_path: Path, engine: str) -> None:
    with private_server() as server:
        faults = [Fault(name) for name in POINTS if name != "record told, state not"]
        sweep = Sweep(tmp_path / "points", engine, storage=server.url)
        assert sweep.suffer(faults) == len(faults)
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
