"""GRPO's advantages, weights and losses against values worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from study.train.packed.loss import TargetLogProbs, advantages, row_weights, token_losses
from tests.plans import objective

REWARDS = torch.tensor([1.0, 0.0, 0.0, 0.0, 2.0, 2.0, 2.0, 2.0])


def test_mean_centred_advantages() -> None:
    got, deviation = advantages(REWARDS, objective(num_generations=4))
    assert got.tolist() == [0.75, -0.25, -0.25, -0.25, 0.0, 0.0, 0.0, 0.0]
    # unbiased: (0.75^2 + 3 x 0.25^2) / 3 = 0.25
    assert deviation.tolist() == [0.5] * 4 + [0.0] * 4


def test_group_scaled_advantages_divide_by_the_groups_deviation() -> None:
    got, _ = advantages(REWARDS, objective(num_generations=4, scale_rewards="group"))
    assert got.tolist() == pytest.approx([0.75 / 0.5001] + [-0.25 / 0.5001] * 3 + [0.0] * 4)


def test_batch_scaled_advantages_divide_by_the_batchs_deviation() -> None:
    got, deviation = advantages(REWARDS, objective(num_generations=4, scale_rewards="batch"))
    # mean 9/8; squares: (1/8)^2 + 3 (9/8)^2 + 4 (7/8)^2 = (1 + 243 + 196) / 64 = 6.875; / 7
    expected = math.sqrt(6.875 / 7)
    assert deviation.tolist() == pytest.approx([expected] * 8)
    assert got[0].item() == pytest.approx(0.75 / (expected + 1e-4))


@pytest.mark.parametrize(
    ("loss_type", "expected"),
    [
        # four rows of 2, 3, 5 and 6 tokens in two micro-batches; the second holds rows 3 and 0
        ("grpo", [1 / (6 * 2 * 2), 1 / (2 * 2 * 2)]),
        ("bnpo", [1 / (8 * 2)] * 2),
        ("dr_grpo", [1 / (2 * 10 * 2)] * 2),
        ("dapo", [1 / 16] * 2),
    ],
)
def test_the_weight_of_a_rows_tokens(loss_type: str, expected: list[float]) -> None:
    got = row_weights([2, 3, 5, 6], [3, 0], objective(loss_type=loss_type), longest=10)
    assert got == pytest.approx(expected)


def test_masked_rows_divide_by_at_least_one() -> None:
    for loss_type in ("grpo", "bnpo", "dapo"):
        (weight,) = row_weights([0], [0], objective(loss_type=loss_type), longest=10)
        assert weight == 1


def test_a_clipped_token_has_no_gradient_and_is_counted() -> None:
    old = torch.zeros(4)
    log_probs = torch.tensor([0.5, 0.5, -0.5, 0.1], requires_grad=True)
    advantage = torch.tensor([1.0, -1.0, -1.0, 1.0])
    bounds = (torch.full((4,), 0.8), torch.full((4,), 1.2))
    losses, clipped = token_losses(log_probs, old, advantage, torch.ones(4), bounds, None)
    losses.sum().backward()
    assert clipped.tolist() == [True, False, True, False]
    expected = [-1.2, math.exp(0.5), 0.8, -math.exp(0.1)]
    assert losses.tolist() == pytest.approx(expected)
    assert log_probs.grad is not None
    assert log_probs.grad.tolist() == pytest.approx([0.0, math.exp(0.5), 0.0, -math.exp(0.1)])


def test_a_sequences_tokens_share_the_ratio_of_their_mean() -> None:
    log_probs = torch.tensor([0.1, 0.3, -0.2])
    bounds = (torch.full((3,), 0.5), torch.full((3,), 2.0))
    rows = (torch.tensor([0, 0, 1]), torch.tensor([2, 1]))
    losses, _ = token_losses(log_probs, torch.zeros(3), torch.ones(3), torch.ones(3), bounds, rows)
    expected = [-math.exp(0.2), -math.exp(0.2), -math.exp(-0.2)]
    assert losses.tolist() == pytest.approx(expected)


def test_log_probabilities_of_targets_have_the_gradient_of_log_softmax() -> None:
    scaled = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([0, 6, 3, 3, 1])
    got = TargetLogProbs.apply(scaled, targets)
    expected = torch.log_softmax(scaled, -1).gather(1, targets.unsqueeze(1)).squeeze(1)
    assert torch.allclose(got, expected)
    assert torch.autograd.gradcheck(lambda x: TargetLogProbs.apply(x, targets), (scaled,))
