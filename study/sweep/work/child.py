"""The process that trains a pack: it writes only inside its runs' attempt directories.

Children come from a forkserver that has imported the engine once, since that import costs ten
seconds and more, and end with their worker. What a child leaves of a run is ``result.json`` for a
result, or ``error.json`` and ``traceback.txt`` for a failed attempt; ``log.txt`` is one file that
all runs of a pack share.
"""

from __future__ import annotations

import errno
import importlib
import os
import queue
import signal
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from study.compose import to_yaml
from study.plan.facts import run_facts
from study.probes.behaviour.settings import BehaviourSettings
from study.probes.stored import StoredRun
from study.records.files import is_disk_full, write_json
from study.records.provenance import gpu_name
from study.records.record import Record
from study.records.writer import RunWriter
from study.sweep.work.messages import (
    AsksToStop,
    Assignment,
    Ended,
    Failed,
    Message,
    News,
    PackAssignment,
    Progress,
    WantsRuns,
)
from study.train.engine import Engine, Evaluation, Outcome, RunSpec

if TYPE_CHECKING:
    from study.probes.result import Prober

ENGINES = {"packed": "study.train.packed", "trl": "study.train.trl"}
"""Engine name -> module with its ``train``; the forkserver imports it before the first run."""
NEWS_EVERY_S = 0.5
"""A pack may take hundreds of run-steps a second; nobody watches that closely."""
LOG = "log.txt"
DISK_FULL = errno.ENOSPC
"""Exit code of a child that had no room to write."""
LEAVING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2)
"""A terminal and SLURM send them to every process of a job; giving runs back is the worker's part.
"""


def run_child(connection: Connection, pack: PackAssignment) -> None:
    """Train a pack; entry point of the child process."""
    for number in LEAVING_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    sink = PackSink(WorkerLine(connection), pack)
    try:
        specs = [sink.admit(run) for run in pack.runs]
        engine: Engine = importlib.import_module(pack.engine_module).train
        engine(specs, sink, sink.next_run)
    except Exception as error:  # the run boundary: whatever happened becomes a recorded status
        sink.abandon(error)
    # Nothing is left to say; taking torch apart would cost more than a short run. The pipe is left
    # to end with the process: closed here, its listener would take that for the worker's death.
    os._exit(0)


class WorkerLine:
    """The pipe to the worker; a thread reads it, so that the worker's death is noticed at once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def say(self, message: Message) -> None:
        """Tell the worker something."""
        self._connection.send(message)

    def ask(self, question: WantsRuns | AsksToStop) -> Any:
        """Ask the worker and wait for its answer."""
        self._connection.send(question)
        return self._answers.get()

    def _listen(self) -> None:
        try:
            while True:
                self._answers.put(self._connection.recv())
        except (EOFError, OSError):  # OSError: it died with our messages unread
            os._exit(1)


class Desk:
    """One run's files in the child."""

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment
        self.directory = assignment.spec.directory
        self.step = 0
        self._writer: RunWriter | None = None

    def open(self, origin: Mapping[str, Any]) -> None:
        """Write what is known before training, and open the streams."""
        model = self.assignment.spec.model
        revisions = {"model_revision": model.model_revision, "data_revision": model.data_revision}
        write_json(self.directory / "provenance.json", {**origin, **revisions})
        (self.directory / "config.yaml").write_text(to_yaml(self.assignment.spec.config))
        self._writer = RunWriter(self.directory)

    @property
    def writer(self) -> RunWriter:
        """The streams of an open desk."""
        assert self._writer is not None, "a desk is opened before its run is trained"
        return self._writer

    def leave_result(self, outcome: Outcome, git_commit: str) -> Record:
        """Close the streams and write the result, which says that the attempt is complete."""
        self.writer.close()
        record = build_record(self.assignment, outcome, git_commit)
        write_json(self.directory / "result.json", asdict(record))
        return record

    def leave_error(self, error: Exception) -> None:
        """Close the streams and write why the attempt failed."""
        if self._writer is not None:
            self._writer.close()
        (self.directory / "traceback.txt").write_text("".join(traceback.format_exception(error)))
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        write_json(
            self.directory / "error.json", {"status": attempt_status(error), "reason": reason}
        )


class PackSink:
    """Takes what an engine brings to the run that it is about, and tells the worker."""

    def __init__(self, line: WorkerLine, pack: PackAssignment) -> None:
        self._line = line
        self._stops_early = pack.stops_early
        self._origin = {**pack.origin, "gpu": gpu_name()}
        self._desks: dict[str, Desk] = {}
        self._offered: list[Assignment] = []
        self._news: dict[str, Progress] = {}
        self._told_at = time.monotonic()
        self._prober: Prober | None = None

    def admit(self, assignment: Assignment) -> RunSpec:
        """Take in a run; returns what the engine sees of it."""
        desk = Desk(assignment)
        neighbour = next(iter(self._desks.values()), None)
        share_log(desk.directory, neighbour.directory if neighbour else None)
        self._desks[assignment.spec.run_id] = desk
        desk.open(self._origin)
        return assignment.spec

    def next_run(self) -> RunSpec | None:
        """Ask the worker for another run; see :data:`study.train.engine.NextRun`."""
        if not self._offered:  # runs of a pack tend to end together: one question for all places
            self._offered = list(self._line.ask(WantsRuns()))
        return self.admit(self._offered.pop(0)) if self._offered else None

    def log(self, run_id: str, step: int, metrics: Mapping[str, float]) -> None:
        """Append one line of metrics."""
        self._desks[run_id].step = step
        self._desks[run_id].writer.metrics(step, metrics)
        self._news[run_id] = Progress(run_id=run_id, step=step, accuracy=None)
        self.alive(run_id)

    def evaluation(self, run_id: str, evaluation: Evaluation) -> None:
        """Append one evaluation and its metrics."""
        e, writer = evaluation, self._desks[run_id].writer
        writer.evaluation(
            e.step, e.prompt_ids, e.completions, e.correct, e.greedy_correct, e.tokens
        )
        metrics = {
            "eval/accuracy": e.accuracy,
            "eval/greedy_accuracy": e.greedy_accuracy,
            "eval/reward": e.mean_reward,
            "eval/completion_length": sum(e.tokens) / len(e.tokens),
        }
        writer.metrics(e.step, metrics)
        self._news[run_id] = Progress(run_id=run_id, step=e.step, accuracy=e.accuracy)
        self._tell()

    def alive(self, run_id: str) -> None:
        """Tell the worker, not too often, that the pack makes progress."""
        if time.monotonic() - self._told_at >= NEWS_EVERY_S:
            self._tell()

    def _tell(self) -> None:
        self._line.say(News(progress=list(self._news.values())))
        self._news.clear()
        self._told_at = time.monotonic()

    def stops_early(self, run_id: str, step: int) -> str | None:
        """The reason why early stopping ends the run now, or None."""
        if not self._stops_early:
            return None
        reason: str | None = self._line.ask(AsksToStop(run_id=run_id, step=step))
        return reason

    def ended(self, outcome: Outcome) -> None:
        """Leave a run's result, measure the weights that it kept, and have it published.

        In this order, so that no probe can take a result with it, whatever becomes of the process.
        """
        desk = self._desks[outcome.run_id]
        record = desk.leave_result(outcome, self._origin["git_commit"])
        if desk.assignment.spec.config.probes.is_on:
            self._probe(StoredRun(desk.directory, record, desk.assignment.spec.config))
        self._leave(outcome.run_id, Ended(run_id=outcome.run_id))

    def _probe(self, run: StoredRun) -> None:
        if self._prober is None:
            from study.probes.result import Prober  # torch stays out of the worker

            asked = BehaviourSettings() if run.config.probes.behaviour else None
            self._prober = Prober(asked)
        run_id = run.record.run_id
        self._prober.probe_result(run, run.config.probes, lambda what, done: self.alive(run_id))

    def failed(self, run_id: str, error: Exception) -> None:
        """Leave a run's error; the others go on."""
        leave_if_disk_full(error)
        self._desks[run_id].leave_error(error)
        self._leave(run_id, Failed(run_id=run_id))

    def _leave(self, run_id: str, message: Ended | Failed) -> None:
        del self._desks[run_id]
        self._news.pop(run_id, None)
        self._line.say(message)

    def abandon(self, error: Exception) -> None:
        """Leave the error with every run that has not ended."""
        leave_if_disk_full(error)
        for desk in self._desks.values():
            desk.leave_error(error)


def leave_if_disk_full(error: Exception) -> None:
    """A full disk is no run's fault, and there is no room to write of it: say it by exit code."""
    if is_disk_full(error):
        os._exit(DISK_FULL)


NO_MEMORY = ("not enough memory", "can't allocate memory")
"""What PyTorch's allocator for the host says in a plain RuntimeError, on Windows and on Linux."""


def attempt_status(error: BaseException) -> str:
    """``oom`` for memory that ran out, on host or device; else ``failed``."""
    is_oom = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    said = any(words in str(error) for words in NO_MEMORY)
    return "oom" if is_oom or said else "failed"


def build_record(assignment: Assignment, outcome: Outcome, git_commit: str) -> Record:
    """The record of a result: the plan's facts and the engine's measurements."""
    spec = assignment.spec
    measured = {k: v for k, v in asdict(outcome).items() if k != "run_id"}
    planned = run_facts(spec.config, spec.model, spec.target_modules, spec.trainable_params)
    return Record(
        run_id=spec.run_id,
        experiment=assignment.experiment,
        arm=assignment.arm,
        phase=assignment.phase,
        factors=assignment.factors,
        engine=spec.config.engine.name,
        git_commit=git_commit,
        **planned,
        **measured,
    )


def share_log(directory: Path, neighbour: Path | None) -> None:
    """Libraries talk to a log in every attempt's directory, not into the progress display.

    It is one file under several names: what a pack says last is found beside every run that it
    takes down.
    """
    path = directory / LOG
    try:
        if neighbour is not None:
            os.link(neighbour / LOG, path)
            return
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    except FileNotFoundError:  # Ctrl-C while this child started: its worker took the attempt back
        os._exit(1)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
