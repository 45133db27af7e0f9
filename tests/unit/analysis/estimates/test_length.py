"""Ratios by training length, from evaluations on the way."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.estimates.length import (
    curves_by_step,
    ratio_slope,
)
from analysis.estimates.optimum import lr_ratio
from analysis.reading.load import load
from analysis.reading.sweep import Sweep
from analysis.simulate.draws import ArmTruth, Design
from analysis.simulate.length_rates import slope_rates
from analysis.simulate.store import Flaws, rank_arms, write_experiment
from tests.unit.analysis.simulated_sweeps import curve, experiment

RATES = (1e-4, 1e-3)
WINDOW = 2


def sweep(values: dict[tuple[float, int], list[float]], **columns: list[object]) -> Sweep:
    """One arm of two rates and one seed, evaluated at steps 0, 10, 20 and so on."""
    found = experiment({"full": curve([[0.0, 0.0]], RATES)})
    runs = found.runs.assign(final_window=WINDOW, steps_done=20, score_metric="eval/accuracy")
    lines = [
        (f"full-search-{rate:g}-{seed}", 10 * i, "eval/accuracy", value)
        for (rate, seed), own in values.items()
        for i, value in enumerate(own)
    ]
    metrics = pd.DataFrame(lines, columns=["run_id", "step", "metric", "value"])
    return replace(found, runs=runs.assign(**columns), metrics=metrics)


TWO = {(1e-4, 0): [0.1, 0.2, 0.4], (1e-3, 0): [0.1, 0.6, 0.0]}


def test_a_curve_on_the_way_by_hand() -> None:
    # At step 10 one evaluation beside the base, at step 20 the mean of two.
    assert curves_by_step(sweep(TWO))[10]["full"].scores == pytest.approx(np.array([[0.2, 0.6]]))
    assert curves_by_step(sweep(TWO))[20]["full"].scores == pytest.approx(np.array([[0.3, 0.3]]))
    assert list(curves_by_step(sweep(TWO))) == [10, 20]


def test_a_run_that_diverged_by_then_scores_the_worst_and_a_later_one_not_yet() -> None:
    cut = {(1e-4, 0): [0.1, 0.2, 0.4], (1e-3, 0): [0.1, 0.6]}
    columns = {
        "status": ["completed", "diverged"], "steps_done": [20, 15], "score_final": [0.3, 0.0],
    }  # fmt: skip
    found = sweep(cut, **columns)
    assert list(curves_by_step(found)) == [10, 20]
    early, late = curves_by_step(found)[10]["full"], curves_by_step(found)[20]["full"]
    assert early.scores == pytest.approx(np.array([[0.2, 0.6]]))
    assert not early.collapsed.any()
    assert late.scores == pytest.approx(np.array([[0.3, 0.0]]))
    assert late.collapsed.tolist() == [[False, True]]


def test_a_step_that_some_run_skipped_is_none() -> None:
    skipped = {(1e-4, 0): [0.1, 0.2, 0.4], (1e-3, 0): [0.1, 0.6]}
    assert list(curves_by_step(sweep(skipped))) == [10]


def test_a_run_that_is_over_is_not_carried_on_to_longer_trainings() -> None:
    # Arms of larger batches take fewer steps; step 20 is a length only of the longer arm.
    both = experiment({"full": curve([[0.0, 0.0]], RATES), "full-b": curve([[0.0, 0.0]], RATES)})
    short = both.runs["arm"] == "full-b"
    runs = both.runs.assign(
        final_window=1, steps_done=np.where(short, 10, 20), score_metric="eval/accuracy"
    )
    lines = [
        (run, step, "eval/accuracy", 0.5)
        for run, last in zip(runs["run_id"], runs["steps_done"], strict=True)
        for step in range(0, last + 1, 10)
    ]
    metrics = pd.DataFrame(lines, columns=["run_id", "step", "metric", "value"])
    found = curves_by_step(replace(both, runs=runs, metrics=metrics))
    assert {step: sorted(curves) for step, curves in found.items()} == {
        10: ["full", "full-b"],
        20: ["full"],
    }


def test_without_evaluations_there_are_no_steps() -> None:
    found = sweep({})
    assert curves_by_step(found) == {}


def test_the_last_step_is_the_experiment_itself(tmp_path: Path) -> None:
    path = write_experiment(tmp_path / "x", rank_arms((8,)), flaws=Flaws(diverged=True))
    found = load(path)
    by_step = curves_by_step(found)
    assert list(by_step) == list(range(20, 201, 20))
    curves = by_step[200]
    means = (
        found.runs[found.runs["phase"] == "search"].groupby(["arm", "seed"])["score_final"].mean()
    )
    assert curves["full"].scores.mean(axis=1) == pytest.approx(means["full"].to_numpy())
    ratio = lr_ratio(curves["lora-r8"], curves["full"], 0.2)
    assert ratio.centre.point == pytest.approx(10, rel=0.5)


def moving(drift: float, steps: tuple[int, ...], wobble: float = 0.0) -> dict:
    """Three seeds of one shape whose curve lies lower the longer the training."""
    x = np.arange(-6.5, -2.4, 0.25)
    found = {}
    for step in steps:
        places = -4.0 - drift * np.log10(step / 100) + wobble * np.array([-1, 0, 1])
        rows = [np.clip(0.9 - 0.5 * (x - place) ** 2, 0.1, None) for place in places]
        found[step] = curve(rows, tuple(10**x))
    return found


def test_the_slope_of_a_ratio_that_falls() -> None:
    steps = (25, 50, 100, 200)
    found = ratio_slope(moving(0.8, steps), moving(0.5, steps), 0.2)
    assert found is not None
    assert found.point == pytest.approx(-0.3, abs=0.01)
    # 0.3 h / range of log10 of the steps = 0.3 * 0.25 / log10(8).
    assert found.grid_term == pytest.approx(0.075 / math.log10(8))


def test_fewer_than_three_clear_lengths_give_no_slope() -> None:
    steps = (50, 100)
    assert ratio_slope(moving(0.8, steps), moving(0.5, steps), 0.2) is None
    far = {step: moving(0.5, (step,))[step] for step in (50, 100)} | moving(90.0, (200,))
    assert ratio_slope(far, moving(0.5, (50, 100, 200)), 0.2) is None


@pytest.mark.parametrize("n", [30, pytest.param(500, marks=pytest.mark.nightly)])
@pytest.mark.timeout(600)
def test_the_slope_covers_and_a_constant_ratio_seldom_falls(n: int) -> None:
    """Monte-Carlo SE at 30 replications: 5.5 points of coverage, 4 of false claims."""
    truth = ArmTruth()
    rng = np.random.default_rng(0)
    found = slope_rates(truth.shifted(1), truth, Design(points=11, offset=0.2), n, rng)
    assert found.covers.share >= (0.86 if n > 30 else 0.78)
    assert found.falling.share <= (0.07 if n > 30 else 0.15)


@pytest.mark.parametrize("keep", ["no run", "no score", "no metric"])
def test_a_sweep_without_anything_to_follow_has_no_steps(tmp_path: Path, keep: str) -> None:
    found = load(write_experiment(tmp_path / "x", rank_arms((8,)), report_seeds=0))
    if keep == "no run":
        found = replace(found, runs=found.runs.iloc[:0], metrics=found.metrics.iloc[:0])
    elif keep == "no score":
        found = replace(found, runs=found.runs.assign(status="no_signal", score_final=np.nan))
    else:
        found = replace(found, metrics=found.metrics.iloc[:0])
    assert curves_by_step(found) == {}


def test_without_runs_of_any_kind_there_are_no_steps(tmp_path: Path) -> None:
    path = write_experiment(tmp_path / "x", rank_arms((8,)), flaws=Flaws(missing=1.0))
    found = load(path)
    assert found.runs.empty and curves_by_step(found) == {}
