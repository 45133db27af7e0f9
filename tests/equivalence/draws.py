"""The random draws of a TRL run, and how near one lay to the next token.

``torch.multinomial`` draws the token with the largest p/q, where q are exponential draws. Two
kernels that round differently may disagree only where two tokens are all but tied.
"""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from study.train.evaluate import Evaluator
from study.train.rewards import TaskReward
from tests.equivalence.recorder import train_trl
from tests.equivalence.recording import Batch, Recording

BOUNDARY = 1e-5
"""Largest relative distance between two tokens' p/q at which a draw may differ."""


@dataclasses.dataclass(frozen=True)
class Draw:
    """One call of the sampler for all rows of a batch: one position."""

    state: torch.Tensor
    """Of the generator, before the draw."""
    probabilities: torch.Tensor
    tokens: list[int]


@dataclasses.dataclass(frozen=True)
class Drawing:
    """All draws of one generated batch, and the generator's state when the batch was scored."""

    draws: list[Draw]
    state_after: torch.Tensor


@contextlib.contextmanager
def recorded_draws(found: list[Drawing]) -> Iterator[None]:
    """Records the draws of every training batch; those of evaluations are left out."""
    multinomial, evaluate, reward = torch.multinomial, Evaluator.__call__, TaskReward.__call__
    draws: list[Draw] = []
    evaluating = False

    def drawing(probabilities: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        state = torch.get_rng_state()
        tokens = multinomial(probabilities, *args, **kwargs)
        if not evaluating:
            draws.append(Draw(state, probabilities.clone(), tokens.flatten().tolist()))
        return tokens

    def evaluating_call(self: Evaluator, *args: Any, **kwargs: Any) -> Any:
        nonlocal evaluating
        evaluating = True
        try:
            return evaluate(self, *args, **kwargs)
        finally:
            evaluating = False

    def rewarding(self: TaskReward, **columns: Any) -> list[float]:
        found.append(Drawing(list(draws), torch.get_rng_state()))
        draws.clear()
        return reward(self, **columns)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "multinomial", drawing)
        patch.setattr(Evaluator, "__call__", evaluating_call)
        patch.setattr(TaskReward, "__call__", rewarding)
        yield


def exponential(state: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """The draws that the sampler makes from a state of the generator."""
    generator = torch.Generator()
    generator.set_state(state)
    return torch.empty_like(like).exponential_(1, generator=generator)


def distance_to(draw: Draw, row: int, token: int) -> float:
    """How far `token` was from being drawn: 1 - (its p/q) / (the drawn token's p/q)."""
    ratios = (draw.probabilities / exponential(draw.state, draw.probabilities))[row].double()
    drawn = draw.tokens[row]
    assert int(ratios.argmax()) == drawn, "the recorded draw is not reproduced"
    return float(1 - ratios[token] / ratios[drawn])


@dataclasses.dataclass(frozen=True)
class Difference:
    """The first position at which two runs drew different tokens."""

    batch: int
    position: int
    tokens: dict[int, tuple[int, int]]
    """Row -> the tokens of the first and the second run."""


def first_difference(one: list[Batch], other: list[Batch]) -> Difference | None:
    """Finds it, or None if every token of every batch is equal.

    Raises:
        AssertionError: if prompts differ, or a completion ends where the other goes on: no draw
            explains that.
    """
    for number, (first, second) in enumerate(zip(one, other, strict=False)):
        assert first.problems == second.problems, f"other prompts in batch {number}"
        differing = {
            row: _first_position(left, right)
            for row, (left, right) in enumerate(zip(first.tokens, second.tokens, strict=True))
            if left != right
        }
        if differing:
            position = min(differing.values())
            return Difference(
                number,
                position,
                {
                    row: (first.tokens[row][position], second.tokens[row][position])
                    for row, at in differing.items()
                    if at == position
                },
            )
    assert len(one) == len(other), f"{len(one)} and {len(other)} batches"
    return None


def _first_position(left: list[int], right: list[int]) -> int:
    for position, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return position
    raise AssertionError(f"one completion goes on where the other ends: {left}, {right}")


def equal_batches(oracle: Recording, packed: list[Batch]) -> int:
    """How many batches of a run are equal to TRL's, up to a first draw that may differ.

    Raises:
        AssertionError: if a draw differs that did not lie on the boundary of two tokens.
    """
    difference = first_difference(oracle.batches, packed)
    if difference is None:
        return len(packed)
    found: list[Drawing] = []
    with recorded_draws(found):
        again = train_trl(oracle.config)
    assert again.batches == oracle.batches, "TRL does not repeat itself"
    draw = found[difference.batch].draws[difference.position]
    for row, (expected, got) in difference.tokens.items():
        assert draw.tokens[row] == expected
        distance = distance_to(draw, row, got)
        assert distance <= BOUNDARY, (
            f"batch {difference.batch}, position {difference.position}, row {row}: drew {got}, "
            f"TRL {expected}, and the draw was {distance:.1e} away from it"
        )
    warnings.warn(
        f"kernels differ on this machine: a tie was broken otherwise in batch {difference.batch}; "
        "what follows is not compared",
        stacklevel=2,
    )
    return difference.batch
