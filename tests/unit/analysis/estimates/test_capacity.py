"""Bits over capacity, and what excess costs, by hand and against a truth."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.estimates.capacity import capacity_load, gap_slope


def test_the_published_examples() -> None:
    # LoRA Without Regret: MATH gives 10,000 x 32 bits; rank 1 of an 8B model has 3M parameters.
    assert capacity_load(320_000, 3e6) == pytest.approx(0.0533, abs=1e-4)
    # 13 parameters hold 26 bits.
    assert capacity_load(26, 13) == 1.0
    assert capacity_load(0.0, 5) == 0.0


@pytest.mark.parametrize(
    ("bits", "parameters", "message"),
    [
        (-1.0, 5, "bits must be at least 0, got -1.0"),
        (float("nan"), 5, "bits must be at least 0, got nan"),
        (1.0, 0, "trainable parameters must be more than 0, got 0"),
    ],
)
def test_what_is_no_load_is_refused(bits: float, parameters: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        capacity_load(bits, parameters)


def test_a_slope_per_doubling_by_hand() -> None:
    found = gap_slope([1, 2, 4], [0.02, 0.04, 0.06], [0.01, 0.01, 0.01])
    assert found is not None
    assert found.point == pytest.approx(0.02)
    assert found.standard_error == pytest.approx(0.01 / np.sqrt(2))  # sum of squares 1 + 0 + 1


def test_no_slope_from_two_arms_equal_loads_or_scores_without_spread() -> None:
    assert gap_slope([1, 2], [0.0, 0.1], [0.01, 0.01]) is None
    assert gap_slope([2, 2, 2], [0.0, 0.1, 0.2], [0.01] * 3) is None
    assert gap_slope([1, 2, 4], [0.0, 0.1, 0.2], [0.01, 0.0, 0.01]) is None
    assert gap_slope([1, 2, 4], [0.0, 0.1, 0.2], [0.01, float("nan"), 0.01]) is None


def test_intervals_of_no_effect_hold_zero_as_often_as_they_say() -> None:
    """5 ranks, 5 seeds each, one shared baseline whose error is in every gap."""
    rng = np.random.default_rng(0)
    loads, held = [0.1, 0.2, 0.4, 0.8, 1.6], 0
    for _ in range(1000):
        full, arms = rng.normal(0.5, 0.02, 5), rng.normal(0.5, 0.02, (5, 5))
        gaps = full.mean() - arms.mean(axis=1)
        errors = arms.std(axis=1, ddof=1) / np.sqrt(5)
        slope = gap_slope(loads, gaps, errors)
        assert slope is not None
        low, high = slope.estimate().interval or (1.0, -1.0)
        held += low <= 0 <= high
    assert held >= 860
