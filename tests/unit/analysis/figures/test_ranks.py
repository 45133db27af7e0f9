"""Score against rank: the numbers, worked by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from analysis.estimates.search import search_summary
from analysis.estimates.stats import cross_fitted_mean
from analysis.figures.ranks import FIGURE, RankFigure, rank_figure
from analysis.reading.load import load
from analysis.reading.sweep import Sweep
from tests.doubles import write_synthetic_experiment
from tests.unit.analysis.figures.drawn_sweeps import Drawn, ranks, sweep_of


def numbers(sweep: Sweep) -> RankFigure:
    return rank_figure(sweep, search_summary(sweep))


def test_ranks_hold_report_seeds_only(sweep: Sweep) -> None:
    data = numbers(sweep)

    assert data.scores.phase == "report"
    assert [row.arm.name for row in data.full] == ["full"]
    assert [row.arm.rank for row in data.lora] == [1, 8]
    assert [row.estimate.point for row in data.lora] == pytest.approx([0.485, 0.505])
    assert data.full[0].estimate.point == pytest.approx(0.495)
    half = 2.91999 * 0.004 / math.sqrt(3)
    assert data.full[0].estimate.low == pytest.approx(0.495 - half, abs=1e-6)
    assert [p.seed for p in data.lora[0].points] == [100, 101, 102]
    assert {p.x for p in data.lora[1].points} == {2e-3}


def test_report_runs_at_another_rate_are_not_shown(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q")
    (path / "selection" / "full.json").write_text('{"learning_rate": 6e-5}')

    assert numbers(load(path)).full == ()


def test_costs_are_those_of_the_runs_that_are_shown(sweep: Sweep) -> None:
    full, rank_one = numbers(sweep).scores.rows[:2]

    assert (full.trainable_params, rank_one.trainable_params) == (131_712, 2_000)
    assert (full.train_flops, rank_one.train_flops) == (2.0e12, 1.6e12)


def test_without_a_report_phase_scores_are_cross_fitted() -> None:
    sweep = sweep_of(ranks(1), reports=0)
    search = search_summary(sweep)
    data = rank_figure(sweep, search)

    assert (data.scores.phase, data.scores.note) == ("search", ", cross-fitted")
    expected = cross_fitted_mean(search.curves["full"].scores)
    assert data.full[0].estimate == expected
    # Every seed selects 2e-4 and scores 0.49, 0.50, 0.51 there: t x 0.01 / sqrt(3) x sqrt(2).
    assert expected.point == pytest.approx(0.50)
    half = 2.91999 * 0.01 / math.sqrt(3) * math.sqrt(2)
    assert expected.high == pytest.approx(0.50 + half, abs=1e-5)


def test_where_lower_is_better_cross_fitted_scores_stay_in_natural_units() -> None:
    arms = {"full": Drawn(scores=(0.62, 0.55, 0.52, 0.54, 0.9))}
    sweep = sweep_of(arms, reports=0, direction="minimize", metric="nll", base=0.7)

    estimate = numbers(sweep).full[0].estimate
    assert estimate.point == pytest.approx(0.52)
    assert estimate.low is not None and estimate.high is not None
    assert estimate.low < 0.52 < estimate.high


def test_one_search_seed_gives_its_best_without_an_interval() -> None:
    data = numbers(sweep_of(ranks(1), seeds=1, reports=0))

    assert data.scores.note == ", best of the rates"
    assert data.full[0].estimate.point == pytest.approx(0.49)
    assert (data.full[0].estimate.interval, data.full[0].estimate.n) == (None, 1)


def test_the_untrained_model_is_drawn_only_where_it_does_not_flatten_the_scores() -> None:
    # Report scores 0.49 to 0.51; the base scores 0.18.
    far = numbers(sweep_of(ranks(1)))
    assert far.base("") is None
    assert FIGURE.caption(far).endswith("The untrained model is outside it, at 0.18.")

    near = numbers(sweep_of(ranks(1), base=0.48))
    assert near.base("") == pytest.approx(0.48)
    assert "untrained" not in FIGURE.caption(near)
