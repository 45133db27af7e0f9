"""What figures call the arms, and the learning rate that each goes by."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.reading.arms import arms, choice, count_text, rate_text, subject
from analysis.reading.load import load
from analysis.reading.sweep import Sweep
from tests.doubles import (
    SYNTHETIC_ARMS,
    Defects,
    SyntheticArm,
    run_id,
    write_synthetic_experiment,
)


def test_arms_are_ordered_full_first_then_by_rank(tmp_path: Path) -> None:
    names = ("lora-r8", "lora-r1", "full")
    path = write_synthetic_experiment(tmp_path / "q", arms={n: SYNTHETIC_ARMS[n] for n in names})

    assert [arm.name for arm in arms(load(path))] == ["full", "lora-r1", "lora-r8"]


def test_the_subject_names_model_and_task_and_what_is_unfinished(
    sweep: Sweep, tmp_path: Path
) -> None:
    assert subject(sweep) == "lab64, arithmetic (sum3)"
    defects = Defects(missing=[run_id("full", "search", 2e-5, 0)])
    unfinished = load(write_synthetic_experiment(tmp_path / "q", defects=defects))
    assert subject(unfinished) == "lab64, arithmetic (sum3); unfinished, 53 of 54 runs"


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([3, 3], "3 search seeds"),
        ([1], "1 search seed"),
        ([2, 3], "2 to 3 search seeds"),
        ([], "no search seeds"),
        ([0], "no search seeds"),
    ],
)
def test_counts_in_words(counts: list[int], said: str) -> None:
    assert count_text(counts, "search seed") == said


@pytest.mark.parametrize(("rate", "said"), [(2e-4, "2e-4"), (2.716e-4, "2.7e-4"), (1.0, "1e0")])
def test_rates_as_in_configs(rate: float, said: str) -> None:
    assert rate_text(rate) == said


def test_without_a_selection_the_best_mean_so_far_goes_ties_to_the_lower(tmp_path: Path) -> None:
    flat = SyntheticArm(None, (1e-4, 1e-3, 1e-2), (0.3, 0.4, 0.4), 0.4)
    path = write_synthetic_experiment(tmp_path / "q", arms={"full": flat}, report_seeds=())
    found = choice(load(path), "full")

    assert found is not None
    assert (found.learning_rate, found.edge, found.final) == (1e-3, None, False)


def test_the_best_rate_at_the_end_of_the_grid_is_called_an_edge(tmp_path: Path) -> None:
    rising = SyntheticArm(None, (1e-4, 1e-3), (0.3, 0.4), 0.4)
    path = write_synthetic_experiment(tmp_path / "q", arms={"full": rising}, report_seeds=())
    found = choice(load(path), "full")

    assert found is not None and found.edge == "high"
