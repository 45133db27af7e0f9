"""The bench on real runs, a few steps at a time: every figure is there, none is judged."""

from __future__ import annotations

import json

import pytest
import torch

# Seconds of import that no test should be charged for.
import study.train.packed
import study.train.trl  # noqa: F401
from study.bench import steps
from study.bench.cases import Case
from study.bench.steps import Effort, measure_round, specs_of, summary

pytestmark = pytest.mark.integration

EFFORT = Effort(rounds=1, steps=2, warm_up=1, eval_prompts=16)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """As the command sets it before torch loads."""
    torch.set_num_threads(1)


@pytest.mark.parametrize("method", ["lora", "full"])
def test_a_round_of_both_engines(method: str) -> None:
    case = Case(model="lab64", rows=8, method=method, reward="parity", lanes=3)
    with specs_of(case, EFFORT) as specs:
        found = measure_round(case, specs, EFFORT, 1)
    for sample in (found.trl, found.packed):
        assert 0 < sample.step_busy_s < sample.step_s * 1.5
        assert sample.evaluation_s > 0
        assert 0 < sample.unequal_share <= 1
        assert 1 < sample.completion_tokens <= 14
    assert 0 < found.floor_s < 1
    json.dumps(summary([found]), allow_nan=False)


def test_a_pack_of_one_has_the_lengths_of_trl() -> None:
    case = Case(model="lab64", rows=16, method="lora", reward="task", lanes=1)
    with specs_of(case, EFFORT) as specs:
        trl, packed = (steps.run(engine, specs, EFFORT.warm_up) for engine in ("trl", "packed"))
    assert packed.completion_tokens == pytest.approx(trl.completion_tokens)
    assert packed.unequal_share == pytest.approx(trl.unequal_share)
