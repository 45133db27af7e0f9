"""Layer sets, batches and costs: the numbers, worked by hand."""

from __future__ import annotations

import pytest

from analysis.estimates.search import search_summary
from analysis.figures import batch, layers, pareto
from analysis.figures.batch import batch_figure
from analysis.figures.layers import layer_figure
from analysis.figures.pareto import COSTS, pareto_figure
from analysis.reading.sweep import Sweep
from tests.unit.analysis.figures.drawn_sweeps import Drawn, batches, layer_sets, ranks, sweep_of

PARAMS, FLOPS = (cost for _, cost in COSTS)


def costs(sweep: Sweep, setting: str = "") -> list[str]:
    data = pareto_figure(sweep, search_summary(sweep))
    return [row.arm.name for row in data.front(setting, PARAMS)]


def test_layer_sets_are_series_by_rank_with_their_parameters() -> None:
    sweep = sweep_of(layer_sets())
    data = layer_figure(sweep, search_summary(sweep))

    found = dict(data.series(""))
    assert list(found) == ["all", "attention", "mlp"]
    assert [row.arm.rank for row in found["mlp"]] == [1, 8]
    assert [row.trainable_params for row in found["mlp"]] == [2_000, 16_000]
    assert [row.estimate.point for row in found["attention"]] == pytest.approx([0.45, 0.52])
    assert [row.arm.name for row in data.full("")] == ["full"]


def test_layers_are_a_question_only_where_they_differ() -> None:
    assert layers.FIGURE.lacks(sweep_of(layer_sets())) == ""
    said = "LoRA arms that differ in method.target_modules"
    assert layers.FIGURE.lacks(sweep_of(ranks(1, 8))) == said
    other_model = {"a": Drawn(8), "b": Drawn(8, targets="mlp", model="b")}
    assert layers.FIGURE.lacks(sweep_of(other_model)) == said


def test_batches_are_read_from_the_arms() -> None:
    sweep = sweep_of(batches((4, 64)))
    data = batch_figure(sweep, search_summary(sweep))

    assert dict(data.batches)["lora-r8-b64"] == 64
    scores = {row.arm.name: row.estimate.point for row in data.scores.rows}
    assert scores["full-b64"] == pytest.approx(0.49)
    assert scores["lora-r8-b64"] == pytest.approx(0.478)


def test_a_batch_is_a_question_only_if_nothing_else_differs_with_it() -> None:
    assert batch.FIGURE.lacks(sweep_of(batches())) == ""
    other_model = {"a": Drawn(8), "b": Drawn(8, batch=64, model="b")}
    said = "arms that differ in objective.prompts_per_step alone"
    assert batch.FIGURE.lacks(sweep_of(other_model)) == said


def test_the_front_holds_what_no_cheaper_arm_equals() -> None:
    arms = {
        "full": Drawn(report=0.50, params=100_000),
        "lora-r1": Drawn(1, report=0.45, params=1_000),
        "lora-r2": Drawn(2, report=0.44, params=2_000),  # dearer and worse than rank 1
        "lora-r4": Drawn(4, report=0.52, params=4_000),
        "lora-r8": Drawn(8, report=0.52, params=8_000),  # dearer than rank 4, no better
    }
    assert costs(sweep_of(arms)) == ["lora-r1", "lora-r4"]


def test_where_lower_is_better_so_is_the_front() -> None:
    shape = (0.62, 0.55, 0.52, 0.54, 0.9)
    arms = {
        "full": Drawn(scores=shape, report=0.50, params=100_000),
        "lora-r1": Drawn(1, scores=shape, report=0.60, params=1_000),
        "lora-r2": Drawn(2, scores=shape, report=0.61, params=2_000),
    }
    sweep = sweep_of(arms, direction="minimize", metric="nll", base=0.8)
    assert costs(sweep) == ["lora-r1", "full"]


def test_flops_are_the_second_cost() -> None:
    sweep = sweep_of(ranks(1, 8))
    data = pareto_figure(sweep, search_summary(sweep))

    assert [FLOPS(row) for row in data.rows("", FLOPS)] == [2.01e12, 2.08e12, 3e12]


def test_costs_that_nobody_recorded_make_no_figure() -> None:
    said = "records of trainable parameters or training FLOPs"
    assert pareto.FIGURE.lacks(sweep_of(ranks(1, 8), records=False)) == said
    assert pareto.FIGURE.lacks(sweep_of({"full": Drawn()})) == "two or more arms"
    assert pareto.FIGURE.lacks(sweep_of(ranks(1))) == ""
