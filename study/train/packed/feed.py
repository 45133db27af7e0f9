"""Where a lane's batches come from: completions that it draws, or worked solutions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from study.config import GrpoObjective, SftObjective
from study.train.engine import RunSpec
from study.train.packed.batch import Micro, StepBatch
from study.train.packed.layout import LaneRows
from study.train.packed.loss import Terms
from study.train.packed.rollout import Choice, Completions, Request
from study.train.packed.shared import RunData, Shared
from study.train.packed.solutions import SolutionBatch
from study.train.packed.weights import LaneWeights
from study.train.rewards import Scorer, TaskReward
from study.train.solutions import Solutions
from study.train.tally import BatchSource


@dataclass
class Draws:
    """The run's random draws, in the order in which TRL's GRPO trainer makes them."""

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


class LaneBatch(Protocol):
    """The batch of one step of one lane.

    Attributes:
        micros: Its micro-batches.
        advantages: Of each row.
    """

    micros: list[Micro]
    advantages: list[float]

    def lane_rows(self, micro: Micro) -> LaneRows:
        """What a micro-batch brings to a training pass."""

    def metrics(self, *, first: bool) -> dict[str, float]:
        """The step's metrics under TRL's names; `first`: with the batch's first step."""


class Feed(Protocol):
    """Where the batches of one lane come from.

    Attributes:
        terms: What a training pass reads of its objective.
    """

    terms: Terms

    @property
    def source(self) -> BatchSource:
        """What the ledger asks about the current batch."""

    @property
    def batch(self) -> LaneBatch:
        """The batch of the current step."""

    def request(self, step: int) -> Request | None:
        """Begins the step after `step` others: what it wants completed, if anything."""

    def take(self, completions: Completions) -> None:
        """Takes in what was requested."""


def feed_of(
    spec: RunSpec, scorer: Scorer, shared: Shared, weights: LaneWeights, device: torch.device
) -> Feed:
    """The feed of a run.

    Args:
        spec: The run.
        scorer: What scores.
        shared: Tokenizer and data of the pack.
        weights: The lane's, which sample.
        device: Where they are.
    """
    data, objective = shared.data(spec), spec.config.objective
    if isinstance(objective, GrpoObjective):
        return GrpoFeed(spec, objective, scorer, shared, data, weights, device)
    assert isinstance(objective, SftObjective)
    return SftFeed(spec, objective, Solutions(spec.config, data.train, shared.tokenizer))


class GrpoFeed:
    """Completions of training prompts, drawn by the lane and scored."""

    def __init__(
        self,
        spec: RunSpec,
        objective: GrpoObjective,
        scorer: Scorer,
        shared: Shared,
        data: RunData,
        weights: LaneWeights,
        device: torch.device,
    ) -> None:
        """See :func:`feed_of`; ``data`` are the run's problems."""
        self.terms = Terms.of(objective)
        self.source = TaskReward(
            scorer,
            data.train,
            prompt_lengths=[len(ids) for ids in data.train_ids],
            num_generations=objective.num_generations,
        )
        self._objective, self._task = objective, spec.config.task
        self._shared, self._data, self._weights = shared, data, weights
        self._draws = Draws.of(spec.config.seed, device)
        self._prompts = self._prompt_order()
        self._batch: StepBatch | None = None

    @property
    def batch(self) -> StepBatch:
        """The completions that the lane trains on."""
        assert self._batch is not None, "a step begins with a request"
        return self._batch

    def request(self, step: int) -> Request | None:
        """New completions where the last ones have served; takes their prompts off the epoch."""
        if step % self._objective.num_iterations:
            return None
        chosen = next(self._prompts)
        self._batch = StepBatch(self._objective, self._data, chosen, self._task)
        return Request(
            weights=self._weights,
            prompts=[self._data.train_ids[index] for index in chosen],
            choices=[Choice(self._objective.num_generations, self._draws.stream)],
            temperature=self._objective.temperature,
            entropy=True,
        )

    def take(self, completions: Completions) -> None:
        """Scores the completions and deals them to micro-batches."""
        texts = self._shared.decode(completions.ids)
        rewards = self.source(
            completions=texts, completion_ids=completions.ids, problem=self.batch.problems
        )
        self.batch.score(completions, rewards, self._shared.end_or_pad)
        self.batch.deal(self._draws.shuffled(len(rewards)))

    def _prompt_order(self) -> Iterator[list[int]]:
        """Problems of each step; an epoch's last prompts that do not fill a step are left out."""
        size = self._objective.prompts_per_step
        while True:
            order = self._draws.epoch(len(self._data.train))
            for start in range(0, len(order) - size + 1, size):
                yield order[start : start + size]


class SftFeed:
    """Worked solutions of training prompts."""

    def __init__(self, spec: RunSpec, objective: SftObjective, solutions: Solutions) -> None:
        """Builds the feed.

        Args:
            spec: The run.
            objective: Its batch.
            solutions: Of its training problems.
        """
        self.terms = Terms.of(objective)
        self.source, self._objective = solutions, objective
        self._steps = solutions.steps()
        self._batch: SolutionBatch | None = None

    @property
    def batch(self) -> SolutionBatch:
        """The solutions that the lane trains on."""
        assert self._batch is not None, "a step begins with a request"
        return self._batch

    def request(self, step: int) -> None:
        """Takes the step's solutions off the epoch; nothing is to be completed."""
        chosen: Sequence[int] = next(self._steps)
        self.source.read(chosen)
        self._batch = SolutionBatch(self._objective, self.source, chosen)

    def take(self, completions: Completions) -> None:
        """Nothing was requested."""
        raise AssertionError("supervised lanes request no completions")
