"""A whole sweep from the command line, under both engines."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

WORKERS = 2
GROUP = 8
ROWS = (64, 16)
GRIDS = {"full": "[6.3e-5,2e-4,6.3e-4,2e-3]", "lora": "[1e-4,3.2e-4,1e-3,3.2e-3]"}


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much a sweep trains: the quickstart's three arms and 4 learning rates."""

    seeds: int
    steps: int
    evaluations: int
    """Beside the one of the base."""

    @property
    def runs(self) -> int:
        """Runs of the sweep."""
        return 3 * 4 * self.seeds


@dataclass(frozen=True, kw_only=True)
class Finished:
    """One sweep."""

    wall_s: float
    """The whole command."""
    training_s: float
    """From the start of the first run to the last record; imports and planning are left out."""
    scores: dict[str, float | None]
    """Final score by run id."""


def measure_sweeps(size: Size, console: Console) -> list[dict[str, Any]]:
    """The sweep under both engines in turns, for both sizes of a step; see :mod:`study.bench`.

    Raises:
        RuntimeError: if a sweep fails.
    """
    found = []
    for rows in ROWS:
        finished = {}
        for engine in ("trl", "packed"):
            with (
                console.status(f"sweep: {size.runs} runs, {rows} rows, engine {engine}"),
                tempfile.TemporaryDirectory() as directory,
            ):
                finished[engine] = run_sweep(engine, rows, size, Path(directory))
            console.print(f"{rows} rows, engine {engine}: {finished[engine].wall_s:.0f} s")
        found.append(sweep_summary(rows, size, finished))
    return found


def run_sweep(engine: str, rows: int, size: Size, directory: Path) -> Finished:
    """Run the command line in a process, and read what it left below ``directory``.

    Raises:
        RuntimeError: if it fails, or leaves runs without a record.
    """
    command = [sys.executable, "-m", "study", "-m", *overrides(engine, rows, size, directory)]
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall_s = time.perf_counter() - begin
    finished = read_sweep(directory / "quickstart", wall_s)
    if done.returncode or len(finished.scores) != size.runs:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise RuntimeError(f"{' '.join(command)} left {len(finished.scores)} records:\n{said}")
    return finished


def overrides(engine: str, rows: int, size: Size, directory: Path) -> list[str]:
    """The command line of a sweep: the quickstart with fewer learning rates and seeds."""
    every = size.steps // size.evaluations
    return [
        "experiment=quickstart",
        f"engine={engine}",
        f"workers={WORKERS}",
        f"runs_dir='{directory}'",
        *(f"space.learning_rate.{method}={grid}" for method, grid in GRIDS.items()),
        f"experiment.seeds.search={list(range(size.seeds))}".replace(" ", ""),
        "experiment.seeds.report=[]",
        f"objective.steps={size.steps}",
        f"objective.prompts_per_step={rows // GROUP}",
        f"evaluation.eval_every={every}",
        f"evaluation.final_window={min(3, size.evaluations)}",
    ]


def read_sweep(path: Path, wall_s: float) -> Finished:
    """Times and scores of the sweep at ``path``, whose command took ``wall_s`` seconds.

    A run writes its ``config.yaml`` when it starts and its record when it ends.
    """
    records = sorted(path.glob("*/*/record.json"))
    starts = [(file.parent / "config.yaml").stat().st_mtime for file in records]
    ends = [file.stat().st_mtime for file in records]
    scores = {file.parent.name: json.loads(file.read_text())["score_final"] for file in records}
    training_s = max(ends) - min(starts) if records else 0.0
    return Finished(wall_s=wall_s, training_s=training_s, scores=scores)


def sweep_summary(rows: int, size: Size, finished: Mapping[str, Finished]) -> dict[str, Any]:
    """Both sweeps and their ratios, as they go into the JSON file."""
    trl, packed = finished["trl"], finished["packed"]
    facts = {"rows": rows, "runs": size.runs, "workers": WORKERS, "steps": size.steps}
    times = {
        name: {"wall_s": one.wall_s, "training_s": one.training_s} for name, one in finished.items()
    }
    return {
        **facts,
        "evaluations": size.evaluations + 1,
        **times,
        "ratio": trl.wall_s / packed.wall_s,
        "training_ratio": trl.training_s / packed.training_s,
        "equal_scores": sum(trl.scores[run] == packed.scores.get(run) for run in trl.scores),
    }
