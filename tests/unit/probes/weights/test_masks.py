"""Overlap of an update with regions of a matrix."""

import pytest
import torch

from study.probes.weights.masks import Overlap, low_mask, overlap, principal_mask, top_mask


def mask(*flat, shape=(2, 5)):
    found = torch.zeros(shape, dtype=torch.bool)
    found.view(-1)[list(flat)] = True
    return found


def test_overlap_by_hand():
    """3 of 4 weights of the region changed, 5 of all 10: 0.75 / 0.5."""
    found = overlap(mask(0, 1, 2, 7, 8), mask(0, 1, 2, 3))
    assert found == Overlap(covered=0.75, density=0.5)
    assert found.ratio == 1.5


def test_avoided_region_and_no_update():
    assert overlap(mask(7, 8), mask(0, 1, 2, 3)).ratio == 0.0
    assert overlap(mask(), mask(0)).ratio is None


def test_an_independent_update_covers_every_region_alike():
    generator = torch.Generator().manual_seed(0)
    region = torch.rand(300, 300, generator=generator) < 0.1
    updated = torch.rand(300, 300, generator=generator) < 0.3
    # 9,000 weights in the region: SD of the ratio is sqrt(0.7 / 0.3 / 9000) = 0.016
    assert overlap(updated, region).ratio == pytest.approx(1.0, abs=0.065)


def test_the_top_mask_has_exactly_its_share_also_of_ties():
    assert int(top_mask(torch.ones(4, 5), 0.3).sum()) == 6
    assert int(top_mask(torch.ones(2, 2), 0.01).sum()) == 1
    assert torch.equal(top_mask(torch.arange(10.0).view(2, 5), 0.2), mask(8, 9))


@pytest.mark.parametrize("share", [0.0, 1.1, float("nan")])
def test_an_impossible_share_is_refused(share):
    with pytest.raises(ValueError, match="0 < share <= 1 must hold"):
        top_mask(torch.ones(3), share)


def test_principal_mask_follows_the_leading_direction_and_not_the_entries():
    """3 on the diagonal's first entry is a direction of its own, the block of 2s a stronger one."""
    before = torch.zeros(4, 4, dtype=torch.float64)
    before[0, 0] = 3.0
    before[1:, 1:] = -2.0
    left, values, right = torch.linalg.svd(before)
    assert values[:2].tolist() == pytest.approx([6.0, 3.0])
    found = principal_mask(left[:, :1], values[:1], right[:1], share=9 / 16)
    expected = torch.zeros(4, 4, dtype=torch.bool)
    expected[1:, 1:] = True
    assert torch.equal(found, expected)


def test_low_mask_takes_the_smallest_by_size():
    before = torch.tensor([[-0.1, 5.0, 0.3, -4.0, 0.2]])
    assert torch.equal(low_mask(before, 0.4), mask(0, 4, shape=(1, 5)))
