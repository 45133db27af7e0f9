"""``python -m tests.benchmarks.sweep_overhead``: seconds per run of everything but training.

A worker with a torch-free engine drains plans of growing size; the first run pays the worker's
start and is left out.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path

from study.config import SeedsConfig
from study.plan.experiment import to_json
from study.records.store import ExperimentStore
from study.sweep.worker import Worker
from tests.plans import toy_plan

ENGINES = {"trl": "tests.engine_double"}


def overhead_s(runs: int) -> float:
    """Median seconds between two records of a plan of ``runs`` runs."""
    seeds = SeedsConfig(search=list(range(1000, 1000 + runs)), report=[])
    plan = toy_plan(seeds=seeds)
    with tempfile.TemporaryDirectory() as directory:
        store = ExperimentStore(Path(directory))
        store.write_plan(to_json(replace(plan, runs=plan.runs[:runs])))
        Worker(store, 60, engines=ENGINES).work()
        times = sorted(p.stat().st_mtime for p in store.path.glob("*/*/record.json"))
    return statistics.median(b - a for a, b in itertools.pairwise(times[1:]))


if __name__ == "__main__":
    for size in (20, 100, 300):
        print(f"{size:>5} runs: {overhead_s(size) * 1e3:.0f} ms per run")
