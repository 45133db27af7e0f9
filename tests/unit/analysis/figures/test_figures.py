"""The numbers behind the figures, worked by hand; pixels are only drawn without complaint."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from analysis.estimates.search import search_summary
from analysis.estimates.stats import t_quantile
from analysis.figures.data import (
    learning_figure,
    optimum_figure,
    rank_figure,
    rate_figure,
)
from analysis.figures.draw import draw_learning, draw_optima, draw_ranks, draw_rates
from analysis.figures.style import BLACK, figure, looks
from analysis.reading.arms import arms, choice, count_text, rate_text, subject
from analysis.reading.load import load
from analysis.reading.sweep import Sweep
from tests.doubles import (
    BASE,
    FULL_GRID,
    REPORT_BASE,
    SYNTHETIC_ARMS,
    Defects,
    SyntheticArm,
    run_id,
    write_synthetic_experiment,
)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    return load(write_synthetic_experiment(tmp_path_factory.mktemp("runs") / "quickstart"))


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


def test_rates_means_and_intervals_are_those_of_the_seeds(sweep: Sweep) -> None:
    data = rate_figure(sweep, search_summary(sweep).optima)

    full = data.curves[0]
    assert full.arm.name == "full"
    assert [rate for rate, _ in full.means] == [2e-5, 6e-5, 2e-4, 6e-4, 2e-3]
    assert [m.point for _, m in full.means] == pytest.approx([0.20, 0.34, 0.50, 0.46, 0.06])
    # Seeds at -0.01, 0, +0.01 around the mean: SD 0.01, half-width t(0.95, 2) 0.01 / sqrt(3).
    half = 2.91999 * 0.01 / math.sqrt(3)
    low, high = full.means[2][1].interval or (0, 0)
    assert (low, high) == pytest.approx((0.50 - half, 0.50 + half), abs=1e-6)
    assert t_quantile(2) == pytest.approx(2.91999, abs=1e-5)
    assert data.base == pytest.approx(BASE)


def test_report_runs_never_enter_the_rate_figure(sweep: Sweep) -> None:
    data = rate_figure(sweep, {})

    assert {point.seed for curve in data.curves for point in curve.points} == {0, 1, 2}
    assert sum(len(curve.points) for curve in data.curves) == 45


def test_the_selected_rate_is_marked_and_the_plateau_is_the_truth(sweep: Sweep) -> None:
    data = rate_figure(sweep, search_summary(sweep).optima)

    full, rank_one = data.curves[0], data.curves[1]
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

    curve = rate_figure(sweep, {}).curves[0]
    crosses = [point for point in curve.points if point.diverged]
    assert [(p.x, p.seed, p.score) for p in crosses] == [(2e-3, 0, 0.0)]
    assert curve.means[-1][1].point == pytest.approx((0.0 + 0.06 + 0.07) / 3)


def test_a_run_without_signal_has_no_score_and_leaves_no_plateau(tmp_path: Path) -> None:
    silent = run_id("lora-r1", "search", 2e-4, 0)
    sweep = load(write_synthetic_experiment(tmp_path / "q", defects=Defects(no_signal=[silent])))
    summary = search_summary(sweep)

    assert set(summary.optima) == {"full", "lora-r8"}
    curve = rate_figure(sweep, summary.optima).curves[1]
    assert curve.means[0][1].n == 2 and curve.means[0][1].interval is None
    assert curve.plateau is None


def test_an_arm_with_a_missing_run_has_no_optimum_yet(tmp_path: Path) -> None:
    # A whole seed is missing: what is there looks like a full table of two seeds.
    gone = [run_id("full", "search", rate, 2) for rate in SYNTHETIC_ARMS["full"].learning_rates]
    sweep = load(write_synthetic_experiment(tmp_path / "q", defects=Defects(missing=gone)))

    assert set(search_summary(sweep).optima) == {"lora-r1", "lora-r8"}


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


def test_ranks_hold_report_seeds_only(sweep: Sweep) -> None:
    data = rank_figure(sweep)

    assert [row.arm.name for row in data.full] == ["full"]
    assert [row.arm.rank for row in data.lora] == [1, 8]
    assert [row.estimate.point for row in data.lora] == pytest.approx([0.485, 0.505])
    assert data.full[0].estimate.point == pytest.approx(0.495)
    half = 2.91999 * 0.004 / math.sqrt(3)
    assert data.full[0].estimate.low == pytest.approx(0.495 - half, abs=1e-6)
    assert [p.seed for p in data.lora[0].points] == [100, 101, 102]
    assert [p.x for p in data.lora[1].points] == [8, 8, 8]


def test_learning_curves_count_prompts_and_average_seeds(sweep: Sweep) -> None:
    data = learning_figure(sweep)

    assert data.phase == "report"
    full = data.curves[0]
    assert (full.arm.name, full.learning_rate) == ("full", 2e-4)
    assert full.prompts == tuple(range(0, 1601, 160))  # 8 prompts a step, every 20 steps
    assert full.mean[0] == pytest.approx(REPORT_BASE)
    assert full.mean[-1] == pytest.approx(0.495)
    rise = 0.495 - REPORT_BASE
    assert full.mean[1] == pytest.approx(REPORT_BASE + rise / 7)  # a straight rise to step 140
    assert [seed.seed for seed in full.seeds] == [100, 101, 102]


def test_a_diverged_run_pulls_the_mean_curve_down_from_its_end_on(tmp_path: Path) -> None:
    lost = run_id("full", "report", 2e-4, 100)
    sweep = load(write_synthetic_experiment(tmp_path / "q", defects=Defects(diverged=[lost])))

    curve = learning_figure(sweep).curves[0]
    last = {seed.seed: seed.prompts[-1] for seed in curve.seeds}
    assert last == {100: 800, 101: 1600, 102: 1600}
    alive = [seed.scores[-1] for seed in curve.seeds if not seed.diverged]
    assert curve.mean[-1] == pytest.approx((0.0 + sum(alive)) / 3)


def test_learning_curves_fall_back_to_search_seeds_at_the_best_rate(tmp_path: Path) -> None:
    data = learning_figure(load(write_synthetic_experiment(tmp_path / "q", report_seeds=())))

    assert data.phase == "search"
    assert [seed.seed for seed in data.curves[0].seeds] == [0, 1, 2]
    assert data.curves[0].mean[-1] == pytest.approx(0.50)


def test_ten_times_is_ten_times_the_best_rate_of_full(sweep: Sweep) -> None:
    data = optimum_figure(sweep, search_summary(sweep).optima)

    ramp, cliff = 6e-5 * (2e-4 / 6e-5) ** 0.5, 6e-4 * (2e-3 / 6e-4) ** 0.1
    middle = math.sqrt(ramp * cliff)
    assert data.ten_times == pytest.approx(10 * middle)
    assert data.window == pytest.approx((5 * middle, 20 * middle))
    assert [arm.name for arm, _ in data.rows] == ["full", "lora-r1", "lora-r8"]


@pytest.mark.parametrize(
    "full",
    [
        {"full": SyntheticArm(None, FULL_GRID, (0.20, 0.34, 0.46, 0.48, 0.50), 0.495)},  # an edge
        dict.fromkeys(("full", "full-b64"), SYNTHETIC_ARMS["full"]),  # two baselines
    ],
)
def test_ten_times_needs_one_baseline_with_an_interval(
    tmp_path: Path, full: dict[str, SyntheticArm]
) -> None:
    both = {**full, "lora-r8": SYNTHETIC_ARMS["lora-r8"]}
    sweep = load(write_synthetic_experiment(tmp_path / "q", arms=both))

    data = optimum_figure(sweep, search_summary(sweep).optima)
    assert data.ten_times is None and data.window is None


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
    draw_rates(rate_figure(sweep, {}), ax)

    legend = ax.get_legend()
    assert legend is not None
    assert said in [text.get_text() for text in legend.get_texts()]


def test_runs_that_agree_exactly_have_no_interval_in_any_figure(tmp_path: Path) -> None:
    everything = [
        run_id("full", phase, rate, seed)
        for phase, seeds in (("search", (0, 1, 2)), ("report", (100, 101, 102)))
        for rate in FULL_GRID
        for seed in seeds
    ]
    path = write_synthetic_experiment(tmp_path / "q", defects=Defects(diverged=everything))
    sweep = load(path)

    means = [mean for _, mean in rate_figure(sweep, {}).curves[0].means]
    assert [(mean.point, mean.interval) for mean in means] == [(0.0, None)] * 5
    assert rank_figure(sweep).full[0].estimate.interval is None


def test_report_runs_at_another_rate_are_in_no_figure(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q")
    (path / "selection" / "full.json").write_text('{"learning_rate": 6e-5}')

    sweep = load(path)
    assert rank_figure(sweep).full == ()
    assert [curve.arm.name for curve in learning_figure(sweep).curves] == ["lora-r1", "lora-r8"]


def test_without_full_there_is_no_ten_times(tmp_path: Path) -> None:
    only = {"lora-r8": SYNTHETIC_ARMS["lora-r8"]}
    sweep = load(write_synthetic_experiment(tmp_path / "q", arms=only))

    data = optimum_figure(sweep, search_summary(sweep).optima)
    assert data.ten_times is None and data.window is None


def test_an_arm_looks_the_same_in_every_figure_and_no_two_look_alike(sweep: Sweep) -> None:
    style = looks(arms(sweep))

    assert style["full"].colour == BLACK
    assert len(set(style.values())) == 3
    for data in (rate_figure(sweep, {}), rank_figure(sweep), learning_figure(sweep)):
        assert looks(data.arms) == style


def test_every_figure_draws_and_names_model_task_and_seeds(sweep: Sweep) -> None:
    optima = search_summary(sweep).optima
    drawings = [
        lambda ax: draw_rates(rate_figure(sweep, optima), ax),
        lambda ax: draw_ranks(rank_figure(sweep), ax),
        lambda ax: draw_learning(learning_figure(sweep), ax),
        lambda ax: draw_optima(optimum_figure(sweep, optima), ax),
    ]
    for draw in drawings:
        ax = Figure().subplots()
        draw(ax)
        shown = " ".join(text.get_text() for text in ax.texts)
        assert "lab64, arithmetic (sum3); 3" in shown and "seeds per" in shown
        assert ax.get_xlabel()


def test_text_from_configs_is_never_mathematics(tmp_path: Path) -> None:
    sweep = load(write_synthetic_experiment(tmp_path / "q", model=r"$\frac{"))

    svg = figure(lambda ax: draw_ranks(rank_figure(sweep), ax), tmp_path, "ranks")
    assert svg.startswith(b"<?xml")


def test_the_same_numbers_give_the_same_files(sweep: Sweep, tmp_path: Path) -> None:
    data = rank_figure(sweep)
    first = figure(lambda ax: draw_ranks(data, ax), tmp_path, "a")
    second = figure(lambda ax: draw_ranks(data, ax), tmp_path, "b")

    assert first == second
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()
