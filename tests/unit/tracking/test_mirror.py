"""The mirror without a network, its files read back."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from study.records.store import ExperimentStore
from study.tracking.content import SUMMARY, run_config, scrubbed, tags
from study.tracking.marks import mirror_lock
from study.tracking.transactions import rows_of_ended
from tests.unit.tracking.mirrors import (
    Written,
    command,
    environment,
    files_of,
    mirrored,
    runs_of,
    small_sweep,
    stored_rows,
)
from tests.wandb_server import KEY, wait_until


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> ExperimentStore:
    """A sweep whose mirror ran with every variable that could mislead it."""
    store = small_sweep(tmp_path_factory.mktemp("mirror") / "swept")
    run = runs_of(store)[0]
    with (store.run_dir(run.arm, run.run_id) / "metrics.jsonl").open("a") as file:
        line = {"step": 999, "train/loss": None, "health/nonfinite": 1}
        file.write(json.dumps(line) + "\n")
    done = mirrored(
        store, WANDB_API_KEY=KEY, WANDB_RUN_ID="other", WANDB_MODE="disabled",
        WANDB_RESUME="must", WANDB_SWEEP_ID="sweep", WANDB_PROJECT="elsewhere",
        WANDB_TAGS="a,b", WANDB_NAME="same", WANDB_DIR="/nonexistent",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert f"mirrored {len(runs_of(store))} run(s)" in done.stdout
    return store


def test_each_run_is_one_file_that_holds_what_the_store_holds(swept: ExperimentStore) -> None:
    for run in runs_of(swept):
        (file,) = files_of(swept, run)
        written, record = Written(file), swept.record(run.arm, run.run_id)
        assert record is not None and written.ended
        assert written.rows == stored_rows(swept, run) != []
        assert rows_of_ended(file) == len(written.rows)
        assert {key: written.summary[key] for key in SUMMARY} == {
            key: asdict(record)[key] for key in SUMMARY
        }


def test_the_configuration_is_that_of_the_record(swept: ExperimentStore) -> None:
    plan_arms = json.loads(swept.plan_path.read_text())["arms"]
    for run in runs_of(swept):
        config, record = Written(files_of(swept, run)[0]).config, swept.record(run.arm, run.run_id)
        assert record is not None
        for key in ("arm", "phase", "seed", "lora_rank", "lora_alpha", "alpha_rule", "factors",
                    "model_revision", "hidden_size"):  # fmt: skip
            assert config[key] == getattr(record, key)
        assert config["objective"]["learning_rate"] == record.learning_rate
        assert config["method"]["name"] == record.method
        planned = plan_arms[run.arm]["config"]
        for group in ("task", "evaluation", "engine", "method"):
            assert config[group] == planned[group]


def test_runs_are_named_grouped_and_tagged_for_people(swept: ExperimentStore) -> None:
    run = next(r for r in runs_of(swept) if r.arm == "lora-r8" and r.phase == "search")
    written = Written(files_of(swept, run)[0])
    rate = f"{run.learning_rate:g}"
    assert written.run.display_name == f"lora-r8 lr={rate} seed={run.seed} search"
    assert (written.run.run_group, written.run.job_type) == ("swept", "lora-r8")
    assert written.run.project == "lora-rl-study"
    assert written.tags == [
        "search", "lora", "rank-8", f"lr-{rate}", f"seed-{run.seed}", "completed",
    ]  # fmt: skip


def test_no_key_no_host_and_no_path_is_written(swept: ExperimentStore) -> None:
    for file in swept.path.rglob("*"):
        if file.is_file() and not file.is_symlink():
            content = file.read_bytes()
            assert KEY.encode() not in content, file
            if file.suffix == ".wandb":
                assert str(swept.path).encode() not in content
    hosts = {Written(files_of(swept, run)[0]).run.host for run in runs_of(swept)}
    assert hosts == {"-"} != {socket.gethostname()}


def test_a_second_pass_changes_nothing(swept: ExperimentStore) -> None:
    before = {p: p.read_bytes() for p in swept.path.rglob("*.wandb")}
    again = mirrored(swept)
    assert "mirrored 0 run(s)" in again.stdout
    assert {p: p.read_bytes() for p in swept.path.rglob("*.wandb")} == before


def test_a_removed_file_is_written_again(swept: ExperimentStore) -> None:
    run = runs_of(swept)[1]
    shutil.rmtree(files_of(swept, run)[0].parent)
    assert "mirrored 1 run(s)" in mirrored(swept).stdout
    (file,) = files_of(swept, run)
    assert Written(file).rows == stored_rows(swept, run)


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_killed_pass_is_completed_without_duplicates(tmp_path: Path, after: int) -> None:
    store = small_sweep(tmp_path / "killed")
    process = subprocess.Popen(command(store), env=environment(), stdin=subprocess.DEVNULL)
    opened, marks = store.path / "wandb", store.path / "wandb" / "mirrored"
    wait_until(lambda: len(list(marks.glob("*"))) >= after and any(opened.glob("offline-run-*")))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert mirrored(store).returncode == 0
    for run in runs_of(store):
        (file,) = files_of(store, run)
        assert Written(file).rows == stored_rows(store, run)


def test_two_mirrors_at_once_do_not_write_twice(tmp_path: Path) -> None:
    store = small_sweep(tmp_path / "two")
    mirror_lock(store).parent.mkdir()
    with FileLock(mirror_lock(store)):  # the other one
        refused = mirrored(store)
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"error: {store.path} is being mirrored by another process")
    assert all(files_of(store, run) == [] for run in runs_of(store))


def test_one_run_that_cannot_be_mirrored_leaves_the_others_alone(tmp_path: Path) -> None:
    store = small_sweep(tmp_path / "hurt")
    hurt, *others = runs_of(store)
    metrics = store.run_dir(hurt.arm, hurt.run_id) / "metrics.jsonl"
    content = metrics.read_text()
    metrics.write_text("not json\n")
    done = mirrored(store)
    assert done.returncode == 1 and f"mirrored {len(others)} run(s)" in done.stdout
    assert done.stderr.startswith(f"run {hurt.run_id} was not mirrored: JSONDecodeError")
    assert files_of(store, hurt) == []
    metrics.write_text(content)
    assert mirrored(store).returncode == 0
    assert Written(files_of(store, hurt)[0]).rows == stored_rows(store, hurt)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/data/models/qwen", "qwen"),
        ("~/models/qwen", "qwen"),
        ("..\\models\\qwen", "qwen"),
        ("C:\\models\\qwen", "qwen"),
        ("postgresql://me:secret@host/db", "postgresql://me@host/db"),
        ({"model.path": "/a/b", "n": 3}, {"model.path": "b", "n": 3}),
        (["/a/b", None, "q_proj"], ["b", None, "q_proj"]),
        (".*q_proj", ".*q_proj"),
        ("float32", "float32"),
    ],
)
def test_paths_and_passwords_do_not_leave_the_machine(value: Any, expected: Any) -> None:
    assert scrubbed(value) == expected


def test_a_run_under_way_has_the_tags_of_its_cell(swept: ExperimentStore) -> None:
    from study.sweep.schedule import read_state

    state = read_state(swept)
    run = next(r for r in state.plan.runs if r.arm == "full" and r.phase == "report")
    assert tags(state.plan, run) == [
        "report", "full", f"lr-{run.learning_rate:g}", f"seed-{run.seed}",
    ]  # fmt: skip
    assert "path" not in run_config(state.plan, run)["model"]
