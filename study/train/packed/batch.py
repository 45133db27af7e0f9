"""The completions of one step of one lane: scored, dealt to micro-batches, weighed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import torch
from torch import Tensor

from study.config import GrpoObjective, TaskConfig
from study.train.packed.layout import LaneRows
from study.train.packed.loss import advantages, row_weights
from study.train.packed.rollout import Completions
from study.train.packed.shared import RunData


@dataclass
class Micro:
    """A micro-batch: the rows of it that have a gradient.

    Attributes:
        rows: Rows of the step, in the step's order.
        weights: Weight of each row's tokens in the loss.
        size: Rows of the micro-batch, those without a gradient included.
        old: Log-probabilities [tokens] under the policy that sampled them, once known.
        loss: Loss of the micro-batch in the last pass over it.
        clipped: Share of its tokens whose ratio was clipped in that pass; of its rows, where a row
            has one ratio and one advantage.
        entropy: Mean entropy of its tokens' distributions, in nats: the rollout's, and where one
            batch serves several steps that of the last pass.
        accuracy: Share of its tokens that were the likeliest, under supervised fine-tuning.
    """

    rows: list[int]
    weights: list[float]
    size: int
    old: Tensor | None = None
    loss: float = 0.0
    clipped: float = 0.0
    entropy: float = 0.0
    accuracy: float = 0.0


class StepBatch:
    """A batch of completions, from its prompts to the metrics of the step.

    Attributes:
        problems: Training problem of each row.
        micros: Its micro-batches, once dealt.
    """

    def __init__(
        self, objective: GrpoObjective, data: RunData, chosen: Sequence[int], task: TaskConfig
    ) -> None:
        """Begins a batch.

        Args:
            objective: The loss.
            data: The run's problems.
            chosen: Training problems of the step.
            task: Its longest completion.
        """
        self._objective, self._data = objective, data
        self._longest = task.max_completion_length
        self._chosen = list(chosen)
        self.problems = [index for index in chosen for _ in range(objective.num_generations)]
        self.micros: list[Micro] = []

    def score(
        self, completions: Completions, rewards: Sequence[float], end_or_pad: frozenset[int]
    ) -> None:
        """Takes in the completions and their rewards, one for each row."""
        self.ids = completions.ids
        self._rewards = torch.tensor(rewards, dtype=torch.float32)
        scaled, self._deviation = advantages(self._rewards, self._objective)
        self.advantages: list[float] = scaled.tolist()
        self._ended = [ids[-1] in end_or_pad for ids in self.ids]
        masked = self._objective.mask_truncated_completions
        self._counted = [
            len(ids) if ended or not masked else 0
            for ids, ended in zip(self.ids, self._ended, strict=True)
        ]
        self._row_entropy: list[float] = completions.entropy.tolist()

    def deal(self, order: Sequence[int]) -> None:
        """Deals the rows, in this order, to micro-batches; those without a gradient drop out.

        A row of zero advantage has a gradient of exactly zero, since there is neither a penalty
        nor an entropy bonus, and shaping leaves zero as it is. Where one batch serves several steps
        they stay, for the metrics; where tokens are kept by their entropy, for the ranking.
        """
        size = self._objective.micro_batch_size or len(order)
        stay = self._objective.num_iterations > 1 or self._objective.top_entropy_quantile < 1
        self.micros = []
        for start in range(0, len(order), size):
            rows = list(order[start : start + size])
            weights = row_weights(self._counted, rows, self._objective, self._longest)
            weight_of = dict(zip(rows, weights, strict=True))
            kept = [r for r in sorted(rows) if self._counted[r] and (stay or self.advantages[r])]
            self.micros.append(
                Micro(kept, [weight_of[row] for row in kept], size, entropy=self._entropy(rows))
            )

    def _entropy(self, rows: Sequence[int]) -> float:
        counted = [row for row in rows if self._counted[row]]
        tokens = sum(self._counted[row] for row in counted)
        return sum(self._row_entropy[row] for row in counted) / max(tokens, 1)

    def lane_rows(self, micro: Micro) -> LaneRows:
        """The rows of a micro-batch, with the prompts that they share."""
        size = self._objective.num_generations
        groups = sorted({row // size for row in micro.rows})
        place = {group: i for i, group in enumerate(groups)}
        return LaneRows(
            prompts=[self._data.train_ids[self._chosen[group]] for group in groups],
            groups=[place[row // size] for row in micro.rows],
            completions=[self.ids[row] for row in micro.rows],
            padded=(
                max(len(self._data.train_ids[index]) for index in self._chosen),
                max(map(len, self.ids)),
            ),
        )

    def metrics(self, *, first: bool) -> dict[str, float]:
        """The step's metrics under TRL's names; those of the completions with their first step."""
        logs = {"loss": sum(micro.loss for micro in self.micros)}
        logs["entropy"] = fmean(micro.entropy for micro in self.micros)
        logs["clip_ratio/region_mean"] = fmean(micro.clipped for micro in self.micros)
        if first:
            lengths = [len(ids) for ids in self.ids]
            zero = torch.isclose(self._deviation, torch.zeros_like(self._deviation))
            logs["reward"] = float(self._rewards.mean())
            logs["reward_std"] = float(self._rewards.std()) if len(lengths) > 1 else math.nan
            logs["frac_reward_zero_std"] = float(zero.float().mean())
            logs["completions/mean_length"] = sum(lengths) / len(lengths)
            logs["completions/clipped_ratio"] = 1 - sum(self._ended) / len(self._ended)
        return logs
