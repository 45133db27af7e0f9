"""Packs made at random: each run is bit for bit itself, whoever sits beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from study.config import EntropyShaping, RunConfig
from tests.equivalence.agree import assert_bit_equal
from tests.equivalence.models import save_tiny_model
from tests.equivalence.recorder import run, run_packed

pytestmark = [pytest.mark.equivalence, pytest.mark.usefixtures("dense", "ragged")]

TARGETS = ("all", "attention", "mlp", ["q_proj"], ["k_proj", "down_proj"])
METHODS = st.one_of(
    st.just({"method": "full"}),
    st.fixed_dictionaries(
        {
            "method": st.just("lora"),
            "rank": st.integers(1, 16),
            "alpha": st.sampled_from([1.0, 8.0, 32.0]),
            "targets": st.sampled_from(TARGETS),
        }
    ),
)
OBJECTIVES = st.fixed_dictionaries(
    {
        "learning_rate": st.sampled_from([1e-4, 1e-3, 1e-2]),
        "seed": st.integers(0, 2**32 - 1),
        "prompts_per_step": st.integers(1, 4),
        "num_generations": st.integers(2, 4),
        "loss_type": st.sampled_from(["grpo", "bnpo", "dr_grpo", "dapo"]),
        "scale_rewards": st.sampled_from(["none", "group", "batch"]),
        "steps": st.integers(1, 3),
        "num_iterations": st.integers(1, 2),
        "temperature": st.sampled_from([0.8, 1.0, 1.3]),
        "entropy_shaping": st.builds(EntropyShaping, alpha=st.sampled_from([0.0, 0.4])),
        "top_entropy_quantile": st.sampled_from([1.0, 0.3]),
    }
)
PACKS = st.tuples(
    st.lists(st.tuples(METHODS, OBJECTIVES), min_size=2, max_size=4),
    st.lists(st.tuples(METHODS, OBJECTIVES), max_size=2),
)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    directory = Path(tmp_path_factory.mktemp("tiny"))
    save_tiny_model("qwen3", directory, tied=True)
    return directory


def configured(model: Path, lane: tuple[dict[str, Any], dict[str, Any]]) -> RunConfig:
    method, objective = lane
    return run(**method, **objective, model=model, length=7, train_prompts=5, eval_prompts=3)


@pytest.mark.timeout(120)
@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],  # shrinking a pack takes longer than reading it
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(pack=PACKS)
def test_a_run_is_itself_in_every_pack(model, pack):
    first, later = ([configured(model, lane) for lane in lanes] for lanes in pack)
    for recording in run_packed(first, refills=later):
        (alone,) = run_packed([recording.config])
        assert_bit_equal(recording, alone)
