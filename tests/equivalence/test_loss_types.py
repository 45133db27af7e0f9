"""Losses that TRL alone computes, against those whose gradient theirs is at a ratio of 1."""

from __future__ import annotations

from typing import Any

import pytest

from study.config import RunConfig
from tests.equivalence.recorder import run, run_trl

pytestmark = pytest.mark.equivalence

LENGTH = 14
OTHERS = [
    # gradient of sum over tokens of A / tokens
    ("cispo", "dapo", {"epsilon_high": 5.0}, 1),
    ("vespo", "dapo", {}, 1),
    # gradient of the mean over rows of the mean over tokens of A
    ("sapo", "grpo", {}, 1),
    # gradient of the mean over rows of the sum over tokens of A; dr_grpo divides by the length
    ("luspo", "dr_grpo", {"importance_sampling_level": "sequence"}, LENGTH),
]


def of_loss(loss_type: str, **changes: Any) -> RunConfig:
    """Two steps on one batch: the ratio is 1 in the first, and another in the second."""
    again = {"num_iterations": 2, "steps": 2, "eval_prompts": 4, "learning_rate": 5e-3}
    return run("lora", seed=1, loss_type=loss_type, length=LENGTH, **again, **changes)


@pytest.mark.parametrize(("loss_type", "known", "changes", "factor"), OTHERS)
def test_a_loss_has_the_gradient_of_the_known_one_until_the_ratio_moves(
    loss_type, known, changes, factor
):
    other, reference = run_trl(of_loss(loss_type, **changes)), run_trl(of_loss(known))
    assert other.batches == reference.batches
    (first, second), (expected, later) = (r.curve("train/grad_norm") for r in (other, reference))
    assert expected > 0
    assert first == pytest.approx(factor * expected, rel=1e-5)
    assert second != pytest.approx(factor * later, rel=1e-3)
