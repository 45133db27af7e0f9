"""Best learning rates, by arm and against rank: the numbers, worked by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from analysis.estimates.search import search_summary
from analysis.figures import optima, rate_by_rank
from analysis.figures.optima import OptimumFigure, optimum_figure
from analysis.figures.rate_by_rank import RateByRankFigure, rate_by_rank_figure
from analysis.reading.load import load
from analysis.reading.sweep import Sweep
from tests.doubles import FULL_GRID, SYNTHETIC_ARMS, SyntheticArm, write_synthetic_experiment
from tests.unit.analysis.figures.drawn_sweeps import Drawn, ranks, sweep_of, widths

# Where SHAPE crosses its threshold of 0.42 on its grid: half-way from 0.34 to 0.50 and a tenth of
# the way from 0.46 to 0.06, on the log axis. LR* is the middle.
MIDDLE = math.sqrt(6e-5 * (2e-4 / 6e-5) ** 0.5 * 6e-4 * (2e-3 / 6e-4) ** 0.1)


def numbers(sweep: Sweep) -> OptimumFigure:
    return optimum_figure(sweep, search_summary(sweep))


def by_rank(sweep: Sweep) -> RateByRankFigure:
    return rate_by_rank_figure(sweep, search_summary(sweep))


def test_ten_times_is_ten_times_the_best_rate_of_full(sweep: Sweep) -> None:
    data = numbers(sweep)

    assert data.ten_times == (("", pytest.approx(10 * MIDDLE)),)
    assert [arm.name for arm, _ in data.rows] == ["full", "lora-r1", "lora-r8"]


@pytest.mark.parametrize(
    "full",
    [
        {"full": SyntheticArm(None, FULL_GRID, (0.20, 0.34, 0.46, 0.48, 0.50), 0.495)},  # an edge
        dict.fromkeys(("full", "full-b64"), SYNTHETIC_ARMS["full"]),  # two baselines
        {},  # none
    ],
)
def test_ten_times_needs_one_baseline_with_an_interval(
    tmp_path: Path, full: dict[str, SyntheticArm]
) -> None:
    both = {**full, "lora-r8": SYNTHETIC_ARMS["lora-r8"]}
    data = numbers(load(write_synthetic_experiment(tmp_path / "q", arms=both)))

    assert data.ten_times == ()


def test_every_setting_has_ten_times_its_own_full() -> None:
    arms = {**widths((32, 64)), "lora-r8-other": Drawn(8, model="other")}

    # Both FullFT arms have the same curve; the third model has none.
    expected = pytest.approx(10 * MIDDLE)
    assert numbers(sweep_of(arms)).ten_times == (("lab32", expected), ("lab64", expected))


def test_rows_stand_setting_by_setting() -> None:
    names = [arm.name for arm, _ in numbers(sweep_of(widths((32, 64)))).rows]

    assert names == ["full-lab32", "lora-r8-lab32", "full-lab64", "lora-r8-lab64"]


def test_the_band_is_a_factor_of_two_about_the_ranks_from_four_on() -> None:
    arms = {
        "full": Drawn(),
        "lora-r1": Drawn(1, shift=2),
        "lora-r4": Drawn(4, shift=8),
        "lora-r16": Drawn(16, shift=18),
    }
    data = by_rank(sweep_of(arms))

    assert [arm.name for arm, _ in data.rows] == ["full", "lora-r1", "lora-r4", "lora-r16"]
    # Ranks 4 and 16 want 8 and 18 times MIDDLE; their geometric mean is 12 times.
    ((setting, low, high),) = data.bands
    assert setting == ""
    assert low == pytest.approx(12 * MIDDLE / math.sqrt(2), rel=1e-5)
    assert high == pytest.approx(12 * MIDDLE * math.sqrt(2), rel=1e-5)


def test_bounds_are_drawn_and_stay_out_of_the_band() -> None:
    rising = (0.20, 0.30, 0.40, 0.48, 0.50)
    arms = {"lora-r4": Drawn(4), "lora-r8": Drawn(8, scores=rising), "lora-r16": Drawn(16)}
    data = by_rank(sweep_of(arms))

    assert "edge_high" in {arm.name: found.flags for arm, found in data.rows}["lora-r8"]
    ((_, low, high),) = data.bands
    assert math.sqrt(low * high) == pytest.approx(10 * MIDDLE, rel=1e-5)


def test_one_rank_from_four_on_makes_no_band() -> None:
    assert by_rank(sweep_of(ranks(1, 8))).bands == ()


def test_a_flat_arm_has_no_mark() -> None:
    arms = {**ranks(1), "lora-r8": Drawn(8, scores=(0.18, 0.181, 0.18, 0.181, 0.18))}

    assert [arm.name for arm, _ in by_rank(sweep_of(arms)).rows] == ["full", "lora-r1"]


def test_captions_say_which_of_the_two_best_rates_is_drawn() -> None:
    evaluated, never = sweep_of(ranks(4, 16)), sweep_of(ranks(4, 16), base=None)
    for figure in (optima, rate_by_rank):
        spec, read = figure.FIGURE, figure.FIGURE.data
        said = spec.caption(read(evaluated, search_summary(evaluated)))
        assert "LR* is the middle of an arm's plateau" in said and "parabola" not in said
        said = spec.caption(read(never, search_summary(never)))
        assert "vertex of a parabola" in said and "LR* is the middle" not in said
