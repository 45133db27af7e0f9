"""The upload against a server that is away, hangs, fails or drops, on the loopback interface."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from study.records.store import ExperimentStore
from study.tracking.marks import Mark, Marks
from study.tracking.upload import Uploader
from tests.unit.tracking.mirrors import (
    command,
    environment,
    files_of,
    mirrored,
    runs_of,
    small_sweep,
    stored_rows,
)
from tests.wandb_server import KEY, WandbServer, wait_until, wandb_server

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ExperimentStore]:
    yield small_sweep(tmp_path / "net")
    # Nothing that a test started may outlive it.
    assert [p for p in psutil.process_iter(["cmdline"]) if str(tmp_path) in str(p.info)] == []


def online(store: ExperimentStore, server: WandbServer) -> subprocess.CompletedProcess[str]:
    return mirrored(store, "--mode", "online", WANDB_BASE_URL=server.url, WANDB_API_KEY=KEY)


def assert_server_has_all(server: WandbServer, store: ExperimentStore) -> None:
    ids = {f"{store.path.name}-{run.run_id}" for run in runs_of(store)}
    assert server.runs.keys() == ids
    for run in runs_of(store):
        found = server.runs[f"{store.path.name}-{run.run_id}"]
        assert server.rows(f"{store.path.name}-{run.run_id}") == stored_rows(store, run)
        assert (found["project"], found["groupName"]) == ("lora-rl-study", store.path.name)
        assert "completed" in found["tags"]


def assert_no_key_below(path: Path) -> None:
    for file in path.rglob("*"):
        if file.is_file():
            assert KEY.encode() not in file.read_bytes(), file


def test_offline_files_are_uploaded_later_once_and_can_be_pruned(
    store: ExperimentStore,
) -> None:
    assert mirrored(store).returncode == 0
    with wandb_server() as server:
        done = online(store, server)
        assert done.returncode == 0, done.stderr
        assert "mirrored 0 run(s)" in done.stdout and "W&B has 6 of 6 runs" in done.stdout
        assert_server_has_all(server, store)
        server.lines.clear()
        again = online(store, server)
        assert "W&B has 6 of 6 runs" in again.stdout and not server.lines
        assert_no_key_below(store.path)
        pruned = mirrored(store, "--prune")
        assert "removed W&B's files of 6 uploaded run(s)" in pruned.stdout
        assert not list(store.path.rglob("*.wandb"))
        assert "mirrored 0 run(s)" in online(store, server).stdout and not server.lines


def test_files_that_are_not_uploaded_are_never_pruned(store: ExperimentStore) -> None:
    assert "removed W&B's files of 0" in mirrored(store, "--prune").stdout
    assert all(len(files_of(store, run)) == 1 for run in runs_of(store))


def test_an_upload_that_is_killed_is_repeated_without_duplicates(store: ExperimentStore) -> None:
    def lose(path: str, body: str) -> str | None:
        return "hang" if "file_stream" in path and "score_final" in body else None

    with wandb_server(lose) as server:
        where = environment(WANDB_BASE_URL=server.url, WANDB_API_KEY=KEY)
        process = subprocess.Popen(
            command(store, "--mode", "online"), env=where, stdin=subprocess.DEVNULL
        )
        wait_until(lambda: server.runs)
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGKILL)
        process.wait()
        _, left = psutil.wait_procs(children, timeout=20)
        assert left == []  # nothing goes on hanging
        server.fault = lambda path, body: None
        assert online(store, server).returncode == 0
        assert_server_has_all(server, store)


@pytest.mark.parametrize(
    "fault",
    ["hang", pytest.param("drop", marks=pytest.mark.nightly),
     pytest.param("500", marks=pytest.mark.nightly)],
)  # fmt: skip
def test_a_server_that_does_not_answer_costs_a_bounded_time(
    store: ExperimentStore, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert mirrored(store).returncode == 0
    marks = Marks(store)
    monkeypatch.setattr("study.tracking.upload.LIMIT_S", 4.0)
    with wandb_server(lambda path, body: fault) as server:
        variables = {"WANDB_BASE_URL": server.url, "WANDB_API_KEY": KEY}
        uploader = Uploader(store.path / "wandb" / "upload.log", variables)
        began = time.monotonic()
        assert not uploader.upload(directories(marks))
        assert time.monotonic() - began < 15
        assert marks.note_uploads() == 0 and len(marks.to_upload()) == 6
        server.fault = lambda path, body: None
        assert uploader.upload(directories(marks))
        assert marks.note_uploads() == 6
        assert_server_has_all(server, store)


def test_a_run_that_hangs_leaves_the_others_alone(
    store: ExperimentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert mirrored(store).returncode == 0
    marks, hung = Marks(store), runs_of(store)[0].run_id
    monkeypatch.setattr("study.tracking.upload.LIMIT_S", 8.0)
    with wandb_server(lambda path, body: "hang" if hung in path + body else None) as server:
        variables = {"WANDB_BASE_URL": server.url, "WANDB_API_KEY": KEY}
        assert Uploader(store.path / "upload.log", variables).upload(directories(marks))
    assert marks.note_uploads() == 5
    assert [mark.run_id for mark in marks.to_upload()] == [hung]


def directories(marks: Marks) -> list[Path]:
    def of(mark: Mark) -> Path:
        return marks.wandb_dir / mark.directory

    return [of(mark) for mark in marks.to_upload()]


def test_without_a_network_the_sweep_s_mirror_leaves_when_told(store: ExperimentStore) -> None:
    variables = {"WANDB_BASE_URL": "http://127.0.0.1:9", "WANDB_API_KEY": KEY}
    process = subprocess.Popen(
        command(store, "--mode", "online", "--follow"),
        env=environment(**variables),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    marks = store.path / "wandb" / "mirrored"
    wait_until(lambda: len(list(marks.glob("*"))) == 6)
    _, errors = process.communicate(timeout=100)  # closes its input
    assert process.returncode == 1
    assert errors.startswith("6 runs are not uploaded, see ")
    assert KEY not in errors


def test_without_a_key_there_is_one_sentence_and_no_question(store: ExperimentStore) -> None:
    done = mirrored(store, "--mode", "online")
    assert (done.returncode, done.stderr) == (
        2,
        "error: no W&B key for https://api.wandb.ai: set WANDB_API_KEY, or log in by "
        "`wandb login`\n",
    )
    assert not (store.path / "wandb").exists() and "WANDB_API_KEY" not in os.environ
