"""The arithmetic task, changed: a reward that random models get, and prompts of many lengths."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from study.tasks.arithmetic import ArithmeticTask
from study.tasks.base import Problem, Score


@contextlib.contextmanager
def dense_reward() -> Iterator[None]:
    """Scores the share of characters with an even code: random models get a signal as well."""

    def even_share(self: ArithmeticTask, problem: Problem, completion: str) -> Score:
        even = sum(ord(character) % 2 == 0 for character in completion)
        return Score(even / max(len(completion), 1), 2 * even > len(completion))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ArithmeticTask, "score", even_share)
        yield


@contextlib.contextmanager
def ragged_prompts() -> Iterator[None]:
    """Cuts up to four characters off the front of the prompts: batches need padding."""
    whole = ArithmeticTask.problems

    def ragged(self: ArithmeticTask, role: Any, count: int) -> list[Problem]:
        return [
            dataclasses.replace(problem, prompt=problem.prompt[(7 * i) % 5 :])
            for i, problem in enumerate(whole(self, role, count))
        ]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ArithmeticTask, "problems", ragged)
        yield
