"""Numbers of arms as text."""

from __future__ import annotations

import pytest

from analysis.reading.arms import rate_text, signed_text, subject
from tests.unit.analysis.simulated_sweeps import curve, experiment


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.223, "+0.22"), (-0.056, "-0.06"), (0.0042, "+0.004"), (-0.0042, "-0.004"), (0.0, "+0.00"),
     (-1e-12, "+0.00"), (0.0051, "+0.01")],
)  # fmt: skip
def test_a_bound_beside_zero_keeps_its_side(value: float, text: str) -> None:
    assert signed_text(value, 2) == text


@pytest.mark.parametrize(
    ("rate", "text"), [(0.0001, "1e-4"), (1.778e-4, "1.8e-4"), (3.16e-6, "3.2e-6")]
)
def test_a_rate_is_written_as_in_a_config(rate: float, text: str) -> None:
    assert rate_text(rate) == text


def test_a_figure_names_no_task_that_nobody_named() -> None:
    arms = {"full": curve([[0.1, 0.2]], (1e-4, 1e-3))}
    assert subject(experiment(arms)) == "lab64, arithmetic (sum3)"
    nameless = experiment(arms, configs={"full": {"task": {}}})
    assert subject(nameless) == "lab64"
