"""A lane: one run's slot in a pack, with everything that is the run's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch

from study.tasks.loading import load_task
from study.train.checkpoint import Keeper
from study.train.engine import Evaluation, Outcome, RunSpec, Sink
from study.train.health import Completed, Diverged, not_finite_before_training
from study.train.ledger import Ledger
from study.train.methods import Fingerprint, check_trainable, check_trained, dtype_names
from study.train.models import hash_parameters
from study.train.packed.batch import StepBatch
from study.train.packed.hf_model import HfModels, trained
from study.train.packed.model import PackedModel
from study.train.packed.optimizer import LaneOptimizer
from study.train.packed.rollout import Choice, Completions, Request
from study.train.packed.shared import Shared
from study.train.packed.weights import AdapterWeights
from study.train.rewards import Scorer, TaskReward


@dataclass
class Draws:
    """The run's random draws, in the order in which TRL's trainer makes them."""

    stream: torch.Generator
    """Sampling and shuffling; on a CPU also the data loader's seed."""
    loader: torch.Generator
    """The data loader's seed: the stream itself on a CPU, one beside it on a GPU."""
    order: torch.Generator
    """The sampler's permutations."""

    @staticmethod
    def of(seed: int, device: torch.device) -> Draws:
        """The draws of a run with this seed."""
        stream = torch.Generator(device).manual_seed(seed)
        on_cpu = device.type == "cpu"
        loader = stream if on_cpu else torch.Generator().manual_seed(seed)
        return Draws(stream, loader, torch.Generator().manual_seed(seed))

    def epoch(self, size: int) -> list[int]:
        """A new pass over the data: the order of its prompts."""
        torch.empty((), dtype=torch.int64).random_(generator=self.loader)
        return torch.randperm(size, generator=self.order).tolist()

    def shuffled(self, rows: int) -> list[int]:
        """The order in which a batch's rows go to its micro-batches."""
        return torch.randperm(rows, generator=self.loader).tolist()


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
        self.reward = TaskReward(
            self.scorer,
            self.data.train,
            prompt_lengths=[len(ids) for ids in self.data.train_ids],
            num_generations=self.objective.num_generations,
        )
        self.ledger = Ledger(spec, sink, self.scorer, self.reward)
        self.keeper = Keeper(self.config, spec.directory, shared.tokenizer, self.exported)
        self.weights = hf.initial_weights(spec)
        check_trainable(trained(self.weights), spec.trainable_params)
        self.optimizer = LaneOptimizer(self.weights, self.objective)
        self.draws = Draws.of(self.config.seed, model.template.device)
        self.step, self.seconds = 0, 0.0
        self._step_seconds, self._evaluated_step = 0.0, -1
        self._batch: StepBatch | None = None
        self._hash_before = self._weights_hash()
        self._prompts = self._prompt_order()

    @property
    def rows(self) -> int:
        """Completions of a step."""
        return self.objective.completions_per_step

    @property
    def generates(self) -> bool:
        """Whether the next step begins with new completions."""
        return self.step % self.objective.num_iterations == 0

    @property
    def batch(self) -> StepBatch:
        """The completions that it trains on."""
        assert self._batch is not None, "a step begins with a request"
        return self._batch

    @property
    def evaluation_due(self) -> bool:
        """Whether the run is to be evaluated before its next step."""
        return self._evaluated_step != self.step and self.ledger.evaluation_due(self.step)

    def charge(self, seconds: float) -> None:
        """Adds a share of the process's time."""
        self.seconds += seconds
        self._step_seconds = seconds

    def request(self) -> Request:
        """What the next step wants completed; takes the step's prompts off the epoch."""
        chosen = next(self._prompts)
        self._batch = StepBatch(self.objective, self.data, chosen, self.config.task)
        return Request(
            weights=self.weights,
            prompts=[self.data.train_ids[index] for index in chosen],
            choices=[Choice(self.objective.num_generations, self.draws.stream)],
            temperature=self.objective.temperature,
            entropy=True,
        )

    def take(self, completions: Completions) -> None:
        """Scores the completions and deals them to micro-batches."""
        texts = self.shared.decode(completions.ids)
        rewards = self.reward(
            completions=texts, completion_ids=completions.ids, problem=self.batch.problems
        )
        self.batch.score(completions, rewards, self.shared.end_or_pad)
        self.batch.deal(self.draws.shuffled(self.rows))

    def end_step(self) -> None:
        """Clips, updates the weights, and enters the step in the books.

        Raises:
            RunEnded: If the run ends with this step.
        """
        norm, rate = self.optimizer.step()
        logs = self.batch.metrics(first=self.generates)
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

    def _prompt_order(self) -> Iterator[list[int]]:
        """Problems of each step; an epoch's last prompts that do not fill a step are left out."""
        size = self.objective.prompts_per_step
        while True:
            order = self.draws.epoch(len(self.data.train))
            for start in range(0, len(order) - size + 1, size):
                yield order[start : start + size]
