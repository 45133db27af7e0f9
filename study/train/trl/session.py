"""One run through one of TRL's trainers, from its specification to its outcome."""

import gc
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from transformers import PrinterCallback, TrainerCallback

from study.tasks.base import Problem
from study.tasks.loading import load_task
from study.train.checkpoint import Keeper
from study.train.engine import Outcome, RunSpec, Sink
from study.train.evaluate import Evaluator
from study.train.health import RunEnded, not_finite_before_training, sampling_divergence
from study.train.ledger import Ledger
from study.train.methods import (
    all_finite,
    check_trainable,
    check_trained,
    fingerprint,
    precisions,
    prepare_model,
    trained,
)
from study.train.models import check_revision, load_model, load_tokenizer
from study.train.rewards import Scorer
from study.train.tally import BatchSource


class Session(ABC):
    """One run; what its objective decides is in the subclasses."""

    def __init__(self, spec: RunSpec, sink: Sink) -> None:
        """Loads model, task and trainer.

        Raises:
            ValueError: If the model or task is not usable, or the model has changed since it was
                described.
            RuntimeError: If the method would not train what it should.
        """
        gc.freeze()  # the libraries' objects stay for good: no collection need visit them
        self.started = time.perf_counter()
        self.spec, self.sink, self.config = spec, sink, spec.config
        check_revision(spec.config.model, spec.model.model_revision)
        self.tokenizer = load_tokenizer(self.config.model)
        model = load_model(self.config.model)
        prepare_model(model, self.config.method)
        task = load_task(self.config.task)
        scorer = Scorer(task)
        source = self.make_source(scorer, task.problems("train", self.config.task.train_prompts))
        self.ledger = Ledger(spec, sink, scorer, source)
        held_out = task.problems(spec.held_out_role, self.config.evaluation.eval_prompts)
        self.evaluator = self._evaluator(held_out, scorer, model)
        self.trainer = self.make_trainer(model, callbacks=[_Observer(self)])
        self.trainer.remove_callback(PrinterCallback)
        self.keeper = Keeper(
            self.config, spec.directory, self.tokenizer, lambda: nullcontext(self.trainer.model)
        )
        check_trainable(trained(self.trainer.model), spec.trainable_params)
        self.weights = [weight.detach() for _, weight in trained(self.trainer.model)]

    @abstractmethod
    def make_source(self, scorer: Scorer, problems: Sequence[Problem]) -> BatchSource:
        """What knows the batch of each step.

        Args:
            scorer: What scores.
            problems: Training problems.
        """

    @abstractmethod
    def make_trainer(self, model: Any, **shared: Any) -> Any:
        """TRL's trainer.

        Args:
            model: The model, full fine-tuning's parameters made trainable.
            **shared: Arguments that every trainer takes.
        """

    def _evaluator(self, held_out: Sequence[Problem], scorer: Scorer, model: Any) -> Evaluator:
        return Evaluator(
            self.config,
            held_out,
            scorer,
            model,
            self.tokenizer,
            alive=lambda: self.sink.alive(self.spec.run_id),
        )

    def run(self) -> Outcome:
        """Trains, checks what was trained, and keeps the weights."""
        before = fingerprint(self.trainer.model)
        status, reason = self._train()
        after = fingerprint(self.trainer.model)
        completed = status == "completed"
        check_trained(before, after, trained(self.trainer.model), must_have_moved=completed)
        if completed:
            self.keeper.completed()
        return self.ledger.outcome(
            status,
            reason,
            seconds=time.perf_counter() - self.started,
            dtypes=precisions(self.trainer.model, self.config.method, self.trainer.optimizer),
            weights_before=before.trained,
            weights_after=after.trained,
        )

    def _train(self) -> tuple[str, str]:
        """Returns the status of the run and the reason for it."""
        try:
            self.trainer.train()
        except (RunEnded, RuntimeError) as error:
            end = error if isinstance(error, RunEnded) else sampling_divergence(error)
            if end is None:
                raise
            if not self.ledger.evaluations:
                raise not_finite_before_training(self.config) from error
            return end.status, end.reason
        return "completed", ""

    def evaluate(self, model: Any, step: int) -> None:
        """Evaluates the model after `step` optimizer steps.

        Raises:
            Pruned: If early stopping ends the run.
        """
        evaluation = self.evaluator(model, step, len(self.ledger.evaluations))
        self.ledger.evaluated(evaluation)
        if step > 0:
            self.keeper.evaluated(evaluation.accuracy)
        self.ledger.stop_early(step)

    def after_step(self, model: Any, step: int, logs: Mapping[str, Any]) -> None:
        """Enters the step that just ended in the books and, where due, evaluates.

        Raises:
            RunEnded: If the run ends with this step.
        """
        self.ledger.after_step(step, logs, weights_finite=all_finite(self.weights))
        if self.ledger.evaluation_due(step):
            self.evaluate(model, step)


class _Observer(TrainerCallback):  # type: ignore[misc]  # the library is untyped
    """Hands the trainer's events to the session; what the session raises ends the training."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._session.evaluate(kwargs["model"], step=0)

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        logs = kwargs["logs"]
        if "loss" in logs:  # the trainer's last log line sums up the run and is no step
            self._session.after_step(kwargs["model"], state.global_step, logs)
