"""Numbers of arms as text."""

from __future__ import annotations

import pytest

from analysis.reading.arms import signed_text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.223, "+0.22"), (-0.056, "-0.06"), (0.0042, "+0.004"), (-0.0042, "-0.004"), (0.0, "+0.00"),
     (-1e-12, "+0.00"), (0.0051, "+0.01")],
)  # fmt: skip
def test_a_bound_beside_zero_keeps_its_side(value: float, text: str) -> None:
    assert signed_text(value, 2) == text
