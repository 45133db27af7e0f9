"""The numbers of the tables, against values worked by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.estimates.search import search_summary
from analysis.estimates.stats import Estimate
from analysis.reading.load import load
from analysis.reading.sweep import Sweep
from analysis.reporting.cells import Repeat, cell_rows, repeats, status_rows
from analysis.reporting.page_tables import Column
from analysis.reporting.ranks import rank_ratios
from analysis.reporting.report import Report
from analysis.reporting.summary import summary
from analysis.reporting.tables import ALL_DIVERGED, BEST_OF_ONE, CROSS_FITTED, arm_rows
from tests.doubles import (
    BASE,
    SYNTHETIC_ARMS,
    Defects,
    run_id,
    write_synthetic_experiment,
)
from tests.unit.analysis.reporting.pages import ALL_RUNS, page
from tests.unit.analysis.simulated_sweeps import curve, experiment

RATES = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2)


def test_arms_csv_holds_the_numbers_worked_by_hand(finished: Report) -> None:
    table = pd.read_csv(finished.index.parent / "tables" / "arms.csv").set_index("arm")

    assert list(table.index) == ["full", "lora-r1", "lora-r8"]
    assert list(table["score"]) == pytest.approx([0.495, 0.485, 0.505])
    assert list(table["gain"]) == pytest.approx([0.295, 0.285, 0.305])
    assert list(table["greedy"]) == pytest.approx([0.595, 0.585, 0.605])
    # LoRA r1 - full by seed: offsets rotate by one, +0.004, +0.004, -0.008 around -0.01.
    half = 2.91999 * (0.000096 / 2 / 3) ** 0.5
    row = table.loc["lora-r1"]
    assert row["difference_to_full"] == pytest.approx(-0.01)
    assert row["difference_to_full_high"] == pytest.approx(-0.01 + half, abs=1e-6)
    assert list(table["selected_learning_rate"]) == [2e-4, 2e-3, 2e-3]
    assert list(table["trainable_params"]) == [131_712, 2_000, 16_000]
    assert table.loc["lora-r1", "ratio_to_full"] == pytest.approx(10, rel=0.03)
    assert list(table["cost_runs"]) == [18, 18, 18]


def test_the_best_evaluation_is_stored_and_not_shown(finished: Report) -> None:
    runs = pd.read_csv(finished.index.parent / "tables" / "runs.csv")

    assert "score_best" in runs.columns
    assert "0.545" not in page(finished).text  # 0.495 + 0.05, FullFT's best evaluation


def test_the_grid_table_counts_every_status(tmp_path: Path) -> None:
    defects = Defects(
        diverged=[run_id("full", "search", 2e-3, 0)],
        no_signal=[run_id("full", "search", 2e-5, 0)],
        missing=[run_id("full", "search", 2e-5, 1)],
    )
    sweep = load(write_synthetic_experiment(tmp_path / "q", defects=defects))

    first, *_, last = [row for row in cell_rows(sweep) if row.arm.name == "full"]
    counts = {status: n for status, n in first.statuses if n}
    assert counts == {"completed": 1, "no_signal": 1, "missing": 1}
    assert {status: n for status, n in last.statuses if n} == {"completed": 2, "diverged": 1}
    assert last.score is not None and last.score.point == pytest.approx(0.13 / 3)
    chosen = [(r.arm.name, r.learning_rate) for r in cell_rows(sweep) if r.chosen]
    assert chosen == [("full", 2e-4), ("lora-r1", 2e-3), ("lora-r8", 2e-3)]
    totals = {(r.arm.name, r.phase): sum(n for _, n in r.statuses) for r in status_rows(sweep)}
    assert totals["full", "search"] == 15 and totals["lora-r8", "report"] == 3


def test_a_score_without_report_seeds_is_labelled(tmp_path: Path) -> None:
    sweep = load(write_synthetic_experiment(tmp_path / "q", report_seeds=()))

    row = arm_rows(sweep, search_summary(sweep))[0]
    assert row.score_from == CROSS_FITTED
    assert row.base is not None and row.base.point == pytest.approx(BASE)
    assert row.gain is None and row.difference is None


@pytest.mark.parametrize(
    ("seeds", "source", "point"),
    # The best mean: 0.50 with the offset -0.01 of seed 0, and 0 of seed 1.
    [((0,), BEST_OF_ONE, 0.49), ((0, 1), "best of 2 on the search seeds, optimistic", 0.495)],
)
def test_few_search_seeds_give_their_best_without_an_interval(
    tmp_path: Path, seeds: tuple[int, ...], source: str, point: float
) -> None:
    path = write_synthetic_experiment(tmp_path / "q", search_seeds=seeds, report_seeds=())
    sweep = load(path)

    row = arm_rows(sweep, search_summary(sweep))[0]
    assert row.score_from == source
    assert row.score == Estimate(pytest.approx(point), None, None, len(seeds))


def test_equal_worst_values_are_no_precision(tmp_path: Path) -> None:
    sweep = load(write_synthetic_experiment(tmp_path / "q", defects=Defects(diverged=ALL_RUNS)))

    row = arm_rows(sweep, search_summary(sweep))[0]
    assert row.score is not None and (row.score.point, row.score.interval) == (0.0, None)
    assert row.score_from == ALL_DIVERGED


def simulated(curves: dict[str, list[list[float]]], **settings: Any) -> Sweep:
    """An in-memory experiment with the columns that the tables read besides the scores."""
    found = experiment(
        {name: curve(scores, RATES, arm=name) for name, scores in curves.items()}, **settings
    )
    costs = ("trainable_params", "total_params", "train_flops", "rollout_flops")
    empty = dict.fromkeys((*costs, "wall_time_s", "peak_memory_bytes", "score_greedy"), np.nan)
    runs = found.runs.assign(flags=[[]] * len(found.runs), **empty)
    return replace(found, runs=runs)


HUMP = [0.11, 0.2, 0.5, 0.6, 0.5, 0.2, 0.11]
SHIFTED = [0.11, 0.11, 0.2, 0.5, 0.6, 0.5, 0.2]


def seeds(scores: list[float]) -> list[list[float]]:
    return [[score + offset for score in scores] for offset in (-0.01, 0.0, 0.01)]


def test_lower_is_better_is_shown_as_stated_and_the_best_is_the_lowest() -> None:
    losses = [[1 - score for score in row] for row in seeds(HUMP)]
    sweep = simulated({"full": losses})
    sweep = replace(sweep, runs=sweep.runs.assign(direction="minimize"))

    (row,) = arm_rows(sweep, search_summary(sweep))
    # Each seed at the rate that the others choose, the fourth: 0.4 with offsets -0.01, 0, 0.01.
    assert row.score is not None and row.score.point == pytest.approx(0.4)
    low, high = row.score.interval or (0.0, 0.0)
    # sqrt(2) x t x SD / sqrt(3); SD = 0.01, t with 2 degrees of freedom at 95 % = 2.91999.
    assert (low, high) == pytest.approx((0.4 - 0.0238416, 0.4 + 0.0238416), abs=1e-6)
    assert row.choice is not None and row.choice.learning_rate == 3e-4
    one = simulated({"full": losses[:1]})
    one = replace(one, runs=one.runs.assign(direction="minimize"))
    (row,) = arm_rows(one, search_summary(one))
    assert row.score is not None and row.score.point == pytest.approx(0.41)


def test_runs_of_one_seed_count_as_one_and_their_spread_is_listed() -> None:
    sweep = simulated({"full": [HUMP]})
    again = sweep.runs[sweep.runs["learning_rate"] == 3e-4]
    again = again.assign(run_id="again", score_final=0.62)
    sweep = replace(sweep, runs=pd.concat([sweep.runs, again], ignore_index=True))

    found = repeats(sweep)
    assert found == [Repeat("full", "search", 3e-4, 0, (0.6, 0.62))]
    assert found[0].spread == pytest.approx(0.02)
    cell = next(row for row in cell_rows(sweep) if row.learning_rate == 3e-4)
    assert cell.score == Estimate(pytest.approx(0.61), None, None, 1)
    assert repeats(simulated({"full": [HUMP]})) == []


def test_rank_ratios_are_over_the_lowest_rank_from_four_up() -> None:
    ranks = {f"lora-r{rank}": seeds(HUMP) for rank in (1, 4, 16)}
    sweep = simulated({**ranks, "lora-r64": seeds(SHIFTED)})

    found = rank_ratios(sweep, search_summary(sweep))
    assert [(row.arm.name, row.reference.name) for row in found] == [
        ("lora-r16", "lora-r4"),
        ("lora-r64", "lora-r4"),
    ]
    equal, shifted = (row.ratio for row in found)
    assert equal is not None and equal.centre.point == pytest.approx(1)
    # The same curve one grid point up, that is a factor between 3 and 10 / 3.
    assert shifted is not None and 3 < shifted.centre.point < 10 / 3
    assert shifted.centre.interval is not None and found[1].obstacle == ""


def test_a_rank_ratio_at_the_end_of_a_grid_says_why_there_is_none() -> None:
    rising = [0.11, 0.12, 0.13, 0.2, 0.3, 0.5, 0.6]
    sweep = simulated({"lora-r4": seeds(HUMP), "lora-r16": seeds(rising), "lora-r64": [HUMP]})

    edge, few = rank_ratios(sweep, search_summary(sweep))
    assert edge.ratio is not None and np.isnan(edge.ratio.centre.point)
    assert "extend the grid upwards" in edge.obstacle
    assert few.obstacle == "fewer than 3 seeds: points, no interval, no verdict"


def test_ranks_are_compared_within_one_setting_only() -> None:
    curves = {f"lora-r{rank}-{m}": seeds(HUMP) for rank in (4, 8) for m in ("a", "b")}
    configs = {name: {"model": {"name": name[-1]}} for name in curves}
    sweep = simulated(curves, configs=configs)

    found = rank_ratios(sweep, search_summary(sweep))
    assert [(row.group, row.arm.name, row.reference.name) for row in found] == [
        ("a", "lora-r8-a", "lora-r4-a"),
        ("b", "lora-r8-b", "lora-r4-b"),
    ]
    assert [row.arm.name[-1] for row in arm_rows(sweep, search_summary(sweep))] == list("aabb")
    assert (
        "arms are compared within each only"
        in summary(sweep, arm_rows(sweep, search_summary(sweep)))[0]
    )


def test_a_column_that_says_nothing_is_seen_to() -> None:
    assert not Column("Gain", ("none", "-", "")).says_something
    assert Column("Gain", ("none", "0.1")).says_something
    assert Column("Score", ("none",), kept=True).says_something


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "Learning rates selected: full"),
        ({"report_seeds": ()}, "Learning rates of best mean: full"),
        ({"report_joined": False}, "Learning rates best so far: full"),
    ],
)
def test_rates_are_best_so_far_only_while_runs_are_missing(
    tmp_path: Path, settings: dict[str, Any], said: str
) -> None:
    sweep = load(write_synthetic_experiment(tmp_path / "q", **settings))

    assert summary(sweep, arm_rows(sweep, search_summary(sweep)))[-1].startswith(said)


def test_many_arms_are_summed_up(tmp_path: Path) -> None:
    many = {
        f"lora-r{rank}": replace(SYNTHETIC_ARMS["lora-r8"], rank=rank, report_mean=0.4 + rank / 100)
        for rank in (1, 2, 4, 8, 16)
    }
    arms = {"full": SYNTHETIC_ARMS["full"], **many}
    sweep = load(write_synthetic_experiment(tmp_path / "q", arms=arms))

    scores, rates = summary(sweep, arm_rows(sweep, search_summary(sweep)))
    assert scores.startswith("At its own learning rate, the lowest and the highest LoRA arm: ")
    assert "(lora-r1) scores 0.410" in scores and "(lora-r16) scores 0.560" in scores
    assert "lora-r4" not in scores
    assert rates.endswith("full 2e-4; lora-r1, lora-r2, lora-r4, lora-r8 and lora-r16 2e-3.")


def test_a_stale_selection_leaves_no_difference_in_the_tables(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q")
    (path / "selection" / "full.json").write_text('{"learning_rate": 6e-5}')
    sweep = load(path)

    full, lora, _ = arm_rows(sweep, search_summary(sweep))
    assert full.score_from == CROSS_FITTED  # its report runs are at another rate than it goes by
    assert (lora.difference, lora.difference_obstacle) == (None, "stale_selection")
    assert lora.ratio is not None  # the search seeds are not concerned
