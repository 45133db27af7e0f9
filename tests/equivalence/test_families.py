"""Tiny random models of every supported family, LoRA and full fine-tuning against TRL."""

from __future__ import annotations

from pathlib import Path

import pytest

from study.config import RunConfig
from tests.equivalence.agree import assert_equals_trl
from tests.equivalence.models import FAMILIES, save_tiny_model
from tests.equivalence.recorder import run, run_packed, run_trl

pytestmark = [pytest.mark.equivalence, pytest.mark.usefixtures("dense", "ragged")]


@pytest.fixture(scope="module", params=[True, False], ids=["tied", "untied"])
def tied(request) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module", params=FAMILIES)
def model(request, tied, tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp(f"{request.param}-{'tied' if tied else 'untied'}")
    save_tiny_model(request.param, directory, tied=tied)
    return Path(directory)


def runs(model: Path) -> list[RunConfig]:
    shared = {
        "model": model,
        "length": 8,
        "num_generations": 3,
        "prompts_per_step": 3,
        "adam_epsilon": 1.0,  # see test_replay
        "learning_rate": 0.3,
    }
    return [
        run("lora", rank=3, seed=1, **shared),
        run("full", seed=2, weight_decay=0.3, loss_type="dapo", **shared),  # not on biases, norms
    ]


def test_a_family_is_trained_as_by_trl(model):
    configs = runs(model)
    for packed, config in zip(run_packed(configs), configs, strict=True):
        oracle = run_trl(config)
        lengths = {len(ids) for batch in oracle.batches for ids in batch.tokens}
        assert len(lengths) > 4  # completions end at many places
        assert min(oracle.curve("train/grad_norm")) > 0
        assert_equals_trl(packed, oracle)
