"""Arms sorted into panels (settings) and series (methods)."""

from __future__ import annotations

import pytest

from analysis.figures.cast import BATCH, cast, natural
from tests.unit.analysis.figures.drawn_sweeps import (
    Drawn,
    batches,
    layer_sets,
    ranks,
    sweep_of,
    widths,
)


def test_arms_of_one_setting_keep_their_names_in_one_panel() -> None:
    found = cast(sweep_of(layer_sets()))

    assert found.settings == ("",)
    assert found.series[0] == "full" and len(found.series) == 7
    assert "lora-r8-attention" in found.series


def test_every_model_gets_a_panel_and_a_method_looks_the_same_in_all() -> None:
    found = cast(sweep_of(widths()))

    assert found.settings == ("lab32", "lab64", "lab128", "lab256")
    assert found.series == ("FullFT", "LoRA r=8")
    assert found.looks["lora-r8-lab32"] == found.looks["lora-r8-lab256"]
    assert found.subject == "4 models, arithmetic (sum3)"


def test_a_batch_is_a_setting_that_a_figure_may_leave_out() -> None:
    found = cast(sweep_of(batches()))

    assert found.settings == (
        "4 prompts per step",
        "16 prompts per step",
        "64 prompts per step",
    )
    assert found.series == ("FullFT", "LoRA r=1", "LoRA r=8")
    assert found.settings_without([BATCH]) == ("",)


def test_methods_that_differ_in_more_than_rank_say_so() -> None:
    arms = {}
    for model in ("a", "b"):
        for targets in ("all", "mlp"):
            arms[f"{targets}-{model}"] = Drawn(8, targets=targets, model=model)

    assert cast(sweep_of(arms)).series == ("LoRA r=8, all", "LoRA r=8, mlp")


def test_two_equal_arms_of_a_setting_go_by_their_names() -> None:
    arms = {"x": Drawn(8, model="a"), "y": Drawn(8, model="a"), "z": Drawn(8, model="b")}

    assert cast(sweep_of(arms)).series == ("x", "y", "LoRA r=8")


def test_vendors_are_left_out_where_names_stay_apart() -> None:
    apart = {"x": Drawn(8, model="one/Base-8B"), "y": Drawn(8, model="two/Base-32B")}
    equal = {"x": Drawn(8, model="one/Base"), "y": Drawn(8, model="two/Base")}

    assert cast(sweep_of(apart)).settings == ("Base-8B", "Base-32B")
    assert cast(sweep_of(equal)).settings == ("one/Base", "two/Base")


def test_too_many_arms_for_one_panel_are_split() -> None:
    found = cast(sweep_of({f"lora-r{rank}": Drawn(rank) for rank in range(1, 41)}))

    assert found.settings == ("arms 1 to 16", "arms 17 to 32", "arms 33 to 40")
    assert len(set(found.looks.values())) == 40


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "held-out accuracy, sampled"),
        ({"kind": "imported"}, "held-out accuracy"),
        ({"metric": "test_nll", "direction": "minimize"}, "test NLL (lower is better)"),
        ({"metric": "eval/pass_at_8"}, "eval pass at 8"),
    ],
)
def test_the_score_is_called_by_its_metric(settings: dict[str, str], said: str) -> None:
    assert cast(sweep_of(ranks(1), **settings)).score_label == said  # type: ignore[arg-type]


def test_names_are_sorted_as_numbers() -> None:
    assert sorted(["lab128", "lab64", "b", "lab256"], key=natural) == [
        "b",
        "lab64",
        "lab128",
        "lab256",
    ]
