"""Losses that weigh tokens by their entropy: packed runs are TRL's, and TRL's are the formulas'.

The arithmetic task's own rewards are used: groups without a right completion have no advantage,
and the packed engine leaves them out of its passes, unless their entropies count for a ranking.
"""

from __future__ import annotations

from statistics import fmean
from typing import Any

import numpy as np
import pytest
import torch

from study.config import EntropyShaping, RunConfig
from study.lab.tokenizer import encode
from study.tasks.loading import load_task
from study.train.models import load_model, load_tokenizer
from tests.equivalence.agree import assert_bit_equal, assert_equals_trl
from tests.equivalence.recorder import run, run_packed, run_trl
from tests.equivalence.recording import Recording

pytestmark = pytest.mark.equivalence

PAPER = EntropyShaping(alpha=0.4, kappa=2.0)
OTHER = EntropyShaping(alpha=0.1, kappa=1.5)


def weighed(method: str, seed: int, **changes: Any) -> RunConfig:
    # Adam's epsilon is large, as in test_replay: updates are linear in gradients.
    smooth = {"adam_epsilon": 1.0, "learning_rate": 0.3, "eval_prompts": 4}
    return run(method, **{**smooth, "seed": seed, **changes})


SHAPED = {"entropy_shaping": PAPER}
TOP = {"top_entropy_quantile": 0.2}
AGAIN = {"num_iterations": 2, "steps": 6, "epsilon": 0.003, "epsilon_high": 0.003}
ROWS = {"importance_sampling_level": "sequence"}
SCALED = {"scale_rewards": "group", "loss_type": "grpo"}
CUT = {"mask_truncated_completions": True, "loss_type": "dapo"}
RUNS = {
    "plain": weighed("lora", 1),
    "shaped": weighed("lora", 1, **SHAPED),
    "shaped-full": weighed("full", 2, **SHAPED, steps=6),
    "shaped-scaled": weighed("lora", 3, entropy_shaping=OTHER, **SCALED),
    "shaped-micro": weighed("lora", 4, **SHAPED, micro_batch_size=4, temperature=1.3),
    "shaped-iterations": weighed("full", 5, **SHAPED, **AGAIN),
    "shaped-sequences": weighed("lora", 6, **SHAPED, **ROWS, **AGAIN),
    "shaped-truncated": weighed("lora", 7, entropy_shaping=OTHER, **CUT),
    "top": weighed("lora", 1, **TOP, steps=6),
    "top-full": weighed("full", 2, top_entropy_quantile=0.5),
    "top-micro": weighed("lora", 3, **TOP, micro_batch_size=4, temperature=1.3, **SCALED),
    "top-sequences": weighed("full", 4, **TOP, **ROWS, **AGAIN),
    "top-truncated": weighed("lora", 5, top_entropy_quantile=0.7, **CUT),
    "shaped-top": weighed("lora", 1, **SHAPED, **TOP),
}


@pytest.fixture(scope="module")
def pack() -> dict[str, Recording]:
    return dict(zip(RUNS, run_packed(list(RUNS.values())), strict=True))


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_weighs_tokens_by_entropy_is_trl_s(pack, name):
    oracle = run_trl(RUNS[name])
    assert max(oracle.curve("train/grad_norm")) > 0
    if RUNS[name].objective.num_iterations > 1:
        assert max(oracle.curve("train/clip_fraction")) > 0
    assert_equals_trl(pack[name], oracle)


def test_groups_without_an_advantage_are_among_them(pack):
    for name in ("shaped", "shaped-full", "top"):
        shares = pack[name].curve("train/frac_reward_zero_std")
        assert any(0 < share < 1 for share in shares), name


@pytest.mark.parametrize("name", ["plain", "shaped", "shaped-iterations", "top", "top-micro"])
def test_neighbours_of_another_loss_change_no_bit(pack, name):
    (alone,) = run_packed([RUNS[name]])
    assert_bit_equal(pack[name], alone)


def entropies_of(config: RunConfig, prompts: list[str], tokens: list[list[int]]) -> list[Any]:
    """Entropy in nats of the untrained policy before each token, one array a row."""
    model, found = load_model(config.model), []
    for prompt, own in zip(prompts, tokens, strict=True):
        ids = torch.tensor([[*encode(prompt), *own]])
        with torch.no_grad():
            logits = model(ids).logits[0, -len(own) - 1 : -1].double()
        policy = torch.distributions.Categorical(logits=logits / config.objective.temperature)
        found.append(policy.entropy().numpy())
    return found


def first_loss(recording: Recording) -> float:
    """Loss of the first step (dr_grpo, rewards not scaled), in float64, token by token.

    The policy is the base, so every ratio is 1: the sum of -A' over the tokens that are kept, by
    rows times the longest completion.
    """
    config, batch, task = recording.config, recording.batches[0], load_task(recording.config.task)
    share, shaping = config.objective.top_entropy_quantile, config.objective.entropy_shaping
    pool = task.problems("train", config.task.train_prompts)
    problems, tokenizer = [pool[i] for i in batch.problems], load_tokenizer(config.model)
    texts = [tokenizer.decode(ids, skip_special_tokens=True) for ids in batch.tokens]
    rewards = [task.score(p, text).reward for p, text in zip(problems, texts, strict=True)]
    entropies = entropies_of(config, [p.prompt for p in problems], batch.tokens)
    least = np.quantile(np.concatenate(entropies), 1 - share) - 1e-6
    total = 0.0
    for row, own in enumerate(entropies):
        start = row - row % 4
        advantage = rewards[row] - fmean(rewards[start : start + 4])
        for entropy in own:
            term = min(shaping.alpha * entropy, abs(advantage) / shaping.kappa) if shaping else 0.0
            total -= (advantage + term) * (entropy >= least)
    return total / (len(rewards) * config.task.max_completion_length)


@pytest.mark.parametrize("name", ["plain", "shaped", "shaped-full", "top", "shaped-top"])
def test_the_first_loss_is_the_formula_s(pack, name):
    expected = first_loss(pack[name])
    assert abs(expected) > 1e-3
    assert pack[name].curve("train/loss")[0] == pytest.approx(expected, abs=1e-6)


def test_one_batch_has_another_gradient_under_each_of_them(pack):
    names = ["plain", "shaped", "top", "shaped-top"]
    assert all(pack[name].batches[0] == pack["plain"].batches[0] for name in names)
    norms = {f"{pack[name].curve('train/grad_norm')[0]:.4g}" for name in names}
    assert len(norms) == 4
    # The term that shaping adds is positive, and so lowers the loss.
    plain, shaped, top, both = (pack[name].curve("train/loss")[0] for name in names)
    assert shaped < plain and both < top
