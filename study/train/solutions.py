"""Worked solutions as training data: what each step of supervised fine-tuning reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from study.config import RunConfig
from study.tasks.base import Problem
from study.train.rewards import Batch


class Solutions:
    """The solutions of a run's training problems, and the steps that take them.

    Both engines read them in the order of :meth:`steps`.

    Attributes:
        prompts: Token ids of each problem's prompt.
        completions: Token ids of each problem's solution, its end token included.
        batch: What the current step reads; None before the first.
        generated_tokens: 0: nothing is drawn.
    """

    def __init__(self, config: RunConfig, problems: Sequence[Problem], tokenizer: Any) -> None:
        """Tokenizes prompts and solutions.

        Args:
            config: The run.
            problems: Its training problems.
            tokenizer: The model's tokenizer.

        Raises:
            ValueError: If the tokenizer has no end token, or a solution is longer than the task's
                ``max_completion_length``.
        """
        self.batch: Batch | None = None
        self.generated_tokens = 0
        self.prompts: list[list[int]] = tokenizer([p.prompt for p in problems])["input_ids"]
        self.completions = solution_ids(problems, tokenizer, config.task.max_completion_length)
        self._config = config

    def steps(self) -> Iterator[list[int]]:
        """Problems of each step: every epoch in a new order, drawn by the run's seed.

        An epoch's last problems that do not fill a step are left out, as in GRPO.
        """
        draws = torch.Generator().manual_seed(self._config.seed)
        size = self._config.objective.prompts_per_step
        while True:
            order = torch.randperm(len(self.prompts), generator=draws).tolist()
            for start in range(0, len(order) - size + 1, size):
                yield order[start : start + size]

    def read(self, chosen: Sequence[int]) -> None:
        """Note what a step reads."""
        self.batch = Batch.of_solutions(
            [(len(self.prompts[index]), len(self.completions[index])) for index in chosen]
        )


def solution_ids(problems: Sequence[Problem], tokenizer: Any, longest: int) -> list[list[int]]:
    """Token ids of each problem's solution as it follows the prompt, its end token included.

    Args:
        problems: The problems.
        tokenizer: The model's tokenizer.
        longest: ``task.max_completion_length``.

    Raises:
        ValueError: If the tokenizer has no end token, or a solution is too long.
    """
    end = tokenizer.eos_token_id
    if end is None:
        raise ValueError("objective=sft needs a tokenizer with an end token (eos_token), got none")
    texts = [problem.solution for problem in problems]
    found = [[*ids, end] for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]]
    most = max(map(len, found))
    if most > longest:
        raise ValueError(
            "task.max_completion_length must hold every worked solution under objective=sft: the "
            f"longest has {most} tokens with its end, got {longest}"
        )
    return found
