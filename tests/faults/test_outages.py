"""A database that is away, silent, full or gone without a word: what is said, and who waits."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from study.plan.experiment import PlannedRun
from study.records.location import sqlalchemy_url
from study.sweep.claims.database import check_answers, engine_settings
from study.sweep.schedule import read_state
from study.sweep.work.worker import Worker
from tests.cluster.launches import in_training, launched
from tests.cluster.launches import wait_for as wait_for_sweep
from tests.cluster.postgres import Server, private_server
from tests.faults.harness import Sweep
from tests.unit.sweep.workers import ENGINES

LEAVE_S = 15.0
"""Much less than a worker's patience."""


@contextmanager
def restarted(server: Server, after_s: float) -> Iterator[None]:
    """The server is killed, and comes back by itself while the block runs."""
    server.kill()
    timer = threading.Timer(after_s, server.start)
    timer.start()
    try:
        yield
    finally:
        timer.join()


def first(unheld: Iterable[PlannedRun]) -> list[PlannedRun]:
    return list(itertools.islice(unheld, 1))


def wait_for_output(sweep: Sweep, words: str) -> None:
    deadline = time.monotonic() + 60
    while words not in sweep.output():
        assert time.monotonic() < deadline, sweep.output()
        time.sleep(0.05)


def wait_for_metrics(sweep: Sweep) -> None:
    deadline = time.monotonic() + 60
    while not list(sweep.store.path.glob("*/*/attempts/*/metrics.jsonl")):
        assert time.monotonic() < deadline, sweep.output()
        time.sleep(0.05)


def test_a_server_that_says_nothing_is_refused_in_seconds() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/x"
        for own, seconds in (("", 5), ("?connect_timeout=2", 2)):
            began = time.monotonic()
            with pytest.raises(ValueError, match=r"^storage .* cannot be opened: .*timeout"):
                check_answers(url + own)
            assert seconds - 0.5 < time.monotonic() - began < seconds + 3


def test_a_file_is_not_asked_whether_it_answers(tmp_path: Path) -> None:
    check_answers(None)
    check_answers(f"sqlite:///{tmp_path}/new.db")
    assert not list(tmp_path.iterdir())


def test_an_unreachable_database_is_refused_before_a_model_is_looked_at(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "study", "-m", "model=local", f"model.path={tmp_path}/none"]
    command += [f"runs_dir={tmp_path}/runs", "seed=0,1"]
    url = "postgresql://nobody@127.0.0.1:1/x"
    refused = subprocess.run([*command, f"storage={url}"], capture_output=True, text=True)
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"error: storage {url} cannot be opened: connection failed")
    assert refused.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def options_of(connection: Any) -> dict[str, int]:
    """What the kernel was told about a connection."""
    line = socket.socket(fileno=os.dup(connection.connection.dbapi_connection.fileno()))
    with line:
        names = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")
        found = {n: line.getsockopt(socket.IPPROTO_TCP, getattr(socket, n)) for n in names}
        return {"SO_KEEPALIVE": line.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE), **found}


@contextmanager
def by_tcp(server: Server) -> Iterator[str]:
    """The address of a door to a server that listens on a socket of this machine alone."""

    def pump(source: socket.socket, sink: socket.socket) -> None:
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)

    def serve() -> None:
        outside, _ = door.accept()
        with outside, socket.socket(socket.AF_UNIX) as inside:
            inside.connect(str(server.sockets / ".s.PGSQL.5432"))
            back = threading.Thread(target=pump, args=(inside, outside))
            back.start()
            pump(outside, inside)
            back.join()

    with socket.create_server(("127.0.0.1", 0)) as door:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{door.getsockname()[1]}"
        thread.join()


@pytest.mark.cluster
@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="options of Linux")
@pytest.mark.parametrize(
    ("own", "probes", "timeout_ms"),
    [("", 4, 60_000), ("&keepalives_count=7&tcp_user_timeout=9000", 7, 9_000)],
)
def test_a_server_that_vanishes_is_missed_after_a_minute(
    own: str, probes: int, timeout_ms: int
) -> None:
    """20 s of silence and 4 probes 10 s apart; what the URL says itself stands."""
    with private_server() as server, by_tcp(server) as address:
        url = sqlalchemy_url(f"postgresql://postgres@{address}/postgres?sslmode=disable{own}")
        engine = sa.create_engine(url, **engine_settings(url))
        with engine.connect() as connection:
            assert options_of(connection) == {
                "SO_KEEPALIVE": 1,
                "TCP_KEEPIDLE": 20,
                "TCP_KEEPINTVL": 10,
                "TCP_KEEPCNT": probes,
                "TCP_USER_TIMEOUT": timeout_ms,
            }
        engine.dispose()


@pytest.mark.cluster
@pytest.mark.timeout(120)
def test_an_outage_is_said_when_it_begins_and_when_it_is_over(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with private_server() as server:
        sweep = Sweep(tmp_path, storage=server.url)
        claims, plan = sweep.claims(), sweep.plan()
        capfd.readouterr()
        with restarted(server, after_s=3.0):
            assert claims.take(plan.arms, plan.runs)
        begun, over = capfd.readouterr().err.splitlines()
        place = f"storage {server.url}"
        assert begun.startswith(f"{place} is away (") and begun.endswith("; trying again for 600 s")
        assert over.startswith(f"{place} is back after ")
        assert claims.take(plan.arms, plan.runs)
        assert capfd.readouterr().err == ""


@pytest.mark.cluster
@pytest.mark.timeout(120)
def test_a_worker_that_starts_while_the_database_is_away_waits_for_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with private_server() as server:
        sweep = Sweep(tmp_path, storage=server.url)
        capfd.readouterr()
        with restarted(server, after_s=3.0):
            worker = Worker(sweep.store, 60, engines=ENGINES, storage=server.url)
        begun, over = capfd.readouterr().err.splitlines()
        assert f"{server.url} is away (" in begun and f"{server.url} is back after " in over
        worker.work()
    assert not read_state(sweep.store).open_runs


@pytest.mark.cluster
@pytest.mark.timeout(120)
def test_who_looks_at_claims_while_it_claims_begins_again_with_the_claim(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with private_server() as server:
        sweep = Sweep(tmp_path, storage=server.url)
        claims, plan, looks = sweep.claims(), sweep.plan(), 0

        def pick(unheld: Iterable[PlannedRun]) -> list[PlannedRun]:
            nonlocal looks
            looks += 1
            chosen = first(unheld)
            if looks == 1:
                server.kill()
                threading.Timer(2.0, server.start).start()
            assert claims.held(plan) == set()
            return chosen

        capfd.readouterr()
        (taken,) = claims.take(plan.arms, plan.runs, pick)
        assert looks == 2
        assert len(capfd.readouterr().err.splitlines()) == 2
        assert claims.held(plan) == {taken.run.run_id}


FULL = """
CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  RAISE EXCEPTION 'could not extend file "base/5/16384": No space left on device'
  USING ERRCODE = 'disk_full';
END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON trial_user_attributes
  FOR EACH ROW EXECUTE FUNCTION no_room();
"""
"""The server's side of a full disk, to the letter."""


@pytest.mark.cluster
@pytest.mark.timeout(120)
def test_a_server_whose_disk_is_full_is_waited_for_and_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with private_server() as server:
        sweep = Sweep(tmp_path, storage=server.url)
        claims, plan = sweep.claims(), sweep.plan()

        def execute(statements: str) -> None:
            with psycopg.connect(server.url, autocommit=True) as connection:
                connection.execute(statements)

        (claim,) = claims.take(plan.arms, plan.runs)
        execute(FULL)
        capfd.readouterr()
        room = threading.Timer(2.0, execute, ["DROP TRIGGER full_disk ON trial_user_attributes"])
        room.start()
        claims.give_back(claim, "interrupted")
        room.join()
        assert claims.held(plan) == set()
        begun, over = capfd.readouterr().err.splitlines()
        assert "is away (the server's disk is full: could not extend file" in begun
        assert "is back after" in over


@pytest.mark.cluster
@pytest.mark.timeout(120)
@pytest.mark.parametrize("waiting", [True, False], ids=["waiting", "training"])
def test_an_interrupted_worker_does_not_wait_for_its_database(
    tmp_path: Path, waiting: bool
) -> None:
    with private_server() as server:
        sweep = Sweep(tmp_path, storage=server.url)
        (worker,) = sweep.launch(step_s=0.5)
        wait_for_metrics(sweep)
        server.kill()
        if waiting:
            wait_for_output(sweep, "is away (")
        worker.send_signal(signal.SIGINT)
        assert worker.wait(timeout=LEAVE_S) == -signal.SIGINT, sweep.output()
        server.start()
        sweep.finish()


@pytest.mark.cluster
@pytest.mark.timeout(200)
def test_an_interrupted_sweep_does_not_wait_for_its_database(tmp_path: Path) -> None:
    with (
        private_server() as server,
        launched(tmp_path, f"storage='{server.url}'") as sweep,
    ):
        wait_for_sweep(lambda: in_training(tmp_path) == 2, sweep)
        server.kill()
        sweep.send_signal(signal.SIGINT)
        out, err = sweep.communicate(timeout=2 * LEAVE_S)
    assert sweep.returncode == 130, err
    assert "tiny: 0 of 6 runs done" in out
    assert "interrupted; the same command resumes" in out
