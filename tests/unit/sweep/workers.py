"""Workers with the torch-free engine, in this process or in one that can be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from study.config import with_cell
from study.plan.experiment import to_json
from study.records.store import ExperimentStore
from study.sweep.schedule import read_plan, read_state
from study.sweep.work.worker import Worker
from tests.engine_double import true_score
from tests.plans import toy_plan

ENGINES = {"packed": "tests.engine_double", "trl": "tests.engine_double"}
ROOT = Path(__file__).resolve().parents[3]


def prepared(path: Path, **changes: Any) -> ExperimentStore:
    store = ExperimentStore(path)
    store.write_plan(to_json(toy_plan(**changes)))
    return store


def drain(store: ExperimentStore, stall_timeout_s: float = 60, **how: Any) -> None:
    place = read_plan(store).storage
    Worker(store, stall_timeout_s, engines=ENGINES, storage=place, **how).work()


def assert_every_planned_run_once(store: ExperimentStore) -> None:
    state = read_state(store)
    assert len(state.plan.runs) == 16  # 12 search cells and 2 arms x 2 report seeds
    assert state.records.keys() == {run.run_id for run in state.plan.runs}
    on_disk = [p.parent.name for p in store.path.glob("*/*/record.json")]
    assert sorted(on_disk) == sorted(state.records)
    for run in state.plan.runs:
        config = with_cell(state.plan.arms[run.arm].config, run.learning_rate, run.seed)
        assert state.records[run.run_id].score_final == true_score(config)


WORK = """
import sys
from pathlib import Path
if __name__ == "__main__":  # every child imports this file, and needs nothing of it
    from study.records.store import ExperimentStore
    from tests.unit.sweep.workers import drain
    drain(ExperimentStore(Path(sys.argv[1])), workers=int(sys.argv[2]))
"""


def start_worker(
    store: ExperimentStore, script: Path, first: str = "", step_s: float = 0.05, workers: int = 1
) -> subprocess.Popen[bytes]:
    """Start one of ``workers`` workers; ``first`` is run in its process before anything else."""
    script.write_text(first + WORK)
    environment = {
        **os.environ,
        "ENGINE_DOUBLE_STEP_S": str(step_s),
        "ENGINE_DOUBLE_LOG": str(script.with_name("trained.txt")),
        "PYTHONPATH": str(ROOT),
    }
    return subprocess.Popen(
        [sys.executable, str(script), str(store.path), str(workers)],
        env=environment,
        preexec_fn=heed_interrupts,
    )


def heed_interrupts() -> None:
    """A shell starts background jobs with SIGINT ignored, and the test may be in one."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for_records(store: ExperimentStore, worker: subprocess.Popen[bytes], count: int) -> None:
    """Wait until so many runs are published and the worker still works."""
    deadline = time.monotonic() + 60
    while len(list(store.path.glob("*/*/record.json"))) < count:
        assert time.monotonic() < deadline and worker.poll() is None
        time.sleep(0.02)
