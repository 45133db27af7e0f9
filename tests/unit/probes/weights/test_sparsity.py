"""Four counts of unchanged weights."""

import math

import pytest
import torch

from study.probes.weights.sparsity import Unchanged, count_unchanged, pooled, visible_changes


def test_counts_by_hand():
    """bf16 numbers in [1, 2) are 2^-7 apart."""
    rows = [
        (1.0, 1.0),  # untouched
        (1.0, 1 + 2**-9),  # rounds back to 1: only fp32 sees it
        (1.0, 1 + 2**-7),  # the next bf16 number: every count sees it
        (1e-7, 2e-7),  # doubled, but by far less than 1e-5
        (0.0, -0.0),  # another bit, no change of value
    ]
    before, after = torch.tensor(rows, dtype=torch.float64).T
    found = count_unchanged(before, after, fp32_masters=True)
    assert found == Unchanged(parameters=5, bf16=2, absolute=4, relative=3, fp32=1)
    assert found.shares() == {
        "unchanged_bf16": 0.4,
        "unchanged_absolute": 0.8,
        "unchanged_relative": 0.6,
        "unchanged_fp32": 0.2,
    }


def test_weights_trained_in_bf16_have_no_fp32_count():
    weights = torch.ones(3)
    found = count_unchanged(weights, weights, fp32_masters=False)
    assert found.fp32 is None
    assert found.shares()["unchanged_fp32"] is None


@pytest.mark.parametrize("seed", range(5))
def test_the_relative_count_of_bf16_numbers_is_that_of_their_bits(seed):
    generator = torch.Generator().manual_seed(seed)
    before = torch.randn(2000, generator=generator)
    after = before * (1 + 0.004 * torch.randn(2000, generator=generator))
    found = count_unchanged(before, after, fp32_masters=True)
    assert found.relative == found.bf16
    assert 0 < found.bf16 < 2000


def test_rounding_alone_hides_the_share_that_it_should():
    """A step of a quarter of bf16's spacing crosses a rounding boundary in a quarter of cases."""
    n = 40_000
    before = 1 + torch.rand(n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = count_unchanged(before, before + 2**-7 / 4, fp32_masters=True)
    assert found.fp32 == 0
    assert found.bf16 / n == pytest.approx(0.75, abs=4 * math.sqrt(0.75 * 0.25 / n))


def test_a_planted_mask_is_found():
    before = torch.linspace(0.5, 2, 60).reshape(6, 10)
    planted = torch.zeros(6, 10, dtype=torch.bool)
    planted[2, 3:7] = planted[5, 0] = True
    after = torch.where(planted, before * 1.1, before)
    assert torch.equal(visible_changes(before, after), planted)
    found = count_unchanged(before, after, fp32_masters=True)
    assert found == Unchanged(parameters=60, bf16=55, absolute=55, relative=55, fp32=55)


def test_pooled_counts_add_up_and_fp32_needs_all():
    one, other = Unchanged(10, 4, 5, 4, 1), Unchanged(90, 6, 5, 6, 9)
    assert pooled([one, other]) == Unchanged(100, 10, 10, 10, 10)
    assert pooled([one, Unchanged(1, 1, 1, 1, None)]) == Unchanged(11, 5, 6, 5, None)
