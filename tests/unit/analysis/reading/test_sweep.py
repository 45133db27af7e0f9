"""What a sweep knows of itself: which way is better, and which rate an arm goes by."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.reading.arms import base_score, choice, preferred_rate, reported
from analysis.reading.sweep import Sweep
from tests.unit.analysis.simulated_sweeps import curve, experiment

RATES = (1e-5, 1e-4, 1e-3)


def sweep_of(*scores: float, direction: str = "maximize", seeds: int = 1) -> Sweep:
    sweep = experiment({"full": curve([scores] * seeds, RATES)})
    return replace(sweep, runs=sweep.runs.assign(direction=direction, score_metric="eval/loss"))


def test_direction_and_metric_are_those_of_the_runs() -> None:
    sweep = sweep_of(0.1, 0.2, 0.3, direction="minimize")
    assert (sweep.direction, sweep.score_metric) == ("minimize", "eval/loss")


def test_a_sweep_without_records_is_scored_as_all_of_ours_are() -> None:
    sweep = sweep_of(0.1, 0.2, 0.3)
    empty = replace(sweep, runs=sweep.runs.iloc[:0])
    assert (empty.direction, empty.score_metric) == ("maximize", "eval/accuracy")


@pytest.mark.parametrize("column", ["direction", "score_metric"])
def test_runs_that_disagree_cannot_be_compared(column: str) -> None:
    sweep = sweep_of(0.1, 0.2, 0.3)
    mixed = replace(sweep, runs=sweep.runs.assign(**{column: ["maximize", "minimize", "minimize"]}))
    said = f"every run of simulated must have one {column}, found maximize, minimize"
    with pytest.raises(ValueError, match=said):
        getattr(mixed, column)


@pytest.mark.parametrize(
    ("direction", "scores", "rate", "edge"),
    [
        ("maximize", (0.1, 0.3, 0.2), 1e-4, None),
        ("minimize", (0.3, 0.1, 0.2), 1e-4, None),
        ("maximize", (0.3, 0.1, 0.2), 1e-5, "low"),
        ("minimize", (0.3, 0.2, 0.1), 1e-3, "high"),
        ("maximize", (0.3, 0.3, 0.1), 1e-5, "low"),
        ("minimize", (0.3, 0.1, 0.1), 1e-4, None),
    ],
)
def test_the_preferred_rate(
    direction: str, scores: tuple[float, ...], rate: float, edge: str | None
) -> None:
    sweep = sweep_of(*scores, direction=direction, seeds=2)
    chosen = choice(sweep, "full")

    assert preferred_rate(sweep, "full") == rate
    assert chosen is not None and (chosen.learning_rate, chosen.edge) == (rate, edge)


def test_a_rate_that_was_stopped_early_does_not_compete() -> None:
    sweep = sweep_of(0.9, 0.5, 0.4, seeds=2)
    statuses = sweep.runs["status"].where(sweep.runs.index != 0, "pruned")
    assert preferred_rate(replace(sweep, runs=sweep.runs.assign(status=statuses)), "full") == 1e-4


def test_scores_of_the_report_choose_nothing() -> None:
    sweep = experiment(
        {"full": curve([(0.1, 0.3, 0.2)], RATES)}, {"full": (0.9,)}, selections={"full": 1e-5}
    )
    assert preferred_rate(sweep, "full") == 1e-4


def test_an_arm_without_a_score_prefers_nothing() -> None:
    sweep = sweep_of(0.1, 0.2, 0.3)
    silent = replace(sweep, runs=sweep.runs.assign(score_final=float("nan")))
    assert preferred_rate(silent, "full") is None and choice(silent, "full") is None
    assert preferred_rate(sweep, "no such arm") is None


def test_report_runs_count_at_the_rate_the_arm_goes_by_under_minimize() -> None:
    whole = experiment(
        {"full": curve([(0.3, 0.1, 0.2)], RATES)}, {"full": (0.11, 0.12)}, selections={"full": 1e-4}
    )
    sweep = replace(whole, runs=whole.runs.assign(direction="minimize"))

    assert list(reported(sweep, "full")["score_final"]) == [0.11, 0.12]
    assert base_score(sweep.runs, "search") == pytest.approx(0.1)


def test_an_imported_sweep_waits_for_nothing() -> None:
    sweep = experiment({"full": curve([(0.1, 0.3, 0.2)], RATES)}, report_seeds=(100, 101))
    assert (sweep.expected, sweep.complete, sweep.imported) == (5, False, False)

    foreign = {**sweep.plan, "experiment": {**sweep.experiment, "kind": "imported"}}
    theirs = replace(sweep, plan=foreign)
    assert (theirs.expected, theirs.complete, theirs.imported) == (3, True, True)
    assert theirs.is_experiment
