from __future__ import annotations

from matplotlib.figure import Figure

from analysis.estimates.search import search_summary
from analysis.figures.ablation_path import FIGURE, ablation_figure
from analysis.figures.report import draw_figure
from analysis.figures.style import GREY
from analysis.reading.sweep import Sweep
from study.config import AblateConfig, SeedsConfig
from study.plan.ablate import grow
from tests.unit.analysis.ablated_sweeps import finished, gaussian, sweep_of
from tests.unit.analysis.figures.drawn_sweeps import ranks
from tests.unit.analysis.figures.drawn_sweeps import sweep_of as drawn_sweep
from tests.unit.plan.ablations import linear, no_noise, planned, record, scored

SEEDS = SeedsConfig(search=[0, 1, 2], report=[100, 101, 102, 103, 104])
ROWS = ["rank\n1 to 2", "steps\n3 to 6", "prompts per step\n4 to 8", "all together"]


def labels(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].get_yticklabels()]


def missing(sweep: Sweep) -> str:
    search = search_summary(sweep)
    return FIGURE.missing(sweep, search, FIGURE.data(sweep, search))


def caption(sweep: Sweep) -> str:
    return FIGURE.caption(ablation_figure(sweep, search_summary(sweep)))


def test_a_path_has_a_row_for_each_change_with_its_values() -> None:
    figure = draw_figure(finished(linear, gaussian(0.05), planned(seeds=SEEDS)), "ablation")
    assert labels(figure) == ROWS
    axes = figure.axes[0]
    assert axes.get_title(loc="left") == "From default to tuned, in the order of the path"
    marks = [line for line in axes.get_lines() if line.get_marker() in ("o", "D")]
    gains = [float(line.get_xdata()[0]) for line in marks if line.get_mfc() != "none"]  # type: ignore[index]
    assert [round(gain) for gain in gains] == [10, 1, 0, 11]


def test_undecided_changes_are_grey() -> None:
    figure = draw_figure(finished(linear, gaussian(0.5), planned(seeds=SEEDS)), "ablation")
    rows = labels(figure)

    def colours(row: str) -> set[str]:
        lines = figure.axes[0].get_lines()
        mine = [line for line in lines if set(line.get_ydata()) == {rows.index(row)}]
        return {str(line.get_color()) for line in mine if line.get_mfc() != "none"}

    assert colours("prompts per step\n4 to 8") == {GREY}
    assert GREY not in colours("rank\n1 to 2")


def test_changes_one_at_a_time_have_no_order_and_no_hollow_marks() -> None:
    alone = AblateConfig(source="default", target="tuned", path=False)
    sweep = finished(linear, gaussian(0.05), planned(seeds=SEEDS, ablate=alone))
    figure = draw_figure(sweep, "ablation")
    assert labels(figure) == ROWS
    assert figure.axes[0].get_title(loc="left") == "From default to tuned, one at a time"
    assert all(line.get_mfc() != "none" for line in figure.axes[0].get_lines())
    assert caption(sweep).startswith("Each factor changed alone in default.")


def test_a_caption_says_what_is_open() -> None:
    sweep = finished(lambda a, b, c: 0.0, gaussian(1.0, 1), planned(seeds=SEEDS))
    assert "The search seeds cannot tell the order apart: " in caption(sweep)
    assert "has not reached its end" not in caption(sweep)


def test_there_is_none_without_report_scores_and_none_without_an_ablation() -> None:
    plan = planned()
    assert missing(sweep_of(plan, {}, {})).startswith("No change has a score on report seeds")
    silent = planned(seeds=SeedsConfig(search=[0, 1], report=[]))
    assert missing(finished(linear, no_noise, silent)).startswith("There are no report seeds")
    records = {run.run_id: record(plan, run, scored(linear)(plan, run)) for run in plan.runs}
    plan, fresh = grow(plan, records, {})
    begun = sweep_of(plan, records, {choice.arm: choice for choice in fresh})
    assert missing(begun)
    assert caption(begun).endswith("The path has not reached its end.")
    assert FIGURE.lacks(drawn_sweep(ranks(8))) == "an ablation (experiment.ablate)"
