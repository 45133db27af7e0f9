"""What it means that a packed run equals a TRL run, and that it equals itself."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
import torch

from study.config import GrpoObjective
from study.train.engine import Evaluation
from tests.equivalence.draws import equal_batches
from tests.equivalence.recording import Recording
from tests.sums import note_deviation

COUNTED = (  # follow from tokens, rewards and the schedule alone
    "train/learning_rate",
    "train/reward",
    "train/reward_std",
    "train/frac_reward_zero_std",
    "train/completion_length",
    "train/clipped_ratio",
    "train/correct",
    "train/prompts_seen",
    "train/clip_fraction",
    "train/reward_bits",
    "train/flops",
)
COMPUTED = (  # by the model
    "train/loss",
    "train/grad_norm",
    "train/entropy",
    "train/kl",
    "train/token_accuracy",
)


def assert_equals_trl(packed: Recording, oracle: Recording, *, rel: float = 1e-5) -> int:
    """The same tokens; losses, gradients, evaluations, outcome and weights within `rel`.

    Returns:
        How many steps were compared: all of them, unless a tie was broken otherwise.
    """
    batches = equal_batches(oracle, packed.batches)
    whole = batches == len(oracle.batches)
    objective = oracle.config.objective
    each = objective.num_iterations if isinstance(objective, GrpoObjective) else 1
    steps = len(oracle.steps) if whole else batches * each
    assert [set(line) for _, line in packed.steps[:steps]] == [
        set(line) for _, line in oracle.steps[:steps]
    ]
    assert_metrics_close(packed.metrics()[:steps], oracle.metrics()[:steps], rel)
    if whole:
        assert packed.metrics()[steps:] == []
        assert_evaluations_equal(packed, oracle)
        assert_results_equal(packed, oracle)
        if keeps_weights(oracle):
            assert_weights_close(packed.weights, oracle.weights, rel)
    return steps


def assert_metrics_close(
    packed: list[tuple[int, dict[str, float]]],
    oracle: list[tuple[int, dict[str, float]]],
    rel: float,
) -> None:
    for (step, got), (expected_step, expected) in zip(packed, oracle, strict=True):
        assert step == expected_step
        assert set(got) == set(expected) <= {*COUNTED, *COMPUTED}
        for name, value in expected.items():
            tolerance = 1e-6 if name in COUNTED else rel
            # A loss is a sum of terms of order one that may cancel: its floor is absolute.
            floor = 1e-7 if name in COUNTED else 1e-6
            note_deviation(name, abs(got[name] - value) / max(abs(value), floor / tolerance))
            assert got[name] == pytest.approx(value, rel=tolerance, abs=floor), (
                f"{name} at step {step}"
            )


def assert_evaluations_equal(packed: Recording, oracle: Recording) -> None:
    assert [e.step for e in packed.evaluations] == [e.step for e in oracle.evaluations]
    for got, expected in zip(packed.evaluations, oracle.evaluations, strict=True):
        assert_evaluation_equal(got, expected)
    assert_scored_equal(packed, oracle)


def assert_scored_equal(packed: Recording, expected: Recording) -> None:
    """All texts that were judged, among them the greedy ones, which are in no evaluation.

    The untrained model's (a sampled and a greedy list) may have been judged for another run.
    """
    missing = len(expected.scored) - len(packed.scored)
    assert missing in (0, 2)
    assert packed.scored == expected.scored[missing:]


def assert_evaluation_equal(got: Evaluation, expected: Evaluation) -> None:
    for field in dataclasses.fields(Evaluation):
        value = getattr(got, field.name)
        if field.name == "mean_reward":
            assert value == pytest.approx(expected.mean_reward, rel=1e-6)
        else:
            assert value == getattr(expected, field.name), f"{field.name} at step {expected.step}"


def assert_results_equal(packed: Recording, oracle: Recording) -> None:
    got, expected = packed.result(), oracle.result()
    after = "weights_after"
    got["probes"] = {k: v for k, v in got["probes"].items() if k != after}
    expected["probes"] = {k: v for k, v in expected["probes"].items() if k != after}
    assert got == expected  # the weights before training, bit for bit, are among the probes


def assert_weights_close(
    packed: dict[str, torch.Tensor], oracle: dict[str, torch.Tensor], rel: float
) -> None:
    assert {k: (v.shape, v.dtype) for k, v in packed.items()} == {
        k: (v.shape, v.dtype) for k, v in oracle.items()
    }
    for name, expected in oracle.items():
        gap = (packed[name] - expected).double()
        relative = float(gap.norm() / expected.double().norm().clamp(min=1e-12))
        note_deviation("weights (relative norm)", relative)
        note_deviation("weights (largest)", float(gap.abs().max()))
        assert relative <= rel, f"{name}: relative distance {relative:.1e}"
        assert float(gap.abs().max()) <= 1e-5, f"{name}: {float(gap.abs().max()):.1e}"


def assert_bit_equal(packed: Recording, alone: Recording) -> None:
    """Nothing but times and memory tells the two apart."""
    assert packed.batches == alone.batches
    assert_same_numbers(packed.metrics(), alone.metrics())
    assert packed.evaluations == alone.evaluations
    assert_scored_equal(packed, alone)
    got, expected = packed.result(), alone.result()
    if expected["status"] == "diverged":  # a NaN has many bit patterns
        got["probes"].pop("weights_after"), expected["probes"].pop("weights_after")
    assert got == expected
    if keeps_weights(alone):
        assert packed.weights.keys() == alone.weights.keys()
        for name, weight in alone.weights.items():
            assert torch.equal(packed.weights[name], weight), name


def assert_same_numbers(got: Any, expected: Any) -> None:
    assert all(math.isfinite(v) for _, line in expected for v in line.values())
    assert got == expected


def keeps_weights(recording: Recording) -> bool:
    return recording.outcome.status == "completed" and recording.config.save != "none"
