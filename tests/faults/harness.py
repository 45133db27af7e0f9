"""Sweeps that suffer: launched again until they are done, then held against one left in peace."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq

from study.config import SeedsConfig
from study.plan.experiment import Plan
from study.records.store import REOPENED, ExperimentStore
from study.sweep.claims.claims import Claims
from study.sweep.claims.storage import Storage
from study.sweep.schedule import State, read_state, write_plan
from tests.faults.injections import Fault
from tests.faults.tally import Seen, look
from tests.plans import toy_plan
from tests.sums import TALLY
from tests.unit.sweep.workers import ROOT, drain, heed_interrupts

OF_THE_PROCESS = {"wall_time_s", "peak_memory_bytes", "probes", "git_commit"}
"""What a record says of how it came about, and not of what came out."""
RETRIES = 100
"""One run may be struck by one fault after the other."""
PATIENCE_S = 120.0
"""Longer than any launch takes on a busy machine: what lasts longer hangs."""
SCRIPT = """
from tests.faults.injections import install
install({faults!r}, {markers!r}, __name__)
import sys
from pathlib import Path
if __name__ == "__main__":
    {first}
    from study.records.store import ExperimentStore
    from tests.unit.sweep.workers import drain
    drain(ExperimentStore(Path(sys.argv[1])), {stall_timeout_s}, workers={workers})
"""


def outcomes(store: ExperimentStore, state: State) -> dict[str, Any]:
    """By run id, all that must come out the same: record, metrics, evaluations."""
    found: dict[str, Any] = {}
    for run_id, record in state.records.items():
        directory = store.run_dir(record.arm, run_id)
        facts = {k: v for k, v in asdict(record).items() if k not in OF_THE_PROCESS}
        table = pq.read_table(directory / "evaluations.parquet").to_pylist()
        found[run_id] = (facts, (directory / "metrics.jsonl").read_text(), table)
    return found


@dataclass
class Sweep:
    """An experiment of the torch-free engine, and what it must come to."""

    home: Path
    engine: str = "trl"
    seeds: int = 3
    storage: str | None = None
    max_retries: int = RETRIES
    rng: random.Random = field(default_factory=lambda: random.Random(0))

    def __post_init__(self) -> None:
        self.markers = self.home / "markers"
        self.markers.mkdir(parents=True)
        self.store = ExperimentStore(self.home / "toy")
        self.began = time.monotonic()
        self.workers: list[subprocess.Popen[bytes]] = []
        peaceful = ExperimentStore(self.home / "peaceful")
        for store, url in ((peaceful, None), (self.store, self.storage)):
            claims = Claims(store, Storage(store, url), "toy")
            with store.lock():
                write_plan(store, claims, replace(self.plan(), storage=url))
        drain(peaceful)
        self.expected = read_state(peaceful)
        self.expected_outcomes = outcomes(peaceful, self.expected)
        self.expected_selections = peaceful.read_selections()

    def plan(self) -> Plan:
        """Two arms at three rates; report runs join as arms are decided."""
        search = list(range(1000, 1000 + self.seeds))
        plan = toy_plan(engine=self.engine, seeds=SeedsConfig(search=search, report=[100, 101]))
        return replace(plan, max_retries=self.max_retries)

    def claims(self) -> Claims:
        """The sweep's claims, as a launch opens them."""
        return Claims(self.store, Storage(self.store, self.storage), "toy")

    def launch(
        self,
        faults: Sequence[Fault] = (),
        workers: int = 1,
        step_s: float = 0.0,
        stall_timeout_s: float = 60.0,
        first: str = "pass",
        retry: bool = False,
    ) -> list[subprocess.Popen[bytes]]:
        """Settle the storage as a launch does, and start workers with faults in wait."""
        TALLY.launches += 1
        state, claims = read_state(self.store), self.claims()
        for run in (state.plan.run(run_id) for run_id in state.given_up if retry):
            self.store.reopen(run.arm, run.run_id)
            claims.reopen(run, state.plan.arms[run.arm])
        claims.settle(state.plan, state.records)
        started = [
            self._worker(i, faults, workers, step_s, stall_timeout_s, first) for i in range(workers)
        ]
        self.workers += started
        return started

    def _worker(
        self,
        index: int,
        faults: Sequence[Fault],
        workers: int,
        step_s: float,
        stall_timeout_s: float,
        first: str,
    ) -> subprocess.Popen[bytes]:
        script = self.home / f"work{index}.py"
        script.write_text(
            SCRIPT.format(
                faults=[(f.point, f.nth, f.action) for f in faults],
                markers=str(self.markers),
                workers=workers,
                stall_timeout_s=stall_timeout_s,
                first=first,
            )
        )
        environ = {
            **os.environ,
            "ENGINE_DOUBLE_STEP_S": str(step_s),
            "ENGINE_DOUBLE_LOG": str(self.home / "trained.txt"),
            "PYTHONPATH": str(ROOT),
        }
        with (self.home / "output.txt").open("ab") as output:
            return subprocess.Popen(
                [sys.executable, str(script), str(self.store.path)],
                env=environ,
                preexec_fn=heed_interrupts,
                stdout=output,
                stderr=output,
            )

    def suffer(self, faults: Sequence[Fault], **how: Any) -> int:
        """Launch until every fault has struck that can, then until the sweep is done.

        Returns:
            Number of faults that struck.
        """
        for _ in range(len(faults) + 1):
            for worker in self.launch(faults, **how):
                worker.wait(timeout=PATIENCE_S)
            self.check_so_far()
            if not read_state(self.store).open_runs:
                break
        self.finish(retry=how.get("retry", False))
        struck = len(list(self.markers.iterdir()))
        TALLY.injections += struck
        return struck

    def finish(self, *, retry: bool = False, forgot: bool = False) -> None:
        """What the parent of the launches so far does last, a launch in peace, every promise kept.

        Args:
            retry: Whether the launch reopens what was given up.
            forgot: Whether the storage was taken what it knew of the records.
        """
        self.check_left(forgot=forgot)
        for worker in self.launch(workers=1, retry=retry):
            assert worker.wait(timeout=PATIENCE_S) == 0, self.output()
        self.check_done()
        TALLY.seconds += time.monotonic() - self.began
        TALLY.runs += len(self.expected.records)

    def output(self) -> str:
        """What the workers have said."""
        return (self.home / "output.txt").read_text()[-3000:]

    def seen(self) -> Seen:
        """What the storage holds now."""
        seen = look(Storage(self.store, self.storage))
        TALLY.doubled += len(seen.doubled)
        return seen

    def check_so_far(self) -> None:
        """Whatever was published is as it must be, at any moment; call when no worker runs."""
        self._check_outcomes(read_state(self.store))
        self._check_debris(self.seen(), forgot=False)

    def check_left(self, *, forgot: bool) -> None:
        """What the dead left is mended by the last look of their own launch, not by the next one.

        A claim of another machine is left where it is: it is over when its lease is.
        """
        self._check_debris(self.seen(), forgot)
        self.claims().held(read_state(self.store).plan)
        after = self.seen()
        waiting = [t.user_attrs for t in after.running]
        assert not after.doubled
        assert all(w["lease"]["host"] != socket.gethostname() for w in waiting), waiting
        assert forgot or self._untold(after) <= {w["run_id"] for w in waiting}

    def _untold(self, seen: Seen) -> set[str]:
        """Runs with a record that no ended trial holds."""
        return read_state(self.store).records.keys() - {k for k, n in seen.told.items() if n}

    def _check_debris(self, seen: Seen, forgot: bool) -> None:
        """A running trial is a dead worker's; a record without a trial, of one that had to tell."""
        untold = self._untold(seen)
        TALLY.running += len(seen.running)
        TALLY.untold += len(untold)
        well = {worker.pid for worker in self.workers if worker.returncode == 0}
        assert not seen.doubled
        for trial in seen.running:
            held_by = trial.user_attrs["lease"]["pid"]
            assert held_by not in well or seen.repeats(trial), trial.user_attrs
        running = {trial.user_attrs["run_id"] for trial in seen.running}
        assert forgot or untold <= running

    def _check_outcomes(self, state: State) -> None:
        """Every record, with its log and its evaluations, is that of a sweep left in peace."""
        found = outcomes(self.store, state)
        differing = [k for k, outcome in found.items() if outcome != self.expected_outcomes.get(k)]
        TALLY.differing += len(differing)
        assert not differing

    def check_done(self) -> None:
        """Every run once in the store and in the storage, nothing differs, nothing is left over."""
        state, seen = read_state(self.store), self.seen()
        lost = (self.expected.records.keys() - state.records.keys()) | self._untold(seen)
        TALLY.lost += len(lost)
        assert not lost, self.output()
        assert not state.open_runs and not state.given_up, self.output()
        assert [r.run_id for r in state.plan.cells("full", "search")] == [
            r.run_id for r in self.expected.plan.cells("full", "search")
        ]
        self._check_outcomes(state)
        assert self.store.read_selections() == self.expected_selections
        files = list(self.store.path.glob("*/*/record.json"))
        assert sorted(p.parent.name for p in files) == sorted(self.expected.records)
        assert not list(self.store.path.glob("*/*/attempts/*/result.json"))
        assert not seen.running and not seen.doubled
        assert {run_id for run_id, count in seen.told.items() if count} == state.records.keys()
        self._check_attempts()

    def _check_attempts(self) -> None:
        for path in self.store.path.glob("*/*/attempts.jsonl"):
            tries = [json.loads(line) for line in path.read_text().splitlines()]
            numbers = [attempt["attempt"] for attempt in tries if attempt["attempt"] != REOPENED]
            assert numbers == sorted(set(numbers))
            assert not any(a["spent"] for a in tries if a["reason"] == "its worker died")

    def kill_at_random(self, workers: int, kills: int, step_s: float = 0.05) -> None:
        """SIGKILL a random process of a random worker's family, so many times, then finish."""
        for _ in range(kills):
            running = self.launch(workers=workers, step_s=step_s)
            time.sleep(self.rng.uniform(0.5, 4.0))
            self.strike(running)
            for worker in running:
                worker.wait(timeout=PATIENCE_S)
            self.check_so_far()
        self.finish()

    def strike(self, workers: Sequence[subprocess.Popen[bytes]]) -> None:
        """SIGKILL one process at random; a child's death is its worker's to survive."""
        families: list[psutil.Process] = []
        for worker in workers:
            with contextlib.suppress(psutil.NoSuchProcess):
                process = psutil.Process(worker.pid)
                families += [process, *process.children(recursive=True)]
        if families:
            victim = self.rng.choice(families)
            with contextlib.suppress(psutil.NoSuchProcess):
                victim.kill()
                TALLY.injections += 1
        # Those that are not struck go on; only their deaths are of interest here.
        for worker in self.rng.sample(list(workers), k=len(workers) // 2):
            worker.kill()
            TALLY.injections += 1
