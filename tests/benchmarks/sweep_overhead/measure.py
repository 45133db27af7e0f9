"""``python -m tests.benchmarks.sweep_overhead``: milliseconds per run of everything but training.

Workers with a torch-free engine drain plans of growing size, a run a process under ``trl`` and in
packs under ``packed``. The time is from the first record, which ends what a worker's start takes,
to the last, times the workers that had a core of their own, over the runs in between. Every run
is checked to be there once, in the store and in the storage.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from study.config import SeedsConfig
from study.records.store import ExperimentStore
from study.sweep.claims.claims import Claims
from study.sweep.claims.storage import Storage
from study.sweep.schedule import write_plan
from study.sweep.work.worker import Worker
from tests.cluster.postgres import private_server
from tests.plans import toy_plan

ENGINES = {"trl": "tests.engine_double", "packed": "tests.engine_double"}


def prepare(store: ExperimentStore, url: str | None, engine: str, runs: int) -> None:
    """A plan of ``runs`` search runs of three steps."""
    seeds = SeedsConfig(search=list(range(1000, 1000 + -(-runs // 6))), report=[])
    plan = toy_plan(engine=engine, seeds=seeds)
    claims = Claims(store, Storage(store, url), plan.experiment.name)
    with store.lock():
        write_plan(store, claims, replace(plan, runs=plan.runs[:runs], storage=url))


def work(path: Path, url: str | None, workers: int) -> None:
    """One worker, in its own process."""
    Worker(ExperimentStore(path), 60, engines=ENGINES, storage=url, workers=workers).work()


def drain(path: Path, url: str | None, workers: int) -> None:
    """All workers, from their start to the end of the last."""
    if workers == 1:
        work(path, url, workers)
        return
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=work, args=(path, url, workers)) for _ in range(workers)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * workers


def check(store: ExperimentStore, url: str | None, runs: int) -> None:
    """Every run once in the store, and once with its record in the storage."""
    trials = Storage(store, url).trials
    told = Counter(
        trial.user_attrs["run_id"]
        for optuna_study in trials.get_all_studies()
        for trial in trials.get_all_trials(optuna_study._study_id, deepcopy=False)
        if "record" in trial.user_attrs
    )
    published = [path.parent.name for path in store.path.glob("*/*/record.json")]
    assert len(published) == len(set(published)) == runs, f"{len(published)} records of {runs}"
    assert told == Counter(published)


def overhead_s(engine: str, runs: int, url: str | None, workers: int) -> float:
    """Mean seconds that a run costs the sweep beside its training."""
    with tempfile.TemporaryDirectory() as directory:
        store = ExperimentStore(Path(directory) / "toy")
        prepare(store, url, engine, runs)
        drain(store.path, url, workers)
        check(store, url, runs)
        times = [p.stat().st_mtime for p in store.path.glob("*/*/record.json")]
    return (max(times) - min(times)) * min(workers, os.cpu_count() or 1) / (runs - 1)


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--engine", nargs="+", choices=list(ENGINES), default=list(ENGINES))
    places = ("journal", "postgresql")
    parser.add_argument("--storage", nargs="+", choices=places, default=["journal"])
    options = parser.parse_args()
    for place in options.storage:
        for engine in options.engine:
            for workers in options.workers:
                for runs in options.runs:
                    with ExitStack() as stack:
                        server = place == "postgresql" and stack.enter_context(private_server())
                        cost = overhead_s(engine, runs, server.url if server else None, workers)
                    print(f"{place}, {engine}, {workers} worker(s), {runs} runs: "
                          f"{cost * 1e3:.1f} ms a run", flush=True)  # fmt: skip
