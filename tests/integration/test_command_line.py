"""The real command line with the real engine, a few steps on the smallest model."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

TINY = [
    "model=lab32",
    "objective.steps=4",
    "objective.prompts_per_step=2",
    "objective.num_generations=4",
    "evaluation.eval_every=2",
    "evaluation.eval_prompts=16",
    "evaluation.final_window=2",
    "task.train_prompts=64",
]


def command(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", module, *arguments]


def run(module: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(module, *arguments), capture_output=True, text=True, check=False, cwd=cwd
    )


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(p.read_text()) for p in sorted(path.glob("*/*/record.json"))]


@pytest.fixture(scope="module")
def singles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("runs")
    for method in (["method=lora", "method.rank=1"], ["method=full"]):
        done = run("study", *method, *TINY, f"runs_dir={runs}")
        assert done.returncode == 0, done.stderr
        assert "report: python -m analysis report" in done.stdout
        assert "completed, held-out accuracy 0." in done.stdout
    return runs / "single"


def test_one_run_of_each_method_ends_with_a_record(singles: Path) -> None:
    found = {record["method"]: record for record in records(singles)}
    assert set(found) == {"lora", "full"}
    for record in found.values():
        assert record["status"] == "completed"
        assert record["steps_done"] == 4
        assert record["episodes"] == 4 * 2 * 4
        assert 0 <= record["score_final"] <= 1
        assert set(record["dtypes"].values()) == {"float32"}
    assert found["full"]["trainable_params"] == found["full"]["total_params"]
    assert len(found["lora"]["target_modules"]) % 7 == 0


def test_a_run_directory_is_complete(singles: Path) -> None:
    (path,) = singles.glob("lora-*/*/record.json")
    names = {p.name for p in path.parent.iterdir()}
    assert names >= {
        "config.yaml",
        "provenance.json",
        "metrics.jsonl",
        "evaluations.parquet",
        "samples.jsonl",
        "adapter",
    }
    rows = [json.loads(line) for line in (path.parent / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if "eval/accuracy" in row] == [0, 2, 4]
    assert [row["step"] for row in rows if "train/loss" in row] == [1, 2, 3, 4]


def test_the_same_command_again_repeats_nothing(singles: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in singles.glob("*/*/record.json")}
    arguments = ["method=full", *TINY, f"runs_dir={singles.parent}"]
    assert run("study", *arguments).returncode == 0
    assert before == {p: p.stat().st_mtime_ns for p in singles.glob("*/*/record.json")}


def test_status_and_report_read_single_runs(singles: Path) -> None:
    assert "2 of 2 runs done" in run("study.status", str(singles)).stdout
    done = run("analysis", "report", str(singles))
    assert done.returncode == 0, done.stderr
    assert (singles / "report" / "index.html").exists()


def test_the_wandb_mirror_holds_what_the_store_holds(singles: Path) -> None:
    first = run("study.tracking", str(singles))
    assert "mirrored 2 run(s)" in first.stdout, first.stderr
    again = run("study.tracking", str(singles))
    assert "mirrored 0 run(s)" in again.stdout
    for record in records(singles):
        rows, config = read_offline_run(singles, record["run_id"])
        path = singles / record["arm"] / record["run_id"] / "metrics.jsonl"
        stored = [json.loads(line) for line in path.read_text().splitlines()]
        assert [{k: v for k, v in row.items() if not k.startswith("_")} for row in rows] == stored
        assert config["objective"]["learning_rate"] == record["learning_rate"]
        assert config["arm"] == record["arm"]


def read_offline_run(experiment: Path, run_id: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """History rows and configuration of an offline W&B run, read back from its own file."""
    (file,) = experiment.glob(f"wandb/offline-run-*/run-{experiment.name}-{run_id}.wandb")
    rows: list[dict[str, Any]] = []
    config: dict[str, Any] = {}
    for entry in wandb_records(file.read_bytes()):
        if entry.WhichOneof("record_type") == "history":
            items = entry.history.item
            rows.append({i.key or i.nested_key[0]: json.loads(i.value_json) for i in items})
        if entry.WhichOneof("record_type") == "run":
            config = {i.key: json.loads(i.value_json) for i in entry.run.config.update}
    return rows, config


def wandb_records(data: bytes) -> Iterator[Any]:
    """Records of a .wandb file: LevelDB's log format after a header of 7 bytes."""
    from wandb.proto import wandb_internal_pb2

    block, position, parts = 32768, 7, b""
    while position + 7 <= len(data):
        room = block - position % block
        if room < 7:
            position += room
            continue
        _, length, kind = struct.unpack("<IHB", data[position : position + 7])
        parts += data[position + 7 : position + 7 + length]
        position += 7 + length
        if kind in (1, 4):  # a whole record, or the last part of one
            record = wandb_internal_pb2.Record()
            record.ParseFromString(parts)
            yield record
            parts = b""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["experiment=quickstart"], "an experiment is a sweep: python -m study -m experiment="),
        (["method.rnak=1"], "method.rnak is not a key of LoraMethod; did you mean 'rank'?"),
        (["-m", "experiment=quickstart", "method.rank=4"], "method.rank is set by arm 'lora-r1'"),
        (
            ["-m", "experiment=quickstart", "seed=1,2"],
            "names its own arms, so seed cannot be swept",
        ),
        (["-m", "experiment=quickstart", "objective.learning_rate=1"], "space.learning_rate"),
        (["-m", "experiment=quickstart,other"], "one experiment at a time"),
        (["-m", "workers=1,2"], "a sweep can only set keys of a run"),
        (["-m", "save=none,last"], "are the same configuration"),
        (["-m", "seed=0,1", "space=lab64"], "space.learning_rate is only read with experiment="),
        (["-m", "experiment=quickstart", "+space.learning_rate.x=[1e-3]"], "neither an arm"),
        (
            ["-m", "experiment=quickstart", '+experiment.arms.x=["workers=2"]'],
            "arm 'x' can only set",
        ),
        (["model=local", "model.path=/nowhere"], "model directory /nowhere does not exist"),
        (["method.target_modules=[q_proj,v_porj]"], "'v_porj' matches no linear layer"),
        (["method.rank=4096"], "method.rank <= "),
        (
            ["engine=packed", "objective.beta=0.01"],
            "which sets objective.beta=0.01; use engine=trl",
        ),
        (
            ["-m", "engine=packed", "model.dtype=float32,bfloat16"],
            "engine=packed cannot train arm dtype-bfloat16, which sets model.dtype=bfloat16",
        ),
        (["-m", "engine=trl,packed"], "are the same configuration"),
        (
            ["-m", "experiment=quickstart", '+experiment.arms.x=["engine=trl"]'],
            "and not objective.learning_rate or seed or engine or probes, got 'engine=trl'",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = run("study", *arguments, f"runs_dir={tmp_path}")
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1 and message in lines[0], done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_dry_run_prints_the_bill_and_starts_nothing(tmp_path: Path) -> None:
    done = run("study", "-m", "experiment=quickstart", "dry_run=true", f"runs_dir={tmp_path}")
    assert done.returncode == 0, done.stderr
    assert "plan of quickstart: 54 runs, 0 done" in done.stdout
    assert "engine: packed (8 runs a process)" in done.stdout
    assert "nothing was started" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_setting_that_decides_the_engine_is_said(tmp_path: Path) -> None:
    arguments = ["-m", "objective.beta=0,0.01", "dry_run=true", f"runs_dir={tmp_path}"]
    done = run("study", *arguments)
    assert done.returncode == 0, done.stderr
    assert "engine: trl, since arm beta-0.01 sets objective.beta=0.01" in done.stdout


def heed_interrupts() -> None:
    """A shell starts background jobs with SIGINT ignored, and the test may be in one."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def family(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def working(experiment: Path) -> list[Path]:
    """Badges of workers that train something."""
    badges = experiment.glob("workers/[!.]*.json")
    return [path for path in badges if json.loads(path.read_text())["runs"]]


def test_a_killed_multirun_resumes_to_exactly_the_planned_runs(tmp_path: Path) -> None:
    arguments = ["-m", "method=lora", "method.rank=1,2", "objective.learning_rate=1e-4,1e-3"]
    arguments += ["seed=0,1", *TINY, "workers=2", "name=killed", f"runs_dir={tmp_path}"]
    arguments += ["engine=trl"]  # a pack of such short runs would be done before it is killed
    path = tmp_path / "killed"
    log = (tmp_path / "log.txt").open("w")
    sweep = subprocess.Popen(command("study", *arguments), stdout=log, stderr=log)
    deadline = time.monotonic() + 300
    while len(records(path)) < 2:
        assert time.monotonic() < deadline and sweep.poll() is None
        time.sleep(0.05)
    relatives = family(sweep)
    os.kill(sweep.pid, signal.SIGKILL)
    sweep.wait()
    _, alive = psutil.wait_procs(relatives, timeout=30)
    assert alive == [], "workers and children leave with the parent"
    before = {r["run_id"]: r for r in records(path)}
    assert 2 <= len(before) < 8
    done = run("study", *arguments)
    assert done.returncode == 0, done.stderr
    after = {r["run_id"]: r for r in records(path)}
    plan = json.loads((path / "plan.json").read_text())
    assert len(plan["runs"]) == 8
    assert after.keys() == {r["run_id"] for r in plan["runs"]}
    assert {k: after[k] for k in before} == before
    assert "8 of 8 runs done" in done.stdout
    assert {r["arm"] for r in after.values()} == {"rank-1", "rank-2"}
    other = run("study", *arguments[:-1], "engine=packed")
    assert other.returncode == 2
    assert "killed is trained by engine=trl, got engine=packed" in other.stderr
    auto = run("study", *arguments[:-1], "dry_run=true")
    assert "engine: trl, as the experiment began with it" in auto.stdout


def test_ctrl_c_says_how_to_resume_and_leaves_no_process(tmp_path: Path) -> None:
    arguments = ["-m", "method=lora", "method.rank=1", "seed=0,1,2,3", *TINY, "workers=2"]
    arguments += ["name=interrupted", f"runs_dir={tmp_path}"]
    arguments += ["engine=trl", "objective.steps=40"]  # no worker ends all before the other began
    with (tmp_path / "log.txt").open("w") as log:
        sweep = subprocess.Popen(
            command("study", *arguments),
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=heed_interrupts,
        )
    deadline = time.monotonic() + 300
    while len(working(tmp_path / "interrupted")) < 2:  # both have a pack
        assert time.monotonic() < deadline and sweep.poll() is None
        time.sleep(0.05)
    relatives = family(sweep)
    os.killpg(sweep.pid, signal.SIGINT)  # what a terminal does
    assert sweep.wait(timeout=60) == 130
    _, alive = psutil.wait_procs(relatives, timeout=30)
    assert alive == []
    said = (tmp_path / "log.txt").read_text()
    assert "interrupted; the same command resumes" in said
    assert "Traceback" not in said
    assert run("study", *arguments, "tracker=wandb").returncode == 0
    ids = {record["run_id"] for record in records(tmp_path / "interrupted")}
    assert len(ids) == 4
    mirrored = (tmp_path / "interrupted").glob("wandb/offline-run-*/run-*.wandb")
    assert {path.stem.removeprefix("run-interrupted-") for path in mirrored} == ids


def test_supervised_runs_and_those_of_grpo_are_one_sweep(tmp_path: Path) -> None:
    arguments = ["-m", "method=lora,full", "objective=sft,grpo", *TINY, f"runs_dir={tmp_path}"]
    arguments += ["name=both", "seed=0,1"]
    arguments.remove("objective.num_generations=4")
    done = run("study", *arguments)
    assert done.returncode == 0, done.stderr
    assert "engine: packed" in done.stdout
    found = records(tmp_path / "both")
    drawn = {(r["objective"], r["num_generations"], r["episodes"]) for r in found}
    assert drawn == {("sft", None, 0), ("grpo", 8, 4 * 2 * 8)}
    assert all(r["train_tokens"] > 0 and r["score_final"] is not None for r in found)
    report = run("analysis", "report", str(tmp_path / "both"))
    assert report.returncode == 0, report.stderr
    text = (tmp_path / "both" / "report" / "index.html").read_text()
    assert "sft (next-token prediction on worked solutions" in text
    assert len((tmp_path / "both" / "report" / "excluded.csv").read_text().splitlines()) == 1


def test_solutions_that_do_not_fit_are_refused_before_any_weights(tmp_path: Path) -> None:
    done = run("study", "objective=sft", "task.max_completion_length=5", f"runs_dir={tmp_path}")
    assert done.returncode == 2
    assert "must hold every worked solution under objective=sft" in done.stderr
    assert "Traceback" not in done.stderr
