"""Overrides that comments of ``conf/`` recommend are taken by Hydra and by the task."""

from __future__ import annotations

import re

import pytest

from study.compose import CONF_DIR, compose
from study.config import ReasoningGymTaskConfig
from study.tasks.loading import load_task


def test_the_reasoning_gym_command_makes_a_task() -> None:
    pytest.importorskip("reasoning_gym")
    text = (CONF_DIR / "task" / "reasoning_gym.yaml").read_text()
    (command,) = re.findall(r"^# +(task=.*)$", text, flags=re.MULTILINE)
    config = compose(command.split()).run().task
    assert isinstance(config, ReasoningGymTaskConfig)
    assert config.params == {"max_terms": 2}
    (problem,) = load_task(config).problems("train", 1)
    assert problem.prompt
