"""From completions to rewards: one guarded scorer, and the one reward function that TRL gets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from study.plan.flops import Sequences
from study.tasks.base import Problem, Score, Task
from study.train.information import reward_bits

MAX_ERROR_SHARE = 0.5  # of one batch of completions


@dataclass(frozen=True)
class Batch:
    """What the batch of a step showed.

    Attributes:
        completions: Number of completions that were drawn.
        prompts: Number of prompts.
        correct: Number of correct completions.
        unequal_groups: Groups with unequal rewards.
        rewards: The different rewards.
        bits: What they can tell, see :func:`study.train.information.reward_bits`.
        sampled: Prompts and completions as they were drawn.
        trained: The same as one training pass reads them.
    """

    completions: int
    prompts: int
    correct: int
    unequal_groups: int
    rewards: frozenset[float]
    bits: float
    sampled: Sequences
    trained: Sequences

    @classmethod
    def of_solutions(cls, lengths: Sequence[tuple[int, int]]) -> Batch:
        """A batch of worked solutions, from which nothing is drawn and nothing scored.

        Args:
            lengths: Tokens of each prompt and of its solution.
        """
        return cls(
            completions=0,
            prompts=len(lengths),
            correct=0,
            unequal_groups=0,
            rewards=frozenset(),
            bits=0.0,
            sampled=Sequences(),
            trained=Sequences.trained(lengths),
        )


def completion_text(completion: Any) -> str:
    """Returns the text of a completion: a string, or a list of messages with ``content``."""
    if isinstance(completion, str):
        return completion
    return "".join(str(message["content"]) for message in completion)


class Scorer:
    """A task's scorer, guarded: what it raises costs a completion the reward, and is counted."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._errors = 0

    @property
    def errors(self) -> int:
        """Completions that were not scored so far, those that the task itself counted included."""
        return self._errors + int(getattr(self._task, "scorer_errors", 0))

    def __call__(self, problems: Sequence[Problem], texts: Sequence[str]) -> list[Score]:
        """Returns the scores of a batch of completions, rewards finite.

        Raises:
            RuntimeError: If more than half of the batch could not be scored.
        """
        before = self.errors
        scores = [self._one(p, t) for p, t in zip(problems, texts, strict=True)]
        failed = self.errors - before
        if failed > MAX_ERROR_SHARE * len(scores):
            raise RuntimeError(
                f"the scorer of task {self._task.name} failed on {failed} of {len(scores)} "
                "completions at once."
            )
        return scores

    def _one(self, problem: Problem, text: str) -> Score:
        try:
            score = self._task.score(problem, text)
        except Exception:  # scorers are foreign code; the share that may fail is bounded above
            return self._failed()
        return score if math.isfinite(score.reward) else self._failed()

    def _failed(self) -> Score:
        self._errors += 1
        return Score(reward=0.0, correct=False)


class TaskReward:
    """The reward function of one run.

    Attributes:
        batch: The last scored batch; None before the first.
        generated_tokens: Completion tokens scored so far.
    """

    __name__ = "task"  # names the reward in TRL's metrics

    def __init__(
        self,
        scorer: Scorer,
        problems: Sequence[Problem],
        prompt_lengths: Sequence[int],
        num_generations: int,
    ) -> None:
        """Builds the reward.

        Args:
            scorer: What scores.
            problems: Training problems; the column ``problem`` of the data set indexes them.
            prompt_lengths: Tokens of each problem's prompt.
            num_generations: Completions of each group; groups are contiguous.
        """
        self.batch: Batch | None = None
        self.generated_tokens = 0
        self._scorer = scorer
        self._problems = problems
        self._prompt_lengths = prompt_lengths
        self._group = num_generations

    def __call__(
        self,
        *,
        completions: Sequence[Any],
        completion_ids: Sequence[Sequence[int]],
        problem: Sequence[int],
        **_: Any,
    ) -> list[float]:
        """Returns one finite reward for each completion.

        Args:
            completions: Texts, or lists of messages.
            completion_ids: Their tokens.
            problem: Index of the problem of each completion.

        Raises:
            RuntimeError: If the scorer fails on more than half of the batch.
        """
        texts = [completion_text(completion) for completion in completions]
        scores = self._scorer([self._problems[index] for index in problem], texts)
        rewards = [float(score.reward) for score in scores]
        groups = [rewards[i : i + self._group] for i in range(0, len(rewards), self._group)]
        lengths = [
            (self._prompt_lengths[index], len(ids))
            for index, ids in zip(problem, completion_ids, strict=True)
        ]
        self.generated_tokens += sum(completion for _, completion in lengths)
        self.batch = Batch(
            completions=len(rewards),
            prompts=len(groups),
            correct=sum(score.correct for score in scores),
            unequal_groups=sum(min(group) != max(group) for group in groups),
            rewards=frozenset(rewards),
            bits=reward_bits(groups),
            sampled=Sequences.sampled(lengths),
            trained=Sequences.trained(lengths),
        )
        return rewards
