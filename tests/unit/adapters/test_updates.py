"""Sums of updates, against matrices worked out by hand."""

from __future__ import annotations

import pytest
import torch
from torch import tensor

from study.adapters.updates import concatenated, distance, summed

ONE = {"q": (tensor([[1.0, 2.0]]), tensor([[1.0], [0.0]]))}  # B A = [[1, 2], [0, 0]]
TWO = {
    "q": (tensor([[0.0, 1.0]]), tensor([[0.0], [3.0]])),  # [[0, 0], [0, 3]]
    "k": (tensor([[1.0, 0.0]]), tensor([[5.0], [0.0]])),
}
PARTS = [(1.0, 2.0, ONE), (0.5, 4.0, TWO)]
"""Weight and scaling: 2 ONE + 2 TWO."""


def test_updates_add_up() -> None:
    total = summed(PARTS)
    assert torch.equal(total["q"], tensor([[2.0, 4.0], [0.0, 6.0]]).double())
    assert torch.equal(total["k"], tensor([[10.0, 0.0], [0.0, 0.0]]).double())


def test_a_concatenated_adapter_is_the_sum_at_the_sum_of_the_ranks() -> None:
    found = concatenated(PARTS)
    a, b = found["q"]
    assert (a.shape, b.shape) == ((2, 2), (2, 2))
    assert torch.equal(b @ a, tensor([[2.0, 4.0], [0.0, 6.0]]))
    a, b = found["k"]
    assert torch.equal(b @ a, tensor([[10.0, 0.0], [0.0, 0.0]]))


def test_a_sum_with_weight_nought_is_nothing() -> None:
    a, b = concatenated([(0.0, 2.0, ONE)])["q"]
    assert not (b @ a).any()


def test_the_distance_is_relative_to_what_is_expected() -> None:
    expected = {"q": tensor([[3.0, 4.0]]).double()}
    assert distance(expected, expected) == 0
    assert distance({"q": tensor([[3.0, 3.0]]).double()}, expected) == pytest.approx(1 / 5)
    assert distance({}, expected) == pytest.approx(1)
    assert distance({**expected, "k": tensor([[5.0]]).double()}, expected) == pytest.approx(1)
