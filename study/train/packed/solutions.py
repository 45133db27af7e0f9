"""The worked solutions of one step of one lane, dealt to micro-batches in their order."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from study.config import SftObjective
from study.train.packed.batch import Micro
from study.train.packed.layout import LaneRows
from study.train.solutions import Solutions


class SolutionBatch:
    """A batch of solutions, from its problems to the metrics of the step.

    Attributes:
        micros: Its micro-batches.
        advantages: 1 for each row: the gradient of a token's likelihood is that of a policy
            gradient with this advantage.
    """

    def __init__(
        self, objective: SftObjective, solutions: Solutions, chosen: Sequence[int]
    ) -> None:
        """Deals the rows; every token of the step has the same weight.

        Args:
            objective: Its micro-batches.
            solutions: Of the run.
            chosen: Training problems of the step.
        """
        self._prompts = [solutions.prompts[index] for index in chosen]
        self._completions = [solutions.completions[index] for index in chosen]
        self.advantages = [1.0] * len(chosen)
        size = objective.micro_batch_size or len(chosen)
        weight = 1 / sum(map(len, self._completions))
        starts = range(0, len(chosen), size)
        self.micros = [
            Micro(list(range(start, start + size)), [weight] * size, size) for start in starts
        ]

    def lane_rows(self, micro: Micro) -> LaneRows:
        """The rows of a micro-batch, each with a prompt of its own."""
        prompts = [self._prompts[row] for row in micro.rows]
        completions = [self._completions[row] for row in micro.rows]
        return LaneRows(
            prompts=prompts,
            groups=range(len(prompts)),
            completions=completions,
            padded=(max(map(len, prompts)), max(map(len, completions))),
            from_padding=False,
        )

    def metrics(self, *, first: bool) -> dict[str, float]:
        """The step's metrics under TRL's names."""
        return {
            "loss": sum(micro.loss for micro in self.micros),
            "entropy": fmean(micro.entropy for micro in self.micros),
            "mean_token_accuracy": fmean(micro.accuracy for micro in self.micros),
        }
