"""Many steps of many runs in one pack, each against TRL on its own."""

from __future__ import annotations

import pytest

from tests.equivalence.agree import assert_equals_trl
from tests.equivalence.recorder import run, run_packed, run_trl
from tests.equivalence.recording import Recording

pytestmark = pytest.mark.equivalence

STEPS = 33
LONG = {"steps": STEPS, "eval_every": 11, "train_prompts": 24}
RUNS = {
    "lora-r4": run(
        rank=4, alpha=8.0, learning_rate=1e-3, seed=1, prompts_per_step=8, **LONG
    ),  # 3 steps an epoch
    "lora-r8-attention": run(
        rank=8, targets=["q_proj", "v_proj"], learning_rate=1e-3, seed=2, **LONG
    ),  # 6
    "lora-r1-mlp": run(
        rank=1, alpha=2.0, targets="mlp", learning_rate=1e-2, seed=3, prompts_per_step=5, **LONG
    ),  # 4, and four prompts of each epoch are left out
    "full": run("full", learning_rate=5e-5, seed=4, **LONG),
    "full-dapo": run(
        "full", learning_rate=2e-4, seed=5, prompts_per_step=8, loss_type="dapo", **LONG
    ),
}


@pytest.fixture(scope="module")
def pack() -> dict[str, Recording]:
    return dict(zip(RUNS, run_packed(list(RUNS.values())), strict=True))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", RUNS)
def test_a_run_in_a_pack_is_the_run_that_trl_would_have_made(pack, name):
    oracle = run_trl(RUNS[name])
    assert sum(norm > 0 for norm in oracle.curve("train/grad_norm")) >= 30  # it keeps moving
    compared = assert_equals_trl(pack[name], oracle)
    assert compared > 0


def test_the_pack_has_groups_of_equal_rewards_which_have_no_gradient(pack):
    shares = [x for r in pack.values() for x in r.curve("train/frac_reward_zero_std")]
    assert min(shares) == 0.0 < max(shares) < 1.0
