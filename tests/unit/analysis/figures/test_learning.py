"""Learning curves and their envelopes: the numbers, worked by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from analysis.estimates.search import search_summary
from analysis.figures.envelope import EnvelopeFigure, envelope_figure
from analysis.figures.learning import LearningFigure, learning_figure
from analysis.reading.load import load
from analysis.reading.sweep import Sweep
from tests.doubles import REPORT_BASE, Defects, run_id, write_synthetic_experiment
from tests.unit.analysis.figures.drawn_sweeps import BASE, Drawn, sweep_of


def curves(sweep: Sweep) -> LearningFigure:
    return learning_figure(sweep, search_summary(sweep))


def envelopes(sweep: Sweep) -> EnvelopeFigure:
    return envelope_figure(sweep, search_summary(sweep))


def test_learning_curves_count_prompts_and_average_seeds(sweep: Sweep) -> None:
    data = curves(sweep)

    assert (data.phase, data.unit) == ("report", "training prompts seen")
    full = data.curves[0]
    assert (full.arm.name, full.learning_rate) == ("full", 2e-4)
    assert full.prompts == tuple(range(0, 1601, 160))  # 8 prompts a step, every 20 steps
    assert full.mean[0] == pytest.approx(REPORT_BASE)
    assert full.mean[-1] == pytest.approx(0.495)
    rise = 0.495 - REPORT_BASE
    assert full.mean[1] == pytest.approx(REPORT_BASE + rise / 7)  # a straight rise to step 140
    assert [seed.seed for seed in full.seeds] == [100, 101, 102]
    half = 2.91999 * 0.004 / math.sqrt(3)
    assert full.means[-1].high == pytest.approx(0.495 + half, abs=1e-6)


def test_a_diverged_run_pulls_the_mean_curve_down_from_its_end_on(tmp_path: Path) -> None:
    lost = run_id("full", "report", 2e-4, 100)
    sweep = load(write_synthetic_experiment(tmp_path / "q", defects=Defects(diverged=[lost])))

    curve = curves(sweep).curves[0]
    last = {seed.seed: seed.prompts[-1] for seed in curve.seeds}
    assert last == {100: 800, 101: 1600, 102: 1600}
    alive = [seed.scores[-1] for seed in curve.seeds if not seed.diverged]
    assert curve.mean[-1] == pytest.approx((0.0 + sum(alive)) / 3)


def test_learning_curves_fall_back_to_search_seeds_at_the_best_rate(tmp_path: Path) -> None:
    data = curves(load(write_synthetic_experiment(tmp_path / "q", report_seeds=())))

    assert data.phase == "search"
    assert [seed.seed for seed in data.curves[0].seeds] == [0, 1, 2]
    assert data.curves[0].mean[-1] == pytest.approx(0.50)


def test_curves_of_the_score_metric_are_read_whatever_it_is_called() -> None:
    sweep = sweep_of({"full": Drawn()}, metric="eval/reward", records=False)
    data = curves(sweep)

    # No batch size was recorded: steps, of which the last is 160.
    assert data.unit == "training steps"
    assert data.curves[0].prompts[-1] == 160


def test_report_runs_at_another_rate_have_no_curve(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q")
    (path / "selection" / "full.json").write_text('{"learning_rate": 6e-5}')

    assert [curve.arm.name for curve in curves(load(path)).curves] == ["lora-r1", "lora-r8"]


def test_the_envelope_is_the_best_and_the_worst_mean_at_every_point() -> None:
    arms = {"full": Drawn(scores=(0.30, 0.50, 0.10))}
    (found,) = envelopes(sweep_of(arms)).curves

    assert (found.rates, found.seeds) == (3, (3, 3, 3))
    assert found.prompts == (80, 160, 320, 640, 1280)  # steps 10 to 160 of 8 prompts; not the start
    # Straight lines from the base to the mean at each rate: best towards 0.5, worst towards 0.1.
    shares = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)
    assert found.best == pytest.approx([BASE + (0.50 - BASE) * share for share in shares])
    assert found.worst == pytest.approx([BASE + (0.10 - BASE) * share for share in shares])


def test_where_lower_is_better_the_best_is_the_lowest() -> None:
    arms = {"full": Drawn(scores=(0.30, 0.50, 0.10))}
    sweep = sweep_of(arms, direction="minimize", metric="nll")

    assert envelopes(sweep).curves[0].best[-1] == pytest.approx(0.10)
    assert envelopes(sweep).curves[0].worst[-1] == pytest.approx(0.50)


def test_a_diverged_run_counts_with_its_worst_score_in_the_envelope() -> None:
    arms = {"full": Drawn(scores=(0.30, 0.50, 0.10))}
    sweep = sweep_of(arms, diverged=["full-search-2e-05-0"])

    # Lowest rate, last evaluation: 0, 0.30 and 0.31, mean 0.2033; the worst stays 0.10.
    found = envelopes(sweep).curves[0]
    assert found.worst[-1] == pytest.approx(0.10)
    both = envelopes(
        sweep_of({"full": Drawn(scores=(0.30, 0.50))}, diverged=["full-search-2e-05-0"])
    )
    assert both.curves[0].worst[-1] == pytest.approx((0.0 + 0.30 + 0.31) / 3)


def test_one_rate_has_no_envelope() -> None:
    assert envelopes(sweep_of({"full": Drawn(scores=(0.3,))})).curves == ()
