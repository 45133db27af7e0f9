"""What a run adds up: metrics under our names, tokens, episodes, memory."""

import math
import resource
import sys
from collections.abc import Mapping
from typing import Any, Protocol

import torch

from study.plan.flops import Sequences
from study.train.rewards import Batch

METRIC_NAMES = {
    "loss": "train/loss",
    "grad_norm": "train/grad_norm",
    "learning_rate": "train/learning_rate",
    "reward": "train/reward",
    "reward_std": "train/reward_std",
    "frac_reward_zero_std": "train/frac_reward_zero_std",
    "entropy": "train/entropy",
    "mean_token_accuracy": "train/token_accuracy",
    "kl": "train/kl",
    "clip_ratio/region_mean": "train/clip_fraction",
    "completions/mean_length": "train/completion_length",
    "completions/clipped_ratio": "train/clipped_ratio",
    "step_time": "time/step_s",
}
"""TRL's names of what a step logs -> ours, which stay when TRL's move."""


def named_metrics(logs: Mapping[str, Any]) -> dict[str, float]:
    """Returns a step's metrics under our names.

    Values that are absent or not finite are left out, so that every line is valid JSON; a run
    whose loss or gradient is not finite ends there and says so in its status.
    """
    found = {ours: logs.get(theirs) for theirs, ours in METRIC_NAMES.items()}
    return {
        name: float(value)
        for name, value in found.items()
        if value is not None and math.isfinite(value)
    }


class BatchSource(Protocol):
    """What knows the batches of a run: its reward function, or its solutions.

    Attributes:
        batch: The current step's; None before the first.
        generated_tokens: Completion tokens drawn so far.
    """

    batch: Batch | None
    generated_tokens: int


class Tally:
    """Counts over the optimizer steps of one run.

    Attributes:
        steps: Optimizer steps done.
        prompts: Prompts that were trained on, each counted once for each time a batch held it.
        episodes: Completions that were trained on, each counted once.
        sampled: Their prompts and they, as they were drawn.
        read: The same as one pass reads them.
        trained: The same as training passes read them, each pass counted.
        unequal_groups: Groups with unequal rewards among them.
        bits: What their rewards can tell.
        rewards: Different rewards so far.
    """

    def __init__(self, num_iterations: int) -> None:
        """Builds the tally.

        Args:
            num_iterations: Optimizer steps for each batch.
        """
        self.steps = self.prompts = self.episodes = self.unequal_groups = 0
        self.sampled = self.read = self.trained = Sequences()
        self.bits = 0.0
        self.rewards: frozenset[float] = frozenset()
        self._num_iterations = num_iterations

    def add(self, batch: Batch) -> bool:
        """Takes in one optimizer step on a batch; returns whether it was the batch's first."""
        first = self.steps % self._num_iterations == 0
        self.steps += 1
        self.trained += batch.trained
        if first:
            self.prompts += batch.prompts
            self.episodes += batch.completions
            self.sampled += batch.sampled
            self.read += batch.trained
            self.unequal_groups += batch.unequal_groups
            self.bits += batch.bits
            self.rewards |= batch.rewards
        return first


def peak_memory() -> int:
    """Returns the most memory this process has held so far, in bytes: GPU memory if it uses one."""
    if torch.cuda.is_available():
        return int(torch.cuda.max_memory_allocated())
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
