"""A lane: one run's slot in a pack, with everything that is the run's own."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

from study.tasks.loading import load_task
from study.train.checkpoint import Keeper
from study.train.engine import Evaluation, Outcome, RunSpec, Sink
from study.train.health import Completed, Diverged, not_finite_before_training
from study.train.ledger import Ledger
from study.train.methods import Fingerprint, check_trainable, check_trained, dtype_names
from study.train.models import hash_parameters
from study.train.packed.feed import LaneBatch, feed_of
from study.train.packed.hf_model import HfModels, trained
from study.train.packed.model import PackedModel
from study.train.packed.optimizer import LaneOptimizer
from study.train.packed.rollout import Completions, Request
from study.train.packed.shared import Shared
from study.train.packed.weights import AdapterWeights
from study.train.rewards import Scorer


class Lane:
    """One run, from its first evaluation to its last step.

    Attributes:
        spec: The run.
        weights: What it trains.
        step: Optimizer steps done.
        seconds: Its share of the process's time so far.
        ledger: Its books.
    """

    def __init__(
        self, spec: RunSpec, sink: Sink, model: PackedModel, hf: HfModels, shared: Shared
    ) -> None:
        """Builds the lane; nothing of it is shared with others but the base and the data.

        Args:
            spec: The run.
            sink: Where its metrics go.
            model: The packed model.
            hf: The libraries' models around it.
            shared: Tokenizer and data of the pack.
        """
        self.spec, self.config, self.model, self._hf = spec, spec.config, model, hf
        self.objective = spec.config.objective
        self.shared = shared
        self.data = shared.data(spec)
        self.scorer = Scorer(load_task(self.config.task))
        self.weights = hf.initial_weights(spec)
        self.feed = feed_of(spec, self.scorer, shared, self.weights, model.template.device)
        self.ledger = Ledger(spec, sink, self.scorer, self.feed.source)
        self.keeper = Keeper(self.config, spec.directory, shared.tokenizer, self.exported)
        check_trainable(trained(self.weights), spec.trainable_params)
        self.optimizer = LaneOptimizer(self.weights, self.objective)
        self.step, self.seconds = 0, 0.0
        self._step_seconds, self._evaluated_step, self._drew = 0.0, -1, False
        self._hash_before = self._weights_hash()

    @property
    def rows(self) -> int:
        """Sequences of a step."""
        return self.objective.rows_per_step

    @property
    def batch(self) -> LaneBatch:
        """What the current step trains on."""
        return self.feed.batch

    @property
    def evaluation_due(self) -> bool:
        """Whether the run is to be evaluated before its next step."""
        return self._evaluated_step != self.step and self.ledger.evaluation_due(self.step)

    def charge(self, seconds: float) -> None:
        """Adds a share of the process's time."""
        self.seconds += seconds
        self._step_seconds = seconds

    def request(self) -> Request | None:
        """Begins the next step: what it wants completed, if anything."""
        request = self.feed.request(self.step)
        self._drew = request is not None
        return request

    def take(self, completions: Completions) -> None:
        """Takes in what was requested."""
        self.feed.take(completions)

    def end_step(self) -> None:
        """Clips, updates the weights, and enters the step in the books.

        Raises:
            RunEnded: If the run ends with this step.
        """
        norm, rate = self.optimizer.step()
        logs = self.batch.metrics(first=self._drew)
        logs |= {"grad_norm": norm, "learning_rate": rate, "step_time": self._step_seconds}
        self.step += 1
        finite = bool(torch.isfinite(self.weights.flat).all())
        self.ledger.after_step(self.step, logs, weights_finite=finite)

    def evaluated(self, evaluation: Evaluation | Diverged) -> None:
        """Takes in the evaluation that was due.

        Raises:
            Diverged: If that is what it found.
            ValueError: If the model was no distribution to begin with.
        """
        if isinstance(evaluation, Diverged):
            if self.step > 0:
                raise evaluation
            raise not_finite_before_training(self.config) from evaluation
        self._evaluated_step = self.step
        self.ledger.evaluated(evaluation)
        if self.step > 0:
            self.keeper.evaluated(evaluation.accuracy)

    def go_on(self) -> None:
        """Raises `RunEnded` if the run is complete, or early stopping ends it."""
        if self.step == self.objective.steps:
            raise Completed("")
        self.ledger.stop_early(self.step)

    def outcome(self, status: str, reason: str, base_hash: str) -> Outcome:
        """Closes the run: checks what was trained, keeps the weights.

        Args:
            status: Status of the record.
            reason: Why it ended.
            base_hash: Hash of the base as it was loaded.

        Raises:
            RuntimeError: If the base changed, or the run did not train what it should.
        """
        before = Fingerprint(base_hash, self._hash_before)
        after = Fingerprint(hash_parameters(self.model.base.items()), self._weights_hash())
        completed = status == "completed"
        check_trained(before, after, trained(self.weights), must_have_moved=completed)
        if completed:
            self.keeper.completed()
        return self.ledger.outcome(
            status,
            reason,
            seconds=self.seconds,
            dtypes=self._dtypes(),
            weights_before=before.trained,
            weights_after=after.trained,
        )

    def _weights_hash(self) -> str:
        return hash_parameters(trained(self.weights))

    def exported(self) -> AbstractContextManager[Any]:
        """The run as an ordinary model, PEFT's under LoRA, for as long as the block lasts."""
        return self._hf.exported(self.spec, self.weights)

    def _dtypes(self) -> dict[str, str]:
        found = {"base": dtype_names(self.model.base.values())}
        if isinstance(self.weights, AdapterWeights):
            found["adapter"] = dtype_names([self.weights.flat])
        return {**found, "optimizer": dtype_names(self.optimizer.moments())}
