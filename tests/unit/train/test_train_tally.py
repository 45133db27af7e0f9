"""Metric names and counts."""

import dataclasses

from study.plan.flops import Sequences
from study.train.rewards import Batch
from study.train.tally import Tally, named_metrics, peak_memory

BATCH = Batch(
    completions=8,
    prompts=2,
    correct=3,
    unequal_groups=1,
    rewards=frozenset({0.0, 1.0}),
    bits=3.5,
    sampled=Sequences(tokens=92, pairs=600, logits=60),
    trained=Sequences(tokens=100, pairs=1300, logits=60),
)


def test_metrics_get_our_names_and_only_finite_values():
    logs = {"loss": 0.5, "grad_norm": float("nan"), "reward": None, "epoch": 1.0, "kl": 0.0}
    assert named_metrics(logs) == {"train/loss": 0.5, "train/kl": 0.0}


def test_every_pass_counts_its_tokens_and_every_batch_its_episodes():
    tally = Tally(num_iterations=2)
    assert [tally.add(BATCH) for _ in range(4)] == [True, False, True, False]
    assert (tally.steps, tally.prompts, tally.episodes) == (4, 4, 16)
    assert tally.trained == Sequences(tokens=400, pairs=5200, logits=240)


def test_a_batch_that_is_used_again_is_not_sampled_again_and_tells_nothing_new():
    tally = Tally(num_iterations=2)
    for batch in (BATCH, BATCH, dataclasses.replace(BATCH, rewards=frozenset({0.5}))):
        tally.add(batch)
    assert (tally.sampled.tokens, tally.read.tokens, tally.trained.tokens) == (184, 200, 300)
    assert (tally.bits, tally.unequal_groups) == (7.0, 2)
    assert tally.rewards == {0.0, 0.5, 1.0}


def test_peak_memory_is_in_bytes():
    assert 2e7 < peak_memory() < 1e12
