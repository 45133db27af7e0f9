"""Runs that end because nothing is to be learned, with the task's own rewards."""

from __future__ import annotations

import pytest

from tests.equivalence.agree import assert_bit_equal, assert_equals_trl
from tests.equivalence.recorder import run, run_packed, run_trl

pytestmark = pytest.mark.equivalence

SILENT = run(seed=1, prompts_per_step=1, num_generations=2, no_signal_steps=1, steps=6)
LORA = run(seed=2, steps=3, learning_rate=1e-3)
FULL = run("full", seed=3, steps=3, learning_rate=1e-4)


def test_a_run_without_signal_ends_as_under_trl_and_its_neighbours_go_on():
    silent, *others = run_packed([SILENT, LORA, FULL])
    assert silent.outcome.status == "no_signal"
    assert_equals_trl(silent, run_trl(SILENT))
    for recording in others:
        assert recording.outcome.status == "completed"
        assert_bit_equal(recording, run_packed([recording.config])[0])


def test_a_step_without_gradient_still_moves_the_weights_as_adam_would():
    config = run(seed=0, prompts_per_step=1, num_generations=2, steps=8, learning_rate=1e-3)
    oracle = run_trl(config)
    norms = oracle.curve("train/grad_norm")
    assert max(norms) > 0 == norms[-1]
    assert_equals_trl(run_packed([config])[0], oracle)
