"""Real command lines of small sweeps, and what they leave."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
import psutil
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

TINY = (
    "model=lab32",
    "objective.prompts_per_step=2",
    "objective.num_generations=4",
    "evaluation.eval_every=2",
    "evaluation.eval_prompts=16",
    "evaluation.final_window=2",
    "task.train_prompts=64",
    "method=lora",
    "method.rank=1",
    "objective.learning_rate=1e-4,1e-3",
    "workers=2",
    "name=tiny",
)
TRAINED = (*TINY, "objective.steps=4", "seed=0,1")
"""Four runs that are really trained."""
PRETENDED = (*TINY, "objective.steps=20", "engine.pack_size=1", "seed=0,1,2")
"""Six runs for the torch-free engine, one in a process."""
STEP_S = "0.1"
WAIT_S = 150.0


def command(module: str, runs_dir: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", module, "-m", *arguments, f"runs_dir={runs_dir}"]


def launch(
    module: str, runs_dir: Path, *arguments: str, environ: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(module, runs_dir, *arguments),
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | (environ or {}),
    )


@contextmanager
def launched(runs_dir: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A sweep under way with the torch-free engine, some of its runs being trained."""
    arguments = (*PRETENDED, *arguments)
    process = subprocess.Popen(
        command("tests.cluster.torch_free", runs_dir, *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"ENGINE_DOUBLE_STEP_S": STEP_S},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def records(runs_dir: Path) -> dict[str, dict[str, Any]]:
    """What was measured, by run; not how long it took, where, and at which commit of this code."""
    found = {}
    for path in runs_dir.glob("tiny/*/*/record.json"):
        record = json.loads(path.read_text())
        for key in ("wall_time_s", "peak_memory_bytes", "probes", "git_commit"):
            del record[key]
        assert record["run_id"] not in found
        found[record["run_id"]] = record
    return found


def interrupted(runs_dir: Path) -> int:
    """Attempts that their workers have handed back, by the storage; none is under way."""
    journal = JournalFileBackend(str(runs_dir / "tiny" / "optuna.journal"))
    (arm,) = {path.name for path in runs_dir.glob("tiny/lora*")}
    storage = JournalStorage(journal)
    trials = optuna.load_study(study_name=f"tiny/{arm}/search", storage=storage).trials
    assert not any(trial.state == TrialState.RUNNING for trial in trials)
    return sum(trial.user_attrs["status"] == "interrupted" for trial in trials)


def in_training(runs_dir: Path) -> int:
    """Runs of which at least one step has been trained, and which have no record."""
    metrics = runs_dir.glob("tiny/*/*/attempts/*/metrics.jsonl")
    return sum(not (path.parents[2] / "record.json").exists() for path in metrics)


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "nothing happened for so long"
        time.sleep(0.1)


def processes_of(process: subprocess.Popen[str], module: str) -> list[psutil.Process]:
    """Descendants that were started as ``python -m MODULE``."""
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        words = child.cmdline()
        if "-m" in words and words[words.index("-m") + 1] == module:
            found.append(child)
    return found


def kill(processes: Sequence[psutil.Process]) -> None:
    for process in processes:
        process.send_signal(signal.SIGKILL)
