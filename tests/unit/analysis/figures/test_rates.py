"""Score against learning rate: the numbers, worked by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

from analysis.estimates.search import search_summary
from analysis.estimates.stats import t_quantile
from analysis.figures.rates import RateFigure, draw_rates, rate_figure
from analysis.reading.load import load
from analysis.reading.sweep import Sweep
from tests.doubles import BASE, Defects, run_id, write_synthetic_experiment
from tests.unit.analysis.figures.drawn_sweeps import Drawn, ranks, sweep_of


def numbers(sweep: Sweep) -> RateFigure:
    return rate_figure(sweep, search_summary(sweep))


def test_means_and_intervals_are_those_of_the_seeds(sweep: Sweep) -> None:
    data = numbers(sweep)

    full = data.curves[0]
    assert full.arm.name == "full"
    assert [rate for rate, _ in full.means] == [2e-5, 6e-5, 2e-4, 6e-4, 2e-3]
    assert [m.point for _, m in full.means] == pytest.approx([0.20, 0.34, 0.50, 0.46, 0.06])
    # Seeds at -0.01, 0, +0.01 around the mean: SD 0.01, half-width t(0.95, 2) 0.01 / sqrt(3).
    half = 2.91999 * 0.01 / math.sqrt(3)
    low, high = full.means[2][1].interval or (0, 0)
    assert (low, high) == pytest.approx((0.50 - half, 0.50 + half), abs=1e-6)
    assert t_quantile(2) == pytest.approx(2.91999, abs=1e-5)
    assert data.base("") == pytest.approx(BASE)


def test_report_runs_never_enter(sweep: Sweep) -> None:
    data = numbers(sweep)

    assert {point.seed for curve in data.curves for point in curve.points} == {0, 1, 2}
    assert sum(len(curve.points) for curve in data.curves) == 45


def test_the_selected_rate_is_marked_and_the_plateau_is_the_truth(sweep: Sweep) -> None:
    full, rank_one = numbers(sweep).curves[:2]

    assert full.choice is not None and rank_one.choice is not None
    assert (full.choice.learning_rate, full.choice.final) == (2e-4, True)
    assert rank_one.choice.learning_rate == 2e-3
    # Top = mean of 0.50 and 0.46; threshold 0.48 - 0.2 (0.48 - 0.18) = 0.42, crossed on the
    # log axis half-way from 0.34 to 0.50 and a tenth of the way from 0.46 to 0.06.
    assert full.plateau is not None
    assert full.plateau.threshold == pytest.approx(0.42)
    assert full.plateau.ramp.point == pytest.approx(6e-5 * (2e-4 / 6e-5) ** 0.5)
    assert full.plateau.cliff.point == pytest.approx(6e-4 * (2e-3 / 6e-4) ** 0.1)


def test_a_diverged_run_stays_at_the_worst_score(tmp_path: Path) -> None:
    lost = run_id("full", "search", 2e-3, 0)
    sweep = load(write_synthetic_experiment(tmp_path / "q", defects=Defects(diverged=[lost])))

    curve = numbers(sweep).curves[0]
    crosses = [point for point in curve.points if point.diverged]
    assert [(p.x, p.seed, p.score) for p in crosses] == [(2e-3, 0, 0.0)]
    assert curve.means[-1][1].point == pytest.approx((0.0 + 0.06 + 0.07) / 3)


def test_a_run_without_signal_has_no_score_and_leaves_no_plateau(tmp_path: Path) -> None:
    silent = run_id("lora-r1", "search", 2e-4, 0)
    sweep = load(write_synthetic_experiment(tmp_path / "q", defects=Defects(no_signal=[silent])))

    curve = numbers(sweep).curves[1]
    assert curve.means[0][1].n == 2 and curve.means[0][1].interval is None
    assert curve.plateau is None


def test_runs_of_one_rate_and_seed_count_as_one_seed() -> None:
    sweep = sweep_of({"full": Drawn(report=None)}, seeds=1, reports=0)
    again = sweep.runs.iloc[[0]].assign(run_id="again", score_final=0.30)
    runs = pd.concat([sweep.runs, again], ignore_index=True)
    planned = runs[["run_id", "arm", "phase", "learning_rate", "seed", "status"]]
    twice = replace(sweep, runs=runs, planned=planned)

    curve = numbers(twice).curves[0]
    # 0.20 - 0.01 and 0.30 at the lowest rate, both of seed 0.
    assert curve.means[0][1].point == pytest.approx(0.245) and curve.means[0][1].n == 1
    assert len(curve.points) == 6


def test_every_setting_has_the_untrained_model_of_its_own() -> None:
    arms = {"a": Drawn(model="small"), "b": Drawn(model="large")}
    sweep = sweep_of(arms, base=0.2)
    sweep.runs.loc[sweep.runs["arm"] == "b", "score_base"] = 0.3

    data = numbers(sweep)
    assert (data.base("small"), data.base("large")) == (pytest.approx(0.2), pytest.approx(0.3))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "selected rate"),
        ({"report_seeds": ()}, "best mean"),
        ({"report_joined": False}, "best mean so far"),
    ],
)
def test_the_star_says_whether_the_rate_is_final(
    tmp_path: Path, settings: dict[str, Any], said: str
) -> None:
    sweep = load(write_synthetic_experiment(tmp_path / "q", **settings))
    ax = Figure().subplots()
    draw_rates(numbers(sweep), ax)

    legend = ax.get_legend()
    assert legend is not None
    assert said in [text.get_text() for text in legend.get_texts()]


def test_where_lower_is_better_one_bad_run_does_not_flatten_the_rest() -> None:
    arms = {"full": Drawn(scores=(0.62, 0.55, 0.52, 0.54, 90.0))}
    sweep = sweep_of(arms, reports=0, direction="minimize", metric="nll", base=None)
    ax = Figure().subplots()
    draw_rates(numbers(sweep), ax)

    # Best 0.51, median 0.55: the axis ends near 0.51 + 6 x 0.04 and not at 90.
    assert 0.6 < ax.get_ylim()[1] < 0.8
    assert ax.get_ylim()[0] < 0.51
    legend = ax.get_legend()
    assert legend and "above the axis" in [text.get_text() for text in legend.get_texts()]


def test_runs_that_agree_exactly_have_no_interval() -> None:
    sweep = sweep_of(ranks(1))
    sweep.runs["score_final"] = 0.4

    means = [mean for _, mean in numbers(sweep).curves[0].means]
    assert [(mean.point, mean.interval) for mean in means] == [(pytest.approx(0.4), None)] * 5
