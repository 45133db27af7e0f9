"""Masks of two runs, by hand."""

import pytest
import torch

from study.probes.settings import Settings
from study.probes.weights.between import Mask, masks, pooled_shared, shared
from study.probes.weights.matrix import Pair


def mask(text):
    return Mask.of(torch.tensor([[letter == "x" for letter in text]]))


def test_two_masks_of_ten_weights():
    """4 and 5 weights, 3 of them in common; independent ones would share 4 x 5 / 10 = 2."""
    found = shared(mask("xxxx------"), mask("-xxxxx----"))
    assert (found.both, found.either) == (3, 6)
    assert found.jaccard == pytest.approx(0.5)
    p, q = 0.4, 0.5
    assert found.baseline == pytest.approx(p * q / (p + q - p * q))


def test_equal_disjoint_and_empty_masks():
    assert shared(mask("xx--"), mask("xx--")).jaccard == 1
    assert shared(mask("xx--"), mask("--xx")).jaccard == 0
    empty = shared(mask("----"), mask("----"))
    assert (empty.jaccard, empty.baseline) == (None, None)


def test_several_matrices_each_at_its_own_density():
    """A dense one of 8 and a sparse one: chance is summed, not taken of the mean density."""
    dense = shared(mask("xxxxxxxx"), mask("xxxxxxxx"))
    sparse = shared(mask("x-------"), mask("-x------"))
    found = pooled_shared([dense, sparse])
    assert (found.both, found.either) == (8, 10)
    assert found.baseline == pytest.approx((8 + 1 / 8) / (8 + 2 - 1 / 8))


def test_independent_masks_share_what_chance_says():
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.rand(400, 500, generator=generator) < p for p in (0.3, 0.6))
    found = shared(Mask.of(first), Mask.of(second))
    assert found.jaccard == pytest.approx(found.baseline, rel=0.01)


def test_masks_of_different_matrices_are_refused():
    with pytest.raises(ValueError, match="masks of one size must be compared, got 4 and 5"):
        shared(mask("x---"), mask("x----"))


def test_masks_of_an_update():
    """Of 1.0 the next number in bf16 is 1 + 2^-7: 0.001 is rounded away, 0.01 is not."""
    before = torch.ones(1, 10, dtype=torch.float64)
    update = torch.zeros(1, 10, dtype=torch.float64)
    update[0, 3], update[0, 7] = 0.001, -0.01
    pair = Pair(name="w", before=before, update=update, fp32_masters=True)
    found = masks(pair, Settings(mask_share=0.2))
    assert (found["visible"].count, found["largest"].count) == (1, 2)
    alone = shared(found["visible"], found["largest"])
    assert alone.both == 1
    nothing = Pair(name="w", before=before, update=update * 0, fp32_masters=True)
    assert masks(nothing, Settings())["largest"].count == 0
