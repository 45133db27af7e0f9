"""Experiments to mirror, and the mirror as a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from analysis.simulate.store import rank_arms, write_experiment
from study.plan.experiment import PlannedRun
from study.records.store import ExperimentStore
from study.sweep.schedule import read_state
from study.tracking.transactions import records

ROOT = Path(__file__).resolve().parents[3]


def small_sweep(path: Path) -> ExperimentStore:
    """Two arms of two rates, a search seed and a report seed each: 6 runs."""
    arms = rank_arms((8,), points=2)
    return ExperimentStore(write_experiment(path, arms, search_seeds=1, report_seeds=1))


def environment(**variables: str) -> dict[str, str]:
    """This process's environment without W&B's variables and keys, and with ``variables``."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("WANDB_")}
    return {**kept, "NETRC": "/nonexistent/netrc", "PYTHONPATH": str(ROOT), **variables}


def command(store: ExperimentStore, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "study.tracking", str(store.path), *arguments]


def mirrored(
    store: ExperimentStore, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(store, *arguments),
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=55,
        stdin=subprocess.DEVNULL,
    )


def runs_of(store: ExperimentStore) -> list[PlannedRun]:
    return read_state(store).plan.runs


def stored_rows(store: ExperimentStore, run: PlannedRun) -> list[dict[str, Any]]:
    text = (store.run_dir(run.arm, run.run_id) / "metrics.jsonl").read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    return [{key: value for key, value in row.items() if value is not None} for row in rows]


def files_of(store: ExperimentStore, run: PlannedRun) -> list[Path]:
    """W&B's files of a run; one, unless something went wrong."""
    name = f"run-{store.path.name}-{run.run_id}.wandb"
    return list(store.path.glob(f"wandb/offline-run-*/{name}"))


class Written:
    """What a ``.wandb`` file says."""

    def __init__(self, file: Path) -> None:
        self.rows: list[dict[str, Any]] = []
        self.config: dict[str, Any] = {}
        self.summary: dict[str, Any] = {}
        self.tags: list[str] = []
        self.ended = False
        for record in records(file):
            kind = record.WhichOneof("record_type")
            if kind == "history":
                values = _values(record.history.item)
                self.rows.append({k: v for k, v in values.items() if not k.startswith("_")})
            if kind == "summary":
                self.summary |= _values(record.summary.update)
            if kind == "run":
                self.run = record.run
                self.config |= _values(record.run.config.update)
                self.tags = list(record.run.tags)
            self.ended = self.ended or kind == "exit"
        self.config.pop("_wandb", None)


def _values(items: Any) -> dict[str, Any]:
    return {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}
