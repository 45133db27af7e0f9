"""Entropy shaping against hand-worked numbers, its properties, and its silence to the gradient."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from study.config import ArithmeticTaskConfig, EntropyShaping
from study.train.packed.batch import StepBatch
from study.train.packed.loss import high_entropy, token_entropies
from study.train.packed.rollout import Completions
from study.train.packed.shared import RunData
from study.train.shaping import shaped_advantages
from tests.plans import objective

PAPER = EntropyShaping(alpha=0.4, kappa=2.0)


def shaped(
    advantages: list[float], entropies: list[float], alpha: float = 0.4, kappa: float = 2.0
) -> list[float]:
    """By tensors of float64."""
    pair = (torch.tensor(values, dtype=torch.float64) for values in (advantages, entropies))
    return shaped_advantages(*pair, alpha, kappa).tolist()


def test_values_worked_out_by_hand() -> None:
    # min(0.4 x 0.5, 1 / 2) = 0.2; min(0.4 x 2, 1 / 2) = 0.5, for either sign; 0 at H = 0
    got = shaped([1.0, 1.0, -1.0, -1.0, 1.0], [0.5, 2.0, 0.5, 2.0, 0.0])
    assert got == pytest.approx([1.2, 1.5, -0.8, -0.5, 1.0])
    # min(0.1 x 3, 0.6 / 3) = 0.2
    assert shaped([0.6, -0.6], [3.0, 3.0], alpha=0.1, kappa=3.0) == pytest.approx([0.8, -0.4])


def test_a_rows_advantage_is_shaped_token_by_token() -> None:
    rows, entropies = torch.tensor([[1.0], [-2.0]]), torch.tensor([[0.0, 1.0], [1.0, 5.0]])
    got = shaped_advantages(rows, entropies, 0.4, 2.0)
    # second row: -2 + 0.4; -2 + min(2, 1)
    torch.testing.assert_close(got, torch.tensor([[1.0, 1.4], [-1.6, -1.0]]))


ADVANTAGES = st.floats(-1e3, 1e3)
ENTROPIES = st.floats(0, 20)
ALPHAS, KAPPAS = st.floats(1e-3, 10), st.floats(1.001, 100)


@given(ADVANTAGES, ENTROPIES, ALPHAS, KAPPAS)
def test_sign_is_kept_and_the_change_is_bounded(a: float, h: float, al: float, k: float) -> None:
    (got,) = shaped([a], [h], al, k)
    assert math.copysign(1, got) == math.copysign(1, a) or a == 0
    assert a <= got <= a + min(al * h, abs(a) / k) * (1 + 1e-9) + 1e-12
    least, most = (1 - 1 / k) * abs(a), (1 + 1 / k) * abs(a)
    assert least * (1 - 1e-9) <= abs(got) <= most * (1 + 1e-9)


@given(st.floats(-1e-6, 20), ALPHAS, KAPPAS)
def test_nothing_is_added_at_zero_advantage(h: float, alpha: float, kappa: float) -> None:
    assert shaped([0.0], [h], alpha, kappa) == [0.0]


@given(ADVANTAGES, ADVANTAGES, ENTROPIES, ENTROPIES)
def test_it_is_monotone_in_advantage_and_in_entropy(a: float, b: float, h: float, g: float) -> None:
    (low, high), (flat, peaked) = sorted((a, b)), sorted((h, g))
    below, above = shaped([low, high], [h, h])
    assert below <= above
    less, more = shaped([a, a], [flat, peaked])
    assert less <= more


def test_an_entropy_that_was_rounded_below_zero_counts_as_zero() -> None:
    assert shaped([1e-8, -1e-8], [-1e-6, -1e-6]) == [1e-8, -1e-8]


def test_without_weight_an_advantage_stays_as_it_is_to_the_bit() -> None:
    advantages = torch.randn(50)
    got = shaped_advantages(advantages, torch.rand(50), torch.zeros(50), torch.ones(50))
    assert torch.equal(got, advantages)


def test_entropies_of_distributions_worked_out_by_hand() -> None:
    # uniform over 4; (1/2, 1/4, 1/4): 1/2 log 2 + 1/2 log 4; one certain token
    logits = torch.tensor(
        [[0.0, 0.0, 0.0, 0.0], [math.log(2), 0.0, 0.0, -200.0], [0.0, -200.0, -200.0, -200.0]]
    )
    expected = [math.log(4), 1.5 * math.log(2), 0.0]
    assert token_entropies(logits).tolist() == pytest.approx(expected, abs=1e-6)


def test_no_gradient_flows_through_the_entropy() -> None:
    """d loss / d logits is that of frozen advantages, and not what finite differences give of the
    loss whose advantages move with the logits."""
    z = torch.tensor([[0.3, -0.2, 0.9]], dtype=torch.float64, requires_grad=True)
    advantage = torch.tensor([1.0], dtype=torch.float64)

    def loss(logits: torch.Tensor, entropies: torch.Tensor) -> torch.Tensor:
        weight = shaped_advantages(advantage, entropies, 0.4, 2.0)
        return -(weight * torch.log_softmax(logits, -1)[:, 1]).sum()

    (gradient,) = torch.autograd.grad(loss(z, token_entropies(z)), z)
    p = torch.softmax(z.detach(), -1)[0]
    target = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64)
    entropy = -(p * p.log()).sum()
    assert 0.4 * float(entropy) < 0.5  # the term is 0.4 H, which moves with the logits
    torch.testing.assert_close(gradient[0], (1 + 0.4 * entropy) * (p - target))

    def moved(index: int, step: float, *, frozen: bool) -> float:
        other = z.detach().clone()
        other[0, index] += step
        return loss(other, token_entropies(z if frozen else other)).item()

    for frozen in (True, False):
        steps = [moved(i, 1e-6, frozen=frozen) - moved(i, -1e-6, frozen=frozen) for i in range(3)]
        slopes = torch.tensor(steps, dtype=torch.float64) / 2e-6
        assert torch.allclose(slopes, gradient[0], atol=1e-8) == frozen


def test_a_share_of_the_tokens_of_highest_entropy() -> None:
    entropies = torch.tensor([0.1, 0.9, 0.3, 0.7, 0.5])
    # quantiles of 5 values lie at 0, 1/4, 1/2, ...: 0.6 is 2/5 of the way from 0.5 to 0.7
    assert high_entropy(entropies, 0.4).tolist() == [False, True, False, True, False]
    assert high_entropy(entropies, 0.5).tolist() == [False, True, False, True, True]
    assert high_entropy(entropies, 1.0).tolist() == [True] * 5
    assert high_entropy(torch.full((4,), 0.25), 0.2).tolist() == [True] * 4  # ties stay together


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({"entropy_shaping": PAPER}, [0, 1, 2]),  # zero stays zero: no gradient, no pass
        ({"entropy_shaping": PAPER, "num_iterations": 2}, [0, 1, 2, 3, 4, 5]),
        ({"top_entropy_quantile": 0.2}, [0, 1, 2, 3, 4, 5]),  # their entropies are ranked as well
    ],
)
def test_rows_of_equal_rewards_are_left_out_where_nothing_asks_for_them(
    changes: dict[str, Any], kept: list[int]
) -> None:
    settings = objective(prompts_per_step=2, num_generations=3, **changes)
    task = ArithmeticTaskConfig(name="arithmetic", train_prompts=2, max_completion_length=4)
    batch = StepBatch(settings, RunData([], [[7], [8]], [], []), [0, 1], task)
    batch.score(Completions([[5]] * 6, torch.ones(6), True), [1, 0, 0, 1, 1, 1], frozenset({5}))
    batch.deal(range(6))
    (micro,) = batch.micros
    assert micro.rows == kept
    assert micro.size == 6
