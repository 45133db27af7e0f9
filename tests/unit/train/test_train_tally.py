"""Metric names and counts."""

from study.train.rewards import Batch
from study.train.tally import Tally, named_metrics, peak_memory

BATCH = Batch(
    completions=8,
    prompts=2,
    correct=3,
    unequal_groups=1,
    prompt_tokens=40,
    completion_tokens=60,
)


def test_metrics_get_our_names_and_only_finite_values():
    logs = {"loss": 0.5, "grad_norm": float("nan"), "reward": None, "epoch": 1.0, "kl": 0.0}
    assert named_metrics(logs) == {"train/loss": 0.5, "train/kl": 0.0}


def test_every_pass_counts_its_tokens_and_every_batch_its_episodes():
    tally = Tally(num_iterations=2)
    assert [tally.add(BATCH) for _ in range(4)] == [True, False, True, False]
    assert (tally.steps, tally.prompts, tally.episodes) == (4, 4, 16)
    assert tally.train_tokens == 4 * 100


def test_peak_memory_is_in_bytes():
    assert 2e7 < peak_memory() < 1e12
