"""From configuration to task."""

import pytest

from study.config import ArithmeticTaskConfig, ReasoningGymTaskConfig
from study.tasks.loading import load_task


def test_arithmetic_gets_its_family():
    config = ArithmeticTaskConfig(
        name="arithmetic", train_prompts=1, max_completion_length=9, family="gcd"
    )
    assert load_task(config).name == "arithmetic-gcd"


def test_unknown_family_is_named():
    config = ArithmeticTaskConfig(
        name="arithmetic", train_prompts=1, max_completion_length=9, family="gdc"
    )
    with pytest.raises(ValueError, match="did you mean gcd"):
        load_task(config)


def test_reasoning_gym_gets_its_settings():
    pytest.importorskip("reasoning_gym")
    config = ReasoningGymTaskConfig(
        name="reasoning_gym",
        train_prompts=1,
        max_completion_length=9,
        dataset="chain_sum",
        params={"max_terms": 2},
        threshold=1.0,
    )
    assert load_task(config).name == "reasoning_gym-chain_sum"
