"""Learning-rate ratios against training length and width: the numbers, worked by hand."""

from __future__ import annotations

import itertools
import math

import pytest

from analysis.estimates.search import search_summary
from analysis.figures import ratio_by_length, ratio_by_width
from analysis.figures.ratio_by_length import LengthFigure, length_figure, lengths, spread
from analysis.figures.ratio_by_width import WidthFigure, width_figure
from analysis.reading.sweep import Sweep
from tests.unit.analysis.figures.drawn_sweeps import Drawn, ranks, sweep_of, widths


def by_length(sweep: Sweep) -> LengthFigure:
    return length_figure(sweep, search_summary(sweep))


def by_width(sweep: Sweep) -> WidthFigure:
    return width_figure(sweep, search_summary(sweep))


def test_a_shifted_copy_has_its_shift_as_ratio_at_every_length() -> None:
    arms = {"full": Drawn(batch=4), "lora-r8": Drawn(8, shift=6, batch=4)}
    (curve,) = by_length(sweep_of(arms)).curves

    assert curve.arm.name == "lora-r8"
    assert curve.lengths == (40, 80, 160, 320, 640)  # 4 prompts at steps 10, 20, 40, 80, 160
    assert [ratio.point for ratio in curve.ratios] == pytest.approx([6] * 5, rel=1e-4)
    assert all(ratio.interval and ratio.n == 3 for ratio in curve.ratios)


def test_without_a_bracketed_plateau_there_is_no_ratio_at_that_length() -> None:
    rising = (0.20, 0.30, 0.40, 0.48, 0.50)
    sweep = sweep_of({"full": Drawn(), "lora-r8": Drawn(8, scores=rising)})
    data = by_length(sweep)

    assert data.curves == ()
    said = ratio_by_length.FIGURE.missing(sweep, search_summary(sweep), data)
    assert said.startswith("At no evaluation do a LoRA arm and its FullFT arm both have a plateau")


def test_many_evaluations_are_thinned_evenly_on_the_log_axis() -> None:
    assert spread([10, 20], 4) == [10, 20]
    kept = spread(list(range(1, 1001)), 10)
    assert (kept[0], kept[-1], len(kept)) == (1, 1000, 10)
    steps = [math.log10(b / a) for a, b in itertools.pairwise(kept)]
    assert all(0.2 < step < 0.45 for step in steps)  # a third of a decade each


@pytest.mark.parametrize(("arms", "drawn"), [(0, 10), (1, 10), (4, 10), (8, 5), (30, 4)])
def test_many_arms_are_drawn_at_fewer_lengths(arms: int, drawn: int) -> None:
    assert lengths(arms) == drawn


def test_ratios_by_width_are_those_of_the_pairs() -> None:
    data = by_width(sweep_of(widths((32, 128))))

    # The grids are shifted by 10 sqrt(width / 64).
    found = {point.width: point.ratio.centre.point for point in data.points}
    assert found == {
        32: pytest.approx(10 / math.sqrt(2), rel=1e-4),
        128: pytest.approx(10 * math.sqrt(2), rel=1e-4),
    }
    assert data.centre == pytest.approx((64, 10), rel=1e-4)


@pytest.mark.parametrize(
    ("arms", "records", "said"),
    [
        (ranks(8), True, ratio_by_width.LACKS),
        ({"a": Drawn(8, hidden=32, model="a"), "b": Drawn(8, model="b")}, True,
         ratio_by_width.LACKS),
        (widths(), True, ""),
        (widths(), False, ratio_by_width.LACKS),
    ],
)  # fmt: skip
def test_one_width_or_one_method_is_no_question_of_width(
    arms: dict[str, Drawn], records: bool, said: str
) -> None:
    assert ratio_by_width.FIGURE.lacks(sweep_of(arms, records=records)) == said


def test_widths_without_a_record_yet_are_waited_for() -> None:
    sweep = sweep_of(widths((32, 64)))
    everything = list(sweep.runs["run_id"])
    empty = sweep_of(widths((32, 64)), missing=everything)

    assert ratio_by_width.FIGURE.lacks(empty) == ""
    said = ratio_by_width.FIGURE.missing(empty, search_summary(empty), by_width(empty))
    assert said.startswith("Fewer than two widths have a ratio")


def test_a_pair_that_no_claim_may_rest_on_is_named_in_the_caption() -> None:
    sweep = sweep_of(ranks(8))
    assert by_length(sweep).not_judged == ""
    for i in sweep.runs.index[sweep.runs["arm"] == "full"]:
        sweep.runs.at[i, "dtypes"] = dict.fromkeys(("base", "adapter", "optimizer"), "bfloat16")

    said = ratio_by_length.FIGURE.caption(by_length(sweep))
    assert "No claim is judged on it as it stands: Precision differs between the arms" in said
