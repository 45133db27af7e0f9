"""Panels without data are left out, and the caption says which."""

from __future__ import annotations

import dataclasses

import pytest

from analysis.estimates.search import search_summary
from analysis.figures.report import figures
from analysis.reading.sweep import Sweep
from tests.unit.analysis.ablated_sweeps import finished, gaussian
from tests.unit.analysis.figures.drawn_sweeps import Drawn, layer_sets, sweep_of
from tests.unit.analysis.figures.test_drawing import drawn
from tests.unit.plan.ablations import linear

MODELS = {
    f"{name}-{model}": Drawn(rank, model=model)
    for model in ("lab64", "lab128", "lab256")
    for name, rank in (("full", None), ("lora-r4", 4), ("lora-r8", 8))
}
PANELLED = ("learning_rates", "ranks", "learning_curves", "learning_by_flops", "envelope",
            "rate_by_rank", "ratio_by_length", "pareto")  # fmt: skip


def sweep_without(*lost: str) -> Sweep:
    """Three models, but for the runs whose ids begin with one of these."""
    runs = sweep_of(MODELS).runs["run_id"]
    return sweep_of(MODELS, missing=[run for run in runs if run.startswith(lost)])


def of_model(*models: str) -> list[str]:
    return [name for name in MODELS if name.endswith(models)]


def shown(name: str, sweep: Sweep) -> tuple[list[str], str]:
    """Titles of the panels, and the caption."""
    spec = next(spec for spec in figures() if spec.name == name)
    search = search_summary(sweep)
    canvas = drawn(spec, sweep, search)
    assert canvas is not None
    titles = [ax.get_title() or ax.get_title("left") for ax in canvas.axes if ax.axison]
    assert all(ax.lines for ax in canvas.axes if ax.axison)
    return titles, spec.caption(spec.data(sweep, search))


@pytest.mark.parametrize("name", PANELLED)
def test_a_model_without_runs_has_no_panel(name: str) -> None:
    titles, caption = shown(name, sweep_without(*of_model("lab128")))
    assert {title.split(",")[0] for title in titles} == {"lab64", "lab256"}
    assert "Left out, with" in caption and "lab128." in caption


@pytest.mark.parametrize("name", PANELLED)
def test_the_only_panel_left_still_says_which_it_is(name: str) -> None:
    titles, caption = shown(name, sweep_without(*of_model("lab64", "lab128")))
    assert {title.split(",")[0] for title in titles} == {"lab256"}
    assert "lab64; lab128." in caption


def test_an_arm_without_a_score_is_named() -> None:
    _, caption = shown("ranks", sweep_without("lora-r4-lab64-report"))
    assert caption.endswith("Left out, without a score on report seeds: lora-r4-lab64.")


def test_nothing_is_said_where_nothing_is_left_out() -> None:
    assert not any("Left out" in shown(name, sweep_of(MODELS))[1] for name in PANELLED)


def test_a_model_without_a_best_rate_is_marked_as_such() -> None:
    spec = next(spec for spec in figures() if spec.name == "best_learning_rates")
    canvas = drawn(spec, sweep_without(*of_model("lab128")))
    assert canvas is not None
    labels = [text.get_text() for text in canvas.axes[0].get_yticklabels()]
    assert labels == ["lab64", "lab128\n(no LR*)", "lab256"]


def test_layers_that_no_arm_of_a_model_was_scored_with_have_no_panel() -> None:
    arms = {
        f"{name}-{model}": Drawn(arm.rank, targets=arm.targets, model=model)
        for model in ("lab64", "lab128")
        for name, arm in layer_sets((8,)).items()
    }
    runs = sweep_of(arms).runs["run_id"]
    lost = [run for run in runs if run.startswith("lora") and "lab128" in run]
    titles, caption = shown("layers", sweep_of(arms, missing=lost))
    assert titles == ["lab64, at equal rank", "lab64, at equal parameters"]
    assert caption.endswith("Left out, with nothing to show: lab128.")


def test_a_cost_that_nobody_recorded_has_no_panel() -> None:
    sweep = sweep_of({"full": Drawn(), "lora-r8": Drawn(8)})
    sweep.runs["train_flops"] = float("nan")
    titles, caption = shown("pareto", sweep)
    assert titles == ["against trainable parameters"]
    assert caption.endswith("Not recorded: training FLOPs of a run.")


def test_a_change_without_a_report_score_is_marked_as_such() -> None:
    spec = next(spec for spec in figures() if spec.name == "ablation")
    whole = finished(linear, gaussian(0.05))
    last = (whole.runs["phase"] == "report") & (whole.runs["arm"] == "tuned")
    canvas = drawn(spec, dataclasses.replace(whole, runs=whole.runs[~last]))
    assert canvas is not None
    labels = [text.get_text() for text in canvas.axes[0].get_yticklabels()]
    assert [label.endswith("\n(no score yet)") for label in labels] == [False, False, True, True]
