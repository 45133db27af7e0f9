"""A worker: claims runs, has a child train them, publishes records, leaves when all is done."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import socket
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psutil

from study.config import with_cell
from study.plan.experiment import Plan, PlannedRun
from study.plan.identity import eval_role
from study.records.record import Record
from study.records.store import ExperimentStore, write_json
from study.sweep.child import ENGINES, Assignment, Progress, run_child
from study.sweep.claims import LEASE_GRACE_S, Claim, Claims
from study.sweep.schedule import State, refresh
from study.train.engine import RunSpec

POLL_S = 0.5
TAKEN_OVER = "another worker took the run over"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def share_cores(workers: int) -> None:
    """Give each of ``workers`` here its share of threads, and one GPU; call before torch loads."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    threads = str(max(1, (cores or 1) // workers))
    for variable in THREAD_VARIABLES:
        os.environ.setdefault(variable, threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    # TRL would spread a run over all visible GPUs, which multiplies its batch.
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")


class Worker:
    """One claimant of an experiment's runs."""

    def __init__(
        self,
        store: ExperimentStore,
        stall_timeout_s: float,
        wanted: Collection[str] | None = None,
        engines: Mapping[str, str] = ENGINES,
    ) -> None:
        self.store = store
        self.claims = Claims(store, lease_s=stall_timeout_s + LEASE_GRACE_S)
        self.stall_timeout_s = stall_timeout_s
        self.wanted = wanted
        self.engines = engines
        self.context: BaseContext | None = None
        self.badge = store.workers_dir / f"{socket.gethostname()}-{os.getpid()}.json"

    def work(self) -> None:
        """Drain the plan, or the wanted part of it; returns when none of its runs is open."""
        try:
            while (state := self._state()).open_runs:
                claim = self.claims.take(state.open_runs)
                if claim is None:
                    self._show_idle()
                    time.sleep(POLL_S)  # others hold what is left, and may leave it
                else:
                    self._carry_out(state.plan, claim)
        finally:
            self.badge.unlink(missing_ok=True)

    def _state(self) -> State:
        return refresh(self.store, self.claims).only(self.wanted)

    def _carry_out(self, plan: Plan, claim: Claim) -> None:
        arm, run_id = claim.run.arm, claim.run.run_id
        if self.store.record(arm, run_id) is not None:
            return self._publish(claim, None)  # done by another since the plan was read
        if (finished := self.store.finished_attempt(arm, run_id)) is not None:
            return self._publish(claim, finished)  # its worker died before it could publish
        directory = self.store.new_attempt(arm, run_id)
        try:
            status, reason = self._train(plan, claim, directory)
        except KeyboardInterrupt:
            if not (directory / "result.json").exists():
                shutil.rmtree(directory, ignore_errors=True)
            self.claims.give_back(claim, "interrupted")
            raise
        if status == "result":
            return self._publish(claim, directory)
        spent = reason != TAKEN_OVER
        self.store.append_attempt(arm, run_id, int(directory.name), status, reason, spent)
        self.claims.give_back(claim, status)

    def _publish(self, claim: Claim, directory: Path | None) -> None:
        """Make an attempt's result the run's record, and tell the score of whatever record won."""
        if directory is not None:
            record = Record(**json.loads((directory / "result.json").read_text()))
            self.store.publish(record, directory)
        published = self.store.record(claim.run.arm, claim.run.run_id)
        assert published is not None
        self.claims.finish(claim, published)

    def _train(self, plan: Plan, claim: Claim, directory: Path) -> tuple[str, str]:
        """Train in a child; ``("result", "")`` or the attempt's status and reason."""
        engine = self.engines[plan.engine]
        assignment = assign(plan, claim.run, directory, engine)
        with self._child(assignment) as (child, connection):
            ended = self._watch(claim, assignment, child, connection)
        if (directory / "result.json").exists():
            return "result", ""
        return ended or failed_attempt(directory, child.exitcode)

    def _watch(
        self, claim: Claim, assignment: Assignment, child: BaseProcess, connection: Connection
    ) -> tuple[str, str] | None:
        """Follow a child to its end; status and reason if this worker ended it."""
        alive_at = time.monotonic()
        progress = Progress(step=0, accuracy=None)
        self._show(assignment, progress)
        while True:
            if connection.poll(POLL_S):
                try:
                    message: Progress = connection.recv()
                except (EOFError, OSError):
                    child.join()
                    return None
                known = progress.accuracy if message.accuracy is None else message.accuracy
                progress = replace(message, accuracy=known)
                alive_at = time.monotonic()
                self._show(assignment, progress)
            elif time.monotonic() - alive_at > self.stall_timeout_s:
                child.kill()
                child.join()
                return "stalled", f"no progress for {self.stall_timeout_s:g} s"
            if not self.claims.renew(claim):
                child.kill()
                child.join()
                return "killed", TAKEN_OVER

    @contextmanager
    def _child(self, assignment: Assignment) -> Iterator[tuple[BaseProcess, Connection]]:
        context = self._context(assignment.engine_module)
        ours, theirs = multiprocessing.Pipe()
        process: Any = context.Process(  # type: ignore[attr-defined]
            target=run_child, args=(theirs, assignment)
        )
        try:
            process.start()
            theirs.close()  # or the end of the child would not end the pipe
            yield process, ours
        finally:
            if process.pid is not None:  # Ctrl-C may come while it starts
                process.kill()
                process.join()
            ours.close()

    def _context(self, engine_module: str) -> BaseContext:
        if self.context is None:
            methods = multiprocessing.get_all_start_methods()
            name = "forkserver" if "forkserver" in methods else "spawn"
            self.context = multiprocessing.get_context(name)
            if name == "forkserver":
                # What is missing here every child imports anew: the command line, what trains, and
                # pandas, which pyarrow loads on first use.
                preload = ["__main__", engine_module, "study.sweep.child", "pandas"]
                self.context.set_forkserver_preload(preload)
                with ignoring_interrupts():
                    forkserver.ensure_running()
        return self.context

    def _show(self, assignment: Assignment, progress: Progress) -> None:
        spec = assignment.spec
        self._write_badge(
            {
                "run_id": spec.run_id,
                "arm": assignment.arm,
                "phase": assignment.phase,
                "learning_rate": spec.config.objective.learning_rate,
                "seed": spec.config.seed,
                "step": progress.step,
                "steps": spec.config.objective.steps,
                "accuracy": progress.accuracy,
            }
        )

    def _show_idle(self) -> None:
        self._write_badge({"run_id": None})

    def _write_badge(self, content: dict[str, Any]) -> None:
        process = psutil.Process()
        who = {"host": socket.gethostname(), "pid": process.pid, "started": process.create_time()}
        write_json(self.badge, {**who, **content})


@contextmanager
def ignoring_interrupts() -> Iterator[None]:
    """Processes started here ignore Ctrl-C, which is their parent's to handle."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def assign(plan: Plan, run: PlannedRun, directory: Path, engine_module: str) -> Assignment:
    """What a child needs to train ``run`` and to write its record."""
    arm = plan.arms[run.arm]
    spec = RunSpec(
        run_id=run.run_id,
        config=with_cell(arm.config, run.learning_rate, run.seed),
        model=arm.model,
        target_modules=arm.target_modules,
        trainable_params=arm.trainable_params,
        eval_role=eval_role(run.phase),
        directory=directory,
    )
    return Assignment(
        spec=spec,
        experiment=plan.experiment.name,
        arm=run.arm,
        phase=run.phase,
        factors=arm.factors,
        engine_module=engine_module,
    )


def failed_attempt(directory: Path, exitcode: int | None) -> tuple[str, str]:
    """How a child ended that left no result: a status, and the reason in a sentence."""
    if (directory / "error.json").exists():
        error = json.loads((directory / "error.json").read_text())
        return error["status"], error["reason"]
    if exitcode is not None and exitcode < 0:
        name = signal.Signals(-exitcode).name
        return "killed", f"the training process was ended by {name}"
    return "failed", f"the training process left with exit code {exitcode} and no result"
