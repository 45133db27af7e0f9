"""``python -m tests.benchmarks.sweep_overhead``: seconds per run of everything but training.

A worker with a torch-free engine drains plans of growing size, a run a process under ``trl`` and in
packs under ``packed``; the first record ends what the worker's start takes, and is left out.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from study.config import SeedsConfig
from study.plan.experiment import to_json
from study.records.store import ExperimentStore
from study.sweep.worker import Worker
from tests.plans import toy_plan

ENGINES = {"trl": "tests.engine_double", "packed": "tests.engine_double"}
SIZES = (20, 100, 300)


def overhead_s(engine: str, runs: int) -> float:
    """Mean seconds from one record to the next over a plan of ``runs`` runs."""
    seeds = SeedsConfig(search=list(range(1000, 1000 + runs)), report=[])
    plan = toy_plan(engine=engine, seeds=seeds)
    with tempfile.TemporaryDirectory() as directory:
        store = ExperimentStore(Path(directory))
        store.write_plan(to_json(replace(plan, runs=plan.runs[:runs])))
        Worker(store, 60, engines=ENGINES).work()
        times = [p.stat().st_mtime for p in store.path.glob("*/*/record.json")]
    assert len(times) == runs, f"{len(times)} records of {runs} runs"
    return (max(times) - min(times)) / (runs - 1)


if __name__ == "__main__":
    for engine in ENGINES:
        for size in SIZES:
            print(f"{engine}, {size} runs: {overhead_s(engine, size) * 1e3:.0f} ms per run")
