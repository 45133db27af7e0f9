"""Ranks of an update, and the shift of a spectrum."""

import math

import pytest
import torch

from study.probes.weights.spectrum import spectral_shift, update_spectrum


def turned(values, rows, columns, seed=0):
    """A matrix with these singular values and random singular vectors."""
    generator = torch.Generator().manual_seed(seed)
    left, right = (
        torch.linalg.qr(torch.randn(n, len(values), generator=generator, dtype=torch.float64))[0]
        for n in (rows, columns)
    )
    return (left * torch.tensor(values, dtype=torch.float64)) @ right.T


def test_ranks_of_two_directions_by_hand():
    """s = (4, 3): stable rank 25/16, effective rank exp(H(4/7, 3/7)), energy 16/25."""
    found = update_spectrum(turned([4.0, 3.0], 9, 7), tops=(1, 2, 8))
    entropy = -(4 / 7 * math.log(4 / 7) + 3 / 7 * math.log(3 / 7))
    assert found.numerical_rank == 2
    assert found.stable_rank == pytest.approx(25 / 16)
    assert found.effective_rank == pytest.approx(math.exp(entropy))
    assert found.energy == pytest.approx({1: 16 / 25, 2: 1.0, 8: 1.0})


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e150])
def test_equal_directions_count_in_full_at_any_scale(scale):
    found = update_spectrum(scale * torch.eye(6, dtype=torch.float64), tops=(1, 3))
    assert found.numerical_rank == 6
    assert found.stable_rank == pytest.approx(6)
    assert found.effective_rank == pytest.approx(6)
    assert found.energy == pytest.approx({1: 1 / 6, 3: 1 / 2})


def test_numerical_rank_is_that_of_fp32():
    update = turned([1.0, 1e-2, 1e-9], 8, 8)
    assert update_spectrum(update, ()).numerical_rank == 2
    assert int(torch.linalg.matrix_rank(update.float())) == 2
    rounded = torch.randn(20, 12, generator=torch.Generator().manual_seed(1))
    assert update_spectrum(rounded, ()).numerical_rank == int(torch.linalg.matrix_rank(rounded))


def test_no_update_has_no_ranks():
    found = update_spectrum(torch.zeros(3, 4), tops=(1,))
    assert (found.numerical_rank, found.stable_rank, found.effective_rank) == (0, None, None)
    assert found.energy == {1: None}


def test_spectral_shift_by_hand():
    before, after = torch.tensor([4.0, 3.0]), torch.tensor([4.0, 2.0])
    assert spectral_shift(before, after) == pytest.approx(1 / 5)
    assert spectral_shift(torch.zeros(2), after) is None
