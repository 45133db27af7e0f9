"""Sweeps at a moment of which the numbers are known."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from study.plan.experiment import to_json
from study.records.files import write_json
from study.records.store import ExperimentStore
from study.sweep.claims.leases import new_lease
from study.sweep.schedule import read_state
from tests.plans import toy_plan


def unfinished(path: Path, source: ExperimentStore, done: int) -> ExperimentStore:
    """The first ``done`` search runs of a finished sweep, the plan without report runs."""
    store = ExperimentStore(path)
    plan = toy_plan()
    store.write_plan(to_json(plan))
    for run in plan.runs[:done]:
        record = source.record(run.arm, run.run_id)
        assert record is not None
        seconds = 10.0 if run.arm == "full" else 30.0
        content = dataclasses.asdict(dataclasses.replace(record, wall_time_s=seconds))
        write_json(store.run_dir(run.arm, run.run_id) / "record.json", content)
    return store


def show(store: ExperimentStore, rows: list[dict[str, Any]], **lease: Any) -> None:
    """A worker's badge; of this process unless ``lease`` says otherwise."""
    badge = {**new_lease(), **lease, "runs": rows}
    write_json(store.workers_dir / f"{badge['host']}-{badge['pid']}.json", badge)


def row(store: ExperimentStore, index: int, step: int = 1) -> dict[str, Any]:
    run = read_state(store).plan.runs[index]
    return {
        "run_id": run.run_id, "arm": run.arm, "phase": run.phase, "seed": run.seed,
        "learning_rate": run.learning_rate, "step": step, "steps": 3, "accuracy": None,
    }  # fmt: skip
