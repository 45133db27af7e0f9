"""Runs that are mirrored while they train; the worker is this process."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from study.plan.experiment import PlannedRun
from study.records.files import write_json
from study.records.store import ExperimentStore
from study.sweep.claims.leases import new_lease
from study.tracking.mirror import Mirror
from study.tracking.runlog import clean_environment
from tests.unit.tracking.mirrors import (
    Written,
    command,
    environment,
    files_of,
    runs_of,
    small_sweep,
    stored_rows,
)
from tests.wandb_server import KEY, wait_until, wandb_server


class Training:
    """A run of a finished sweep, put back to before it was published."""

    def __init__(self, store: ExperimentStore) -> None:
        self.store, self.run = store, runs_of(store)[0]
        self.directory = store.run_dir(self.run.arm, self.run.run_id)
        self.lines = (self.directory / "metrics.jsonl").read_text().splitlines(keepends=True)
        self.stored = stored_rows(store, self.run)
        (self.directory / "record.json").rename(self.directory / "hidden")
        (self.directory / "metrics.jsonl").unlink()
        row = {"run_id": self.run.run_id, "arm": self.run.arm, "step": 1, "steps": 2}
        row |= {"accuracy": None, "learning_rate": self.run.learning_rate, "seed": self.run.seed}
        write_json(store.workers_dir / "here.json", {**new_lease(), "runs": [row]})

    def write(self, attempt: int, text: str) -> None:
        path = self.directory / "attempts" / str(attempt) / "metrics.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(text)

    def publish(self, attempt: int) -> None:
        directory = self.directory / "attempts" / str(attempt)
        (directory / "metrics.jsonl").rename(self.directory / "metrics.jsonl")
        shutil.rmtree(directory)
        (self.directory / "hidden").rename(self.directory / "record.json")


@pytest.fixture
def training(tmp_path: Path) -> Training:
    return Training(small_sweep(tmp_path / "live"))


@pytest.fixture
def mirror(training: Training, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    clean_environment()
    mirror = Mirror(training.store, "p")
    assert mirror.step(live=False) == len(runs_of(training.store)) - 1
    yield mirror
    mirror.close()


def the_file(store: ExperimentStore, run: PlannedRun) -> Written:
    (file,) = files_of(store, run)
    return Written(file)


def test_a_run_is_followed_from_its_attempt_to_its_record(
    training: Training, mirror: Mirror
) -> None:
    training.write(1, "".join(training.lines[:3]) + training.lines[3][:5])
    assert mirror.step(live=True) == 0 and mirror.failed == {}
    assert mirror.live[training.run.run_id].rows == 3  # a torn line waits for its end
    training.write(1, training.lines[3][5:])
    mirror.step(live=True)
    assert mirror.live[training.run.run_id].rows == 4
    training.write(1, "".join(training.lines[4:]))
    training.publish(1)
    assert mirror.step(live=True) == 1 and mirror.live == {}
    written = the_file(training.store, training.run)
    assert written.ended and written.rows == training.stored
    assert written.tags[-1] == "completed"


def test_the_rows_of_an_attempt_that_died_are_thrown_away(
    training: Training, mirror: Mirror
) -> None:
    training.write(1, '{"step": 1, "train/loss": 7.0}\n' * 5)
    mirror.step(live=True)
    training.write(2, training.lines[0])
    mirror.step(live=True)
    assert mirror.live[training.run.run_id].rows == 1
    training.write(2, "".join(training.lines[1:]))
    training.publish(2)
    assert mirror.step(live=True) == 1
    assert the_file(training.store, training.run).rows == training.stored


def test_a_result_of_another_attempt_replaces_what_was_followed(
    training: Training, mirror: Mirror
) -> None:
    training.write(1, '{"step": 1, "train/loss": 7.0}\n' * 5)
    mirror.step(live=True)
    training.write(2, "".join(training.lines))
    training.publish(2)  # between two looks
    assert mirror.step(live=True) == 1
    assert the_file(training.store, training.run).rows == training.stored


def test_a_run_whose_worker_left_is_closed(training: Training, mirror: Mirror) -> None:
    training.write(1, training.lines[0])
    mirror.step(live=True)
    for badge in training.store.workers_dir.iterdir():
        badge.unlink()
    mirror.step(live=True)
    assert mirror.live == {} and files_of(training.store, training.run) == []


@pytest.mark.nightly  # W&B writes its file out every 15 s
@pytest.mark.timeout(120)
def test_a_training_run_s_rows_reach_the_server_and_are_there_once(training: Training) -> None:
    run_id = f"live-{training.run.run_id}"
    training.write(1, "".join(training.lines[:4]))
    with wandb_server() as server:
        where = environment(WANDB_BASE_URL=server.url, WANDB_API_KEY=KEY)
        process = subprocess.Popen(
            command(training.store, "--mode", "online", "--follow"),
            env=where,
            stdin=subprocess.PIPE,
        )
        try:
            wait_until(lambda: len(server.lines[run_id]) == 4, 60)
            assert server.rows(run_id) == training.stored[:4]
            training.write(1, "".join(training.lines[4:]))
            training.publish(1)
            process.communicate(timeout=50)
        finally:
            process.kill()
            process.wait()
        assert process.returncode == 0
        assert server.rows(run_id) == training.stored
        assert len(server.runs) == len(runs_of(training.store))
