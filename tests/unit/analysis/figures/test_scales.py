"""Ticks and ranges of axes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from matplotlib.figure import Figure

from analysis.figures.scales import log_axis, number_text, score_limits
from analysis.reading.arms import rate_text


def labels(
    low: float, high: float, width: float = 7.2, text: Callable[[float], str] = rate_text
) -> list[str]:
    canvas = Figure(figsize=(width, 4))
    ax = canvas.subplots()
    ax.plot([low, high], [0, 1])
    log_axis(ax.xaxis, text)
    ax.set_xlim(low, high)
    canvas.draw_without_rendering()
    return [t.get_text() for t in ax.get_xticklabels() if low <= t.get_position()[0] <= high]


def test_log_axes_are_labelled_at_one_and_three() -> None:
    assert labels(9e-6, 1.1e-3) == ["1e-5", "3e-5", "1e-4", "3e-4", "1e-3"]


def test_a_narrow_axis_is_labelled_at_one_alone() -> None:
    assert labels(9e-6, 1.1e-3, width=2.0) == ["1e-5", "1e-4", "1e-3"]


def test_less_than_a_decade_still_has_two_labels() -> None:
    assert len(labels(1.5e-4, 8e-4)) >= 2


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (5.08e10, 5.24e10),
        (1.7e11, 2.05e11),
        (6e11, 8.1e11),
        (3.4e11, 4.1e11),
        (5.4, 14.0),
        (1.2, 9),
    ],
)
@pytest.mark.parametrize("width", [2.5, 7.2])
def test_ticks_of_a_short_axis_are_few_and_all_different(
    low: float, high: float, width: float
) -> None:
    shown = labels(low, high, width, number_text)
    assert 2 <= len(shown) <= 6
    assert len(set(shown)) == len(shown)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.3, "0.3"),
        (300, "300"),
        (3000, "3000"),
        (3e4, "30k"),
        (1e6, "1M"),
        (3e12, "3e12"),
        (5.12e10, "5.12e10"),
    ],
)
def test_numbers_in_short(value: float, said: str) -> None:
    assert number_text(value) == said


def test_scores_begin_at_zero_unless_lower_is_better() -> None:
    assert score_limits([0.2, 0.5], lower_is_better=False) == pytest.approx((0.0, 0.52))
    assert score_limits([-1.0, 1.0], lower_is_better=False) == pytest.approx((-1.08, 1.08))
    low, high = score_limits([0.5, 0.6, 0.7], lower_is_better=True)
    assert 0.45 < low < 0.5 and 0.7 < high < 0.75
    assert score_limits([], lower_is_better=True) == (0.0, 1.0)


def test_values_that_are_no_numbers_do_not_stretch_an_axis() -> None:
    scores = [0.5, float("inf"), float("nan")]
    assert score_limits(scores, lower_is_better=False) == pytest.approx((0.0, 0.52))
