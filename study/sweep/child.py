"""The process that trains: it writes only inside its attempt's directory and ends with its worker.

Children come from a forkserver that has imported the engine once, since that import costs ten
seconds and more. What a child leaves is ``result.json`` for a result, or ``error.json`` and
``traceback.txt`` for a failed attempt.
"""

from __future__ import annotations

import importlib
import os
import signal
import threading
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from study.compose import to_yaml
from study.config import LoraMethod
from study.plan.flops import forward_flops_per_token, train_flops_per_token
from study.records.provenance import provenance
from study.records.record import Record
from study.records.store import write_json
from study.records.writer import RunWriter
from study.train.engine import Engine, Evaluation, Outcome, RunSpec

ENGINES = {"trl": "study.train.trl"}
"""Engine name -> module with its ``train``; the forkserver imports it before the first run."""


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """What a child is given: the run, and what its record says beside the measurements."""

    spec: RunSpec
    experiment: str
    arm: str
    phase: str
    factors: dict[str, Any]
    engine_module: str
    """Module with the engine's ``train``."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """A sign of life of a run."""

    step: int
    accuracy: float | None
    """Held-out accuracy, if the sign is an evaluation."""


class ReportingSink:
    """Writes an attempt's streams and tells the worker that the run is alive."""

    def __init__(self, writer: RunWriter, connection: Connection) -> None:
        self._writer, self._connection = writer, connection
        self._step = 0

    def log(self, run_id: str, step: int, metrics: Mapping[str, float]) -> None:
        """Append one line of metrics."""
        self._step = step
        self._writer.metrics(step, metrics)
        self.alive(run_id)

    def evaluation(self, run_id: str, evaluation: Evaluation) -> None:
        """Append one evaluation and its metrics."""
        e = evaluation
        self._writer.evaluation(
            e.step, e.prompt_ids, e.completions, e.correct, e.greedy_correct, e.tokens
        )
        metrics = {
            "eval/accuracy": e.accuracy,
            "eval/greedy_accuracy": e.greedy_accuracy,
            "eval/reward": e.mean_reward,
            "eval/completion_length": sum(e.tokens) / len(e.tokens),
        }
        self._writer.metrics(e.step, metrics)
        self._connection.send(Progress(step=e.step, accuracy=e.accuracy))

    def alive(self, run_id: str) -> None:
        """Tell the worker that the run makes progress."""
        self._connection.send(Progress(step=self._step, accuracy=None))


def run_child(connection: Connection, assignment: Assignment) -> None:
    """Train one run; entry point of the child process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=_leave_with_worker, args=(connection,), daemon=True).start()
    directory = assignment.spec.directory
    _redirect_output(directory / "log.txt")
    try:
        origin = provenance()
        model = assignment.spec.model
        revisions = {
            "model_revision": model.model_revision,
            "data_revision": model.data_revision,
        }
        write_json(directory / "provenance.json", {**origin, **revisions})
        outcome = _train(connection, assignment)
        record = build_record(assignment, outcome, origin["git_commit"])
        write_json(directory / "result.json", asdict(record))
    except Exception as error:  # the run boundary: whatever happened becomes a recorded status
        (directory / "traceback.txt").write_text(traceback.format_exc())
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        write_json(directory / "error.json", {"status": attempt_status(error), "reason": reason})


def _train(connection: Connection, assignment: Assignment) -> Outcome:
    spec = assignment.spec
    engine: Engine = importlib.import_module(assignment.engine_module).train
    (spec.directory / "config.yaml").write_text(to_yaml(spec.config))
    writer = RunWriter(spec.directory)
    try:
        (outcome,) = engine([spec], ReportingSink(writer, connection), lambda: None)
    finally:
        writer.close()
    return outcome


def attempt_status(error: BaseException) -> str:
    """``oom`` for memory that ran out, on host or device; else ``failed``."""
    is_oom = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return "oom" if is_oom or "not enough memory" in str(error) else "failed"


def build_record(assignment: Assignment, outcome: Outcome, git_commit: str) -> Record:
    """The record of a result: the plan's facts and the engine's measurements."""
    spec, config = assignment.spec, assignment.spec.config
    method, model = config.method, spec.model
    lora = method if isinstance(method, LoraMethod) else None
    measured = {k: v for k, v in asdict(outcome).items() if k != "run_id"}
    train = train_flops_per_token(method, spec.target_modules, model)
    sampled_tokens = outcome.train_tokens / config.objective.num_iterations  # prompts included
    return Record(
        run_id=spec.run_id,
        experiment=assignment.experiment,
        arm=assignment.arm,
        phase=assignment.phase,
        factors=assignment.factors,
        method=method.name,
        lora_rank=lora.rank if lora else None,
        lora_alpha=lora.alpha if lora else None,
        alpha_rule=lora.alpha_rule if lora else None,
        target_modules=list(spec.target_modules),
        learning_rate=config.objective.learning_rate,
        prompts_per_step=config.objective.prompts_per_step,
        num_generations=config.objective.num_generations,
        objective=config.objective.name,
        task=config.task.label,
        model=config.model.name,
        model_revision=model.model_revision,
        hidden_size=model.hidden_size,
        seed=config.seed,
        engine=config.engine.name,
        score_metric="eval/accuracy",
        direction="maximize",
        final_window=config.evaluation.final_window,
        eval_prompts=config.evaluation.eval_prompts,
        steps_planned=config.objective.steps,
        trainable_params=spec.trainable_params,
        total_params=model.total_params,
        train_flops=outcome.train_tokens * train,
        rollout_flops=sampled_tokens * forward_flops_per_token(model),
        git_commit=git_commit,
        **measured,
    )


def _leave_with_worker(connection: Connection) -> None:
    try:
        connection.recv()
    except (EOFError, OSError):  # OSError: it died with our messages unread
        os._exit(1)


def _redirect_output(path: Path) -> None:
    """Libraries talk to the attempt's log, not into the sweep's progress display."""
    try:
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    except FileNotFoundError:  # Ctrl-C while this child started: its worker took the attempt back
        os._exit(1)
    os.dup2(log, 1)
    os.dup2(log, 2)
