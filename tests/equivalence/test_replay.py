"""Every setting of the objective, a few steps of each against TRL.

All variants run in one pack, with prompts of unequal lengths. Their tokens are TRL's, so their
losses, gradients and weights can be compared without feeding in TRL's.

Adam's epsilon is large here: the update is then linear in the gradient, where an ordinary epsilon
turns the rounding errors of gradients near zero into whole steps. The long runs of
``test_free_running`` have an ordinary one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from study.config import RunConfig
from tests.equivalence.agree import assert_equals_trl
from tests.equivalence.recorder import run, run_packed, run_trl
from tests.equivalence.recording import Recording

pytestmark = [pytest.mark.equivalence, pytest.mark.usefixtures("dense", "ragged")]

LOSSES = ("grpo", "bnpo", "dr_grpo", "dapo")
SCALES = ("none", "group", "batch")
SMOOTH = {"adam_epsilon": 1.0, "learning_rate": 0.3}
ADAM = {
    "lora": {"adam_epsilon": 1e-5, "learning_rate": 1e-3},
    "full": {"adam_epsilon": 1e-5, "learning_rate": 1e-4},
}


def variant(method: str, **changes: Any) -> RunConfig:
    settings = {
        **SMOOTH,
        "steps": 3,
        "length": 10,
        "train_prompts": 9,  # two steps an epoch
        "eval_prompts": 4,
        **changes,
    }
    return run(method, **settings)


def variants() -> dict[str, RunConfig]:
    found: dict[str, RunConfig] = {}

    def add(name: str, method: str, **changes: Any) -> None:
        found[f"{name}-{method}"] = variant(method, **{"seed": len(found), **changes})

    for number, loss in enumerate(LOSSES):
        for scale in SCALES:
            method = ("lora", "full")[(number + SCALES.index(scale)) % 2]
            add(f"{loss}-{scale}", method, loss_type=loss, scale_rewards=scale)
        for method in ("lora", "full"):
            add(f"{loss}-micro", method, loss_type=loss, micro_batch_size=4, temperature=1.2)
    for schedule, warmup in (
        ("constant_with_warmup", 2),
        ("linear", 0),
        ("linear", 2),
        ("cosine", 0),
        ("cosine", 2),
    ):
        add(
            f"{schedule}-{warmup}", "lora", lr_scheduler_type=schedule, warmup_steps=warmup, steps=6
        )
    add("linear-2", "full", lr_scheduler_type="linear", warmup_steps=2)
    for method in ("lora", "full"):
        again = {"num_iterations": 2}
        add("decay", method, weight_decay=0.5)
        add("iterations", method, **again, steps=6)
        add("iterations-clipped", method, **again, epsilon=0.01, epsilon_high=0.03, steps=6)
        add("sequence", method, **again, importance_sampling_level="sequence", epsilon=0.005)
        add("truncated", method, mask_truncated_completions=True, temperature=1.3)
        add("cool", method, temperature=0.7)
        add("gradient-clipped", method, max_grad_norm=0.01)
        add("gradient-unclipped", method, max_grad_norm=0.0)
        add("betas", method, adam_beta1=0.5, adam_beta2=0.6)
        add("adam", method, **ADAM[method])
        add("adam-betas", method, adam_beta1=0.8, adam_beta2=0.9, **ADAM[method])
        add("two-rows", method, prompts_per_step=1, num_generations=2)
        add("groups-of-three", method, num_generations=3, scale_rewards="group")
    add("iterations-micro", "full", num_iterations=3, micro_batch_size=2, steps=7, loss_type="bnpo")
    add("truncated-micro", "lora", mask_truncated_completions=True, micro_batch_size=2)
    add("truncated-grpo", "full", mask_truncated_completions=True, loss_type="grpo")
    add("truncated-dapo", "lora", mask_truncated_completions=True, loss_type="dapo")
    add("sequence-micro", "lora", importance_sampling_level="sequence", micro_batch_size=8)
    both = {"num_iterations": 2, "mask_truncated_completions": True, "epsilon": 0.005}
    add("truncated-iterations", "lora", micro_batch_size=2, temperature=1.3, **both)
    for method, micro in (("lora", None), ("full", 4)):
        again = {"importance_sampling_level": "sequence", "micro_batch_size": micro, **both}
        add("truncated-sequence", method, temperature=1.3, **again)
    add("odd-alpha", "lora", rank=3, alpha=7.3)
    add("wide", "lora", rank=48)
    add("one-layer", "lora", targets="model.layers.1.mlp.down_proj")
    add("single-micro", "lora", micro_batch_size=1, loss_type="grpo")
    add(
        "best",
        "lora",
        steps=4,
        seed=54,
        train_prompts=13,
        save="best",
        eval_every=1,
        eval_prompts=16,
        eval_batch_size=5,
    )
    add("unsaved", "full", save="none")
    return found


VARIANTS = variants()
PREMISES: dict[str, Callable[[Recording], bool]] = {
    "iterations-clipped": lambda r: max(r.curve("train/clip_fraction")) > 0.01,
    "sequence": lambda r: max(r.curve("train/clip_fraction")) > 0.01,
    "truncated-sequence": lambda r: (
        max(r.curve("train/clip_fraction")) > 0 < max(r.curve("train/clipped_ratio")) < 1
    ),
    "truncated": lambda r: 0 < max(r.curve("train/clipped_ratio")) < 1,
    "gradient-clipped": lambda r: min(r.curve("train/grad_norm")) > 0.01,
    "best": lambda r: r.outcome.score_best != r.evaluations[-1].accuracy,
}
"""What a variant is about, and would not show if TRL's run lacked it."""


@pytest.fixture(scope="module")
def pack(dense, ragged) -> dict[str, Recording]:
    return dict(zip(VARIANTS, run_packed(list(VARIANTS.values())), strict=True))


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_of_the_objective_is_trl_s(pack, name):
    oracle = run_trl(VARIANTS[name])
    assert max(oracle.curve("train/grad_norm")) > 0
    for subject, holds in PREMISES.items():
        if name.rpartition("-")[0] == subject:
            assert holds(oracle), f"{subject} does not occur"
    assert_equals_trl(pack[name], oracle)
