"""From the tidy frame to learning-rate curves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analysis.estimates.curve import LrCurve, learning_rate_curves


def frame(rows: list[tuple[str, str, float, int, str, float | None]]) -> pd.DataFrame:
    columns = ["arm", "phase", "learning_rate", "seed", "status", "score_final"]
    runs = pd.DataFrame(rows, columns=columns)
    return runs.assign(direction="maximize", score_base=0.1)


ROWS = [
    ("full", "search", 1e-3, 1, "diverged", 0.0),
    ("full", "search", 1e-4, 0, "completed", 0.5),
    ("full", "search", 1e-4, 1, "completed", 0.6),
    ("full", "search", 1e-3, 0, "completed", 0.4),
    ("full", "report", 1e-4, 9, "completed", 0.9),
]


def test_table_is_sorted_and_report_runs_stay_out() -> None:
    curve = learning_rate_curves(frame(ROWS))["full"]
    assert curve.learning_rates == (1e-4, 1e-3)
    assert curve.seeds == (0, 1)
    assert curve.scores.tolist() == [[0.5, 0.4], [0.6, 0.0]]
    assert curve.collapsed.tolist() == [[False, False], [False, True]]
    assert curve.base == pytest.approx(0.1)
    assert curve.means == pytest.approx([0.55, 0.2])


def test_runs_of_one_cell_and_seed_are_averaged_as_one() -> None:
    curve = learning_rate_curves(frame([*ROWS, ("full", "search", 1e-4, 0, "completed", 0.7)]))
    assert curve["full"].scores[0, 0] == pytest.approx(0.6)
    assert curve["full"].n_seeds == 2


@pytest.mark.parametrize(
    "hole",
    [
        ("full", "search", 1e-2, 0, "completed", 0.3),  # one seed only
        ("full", "search", 1e-4, 2, "completed", 0.3),  # one rate only
    ],
)
def test_an_arm_with_a_hole_is_left_out(
    hole: tuple[str, str, float, int, str, float | None],
) -> None:
    other = [("lora", *row[1:]) for row in ROWS]
    assert list(learning_rate_curves(frame([*ROWS, hole, *other]))) == ["lora"]


@pytest.mark.parametrize("status", ["no_signal", "pruned"])
def test_a_run_without_score_is_a_hole(status: str) -> None:
    rows = [*ROWS[1:], ("full", "search", 1e-3, 1, status, None)]
    assert learning_rate_curves(frame(rows)) == {}


def test_an_arm_whose_untrained_model_was_never_evaluated_has_no_base() -> None:
    assert learning_rate_curves(frame(ROWS).assign(score_base=np.nan))["full"].base is None


def test_lower_is_better_changes_sign() -> None:
    curve = learning_rate_curves(frame(ROWS).assign(direction="minimize"))["full"]
    assert curve.base == pytest.approx(-0.1)
    assert curve.scores[0].tolist() == [-0.5, -0.4]


def test_no_runs_no_curves() -> None:
    assert learning_rate_curves(frame(ROWS).iloc[:0]) == {}


@pytest.mark.parametrize(
    ("rates", "score", "law"),
    [
        ((1e-3, 1e-4), 0.5, "positive and ascending"),
        ((0.0, 1e-4), 0.5, "positive and ascending"),
        ((1e-4, 1e-3), np.nan, "finite number"),
        ((1e-4,), 0.5, "shape"),
    ],
)
def test_a_curve_checks_itself(rates: tuple[float, ...], score: float, law: str) -> None:
    no = np.zeros((1, 2), dtype=bool)
    with pytest.raises(ValueError, match=law):
        LrCurve("full", rates, np.array([[0.5, score]]), (0,), 0.1, no)
