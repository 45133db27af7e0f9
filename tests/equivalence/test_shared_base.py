"""Models too large to merge adapters into: their rollouts share the base's products."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from study.config import RunConfig
from study.train.packed import model as packed_model
from study.train.packed.stacks import AdapterStack
from tests.equivalence.agree import assert_bit_equal, assert_equals_trl
from tests.equivalence.models import FAMILIES, save_tiny_model
from tests.equivalence.recorder import run, run_packed, run_trl
from tests.equivalence.recording import Recording

pytestmark = [pytest.mark.equivalence, pytest.mark.usefixtures("dense", "ragged")]

STEPS = {"steps": 6, "eval_every": 3, "save": "none"}  # training passes are the same: see others
RUNS = [
    run(rank=4, alpha=8.0, learning_rate=1e-3, seed=1, **STEPS),
    run(rank=20, targets=["q_proj", "v_proj"], learning_rate=1e-3, seed=2, **STEPS),
    run(rank=1, targets="mlp", seed=3, num_generations=3, prompts_per_step=1, **STEPS),
    run("full", learning_rate=1e-4, seed=4, **STEPS),
    run(rank=16, learning_rate=1e-3, seed=5, prompts_per_step=2, **STEPS),
]


@pytest.fixture(scope="module", autouse=True)
def every_model_is_large() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_model, "MERGED_PARAMS", 0)
        yield


@pytest.fixture(scope="module")
def pack() -> list[Recording]:
    linear, used = AdapterStack.linear, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AdapterStack, "linear", lambda *args: (used.append(1), linear(*args))[1])
        found = run_packed(RUNS)
    assert used
    return found


@pytest.mark.parametrize("number", range(len(RUNS)))
def test_a_run_is_the_run_that_trl_would_have_made(pack, number):
    assert assert_equals_trl(pack[number], run_trl(RUNS[number])) > 0


@pytest.mark.parametrize("number", range(len(RUNS)))
def test_a_run_is_the_run_that_it_would_be_alone(pack, number):
    (alone,) = run_packed([RUNS[number]])
    assert_bit_equal(pack[number], alone)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family(family, tmp_path):
    save_tiny_model(family, tmp_path, tied=False)
    configs = [_family_run(tmp_path, rank) for rank in (3, 2)]
    for packed, config in zip(run_packed(configs), configs, strict=True):
        assert_equals_trl(packed, run_trl(config))


def _family_run(model: Path, rank: int) -> RunConfig:
    shared = {"length": 8, "num_generations": 3, "prompts_per_step": 3, "learning_rate": 0.3}
    return run(rank=rank, seed=rank, model=model, adam_epsilon=1.0, **shared)  # see test_replay
