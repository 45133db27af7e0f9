"""Which arms differ in named settings only, and which baseline an arm meets."""

from __future__ import annotations

from dataclasses import replace
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.claims import c03_ten_times
from analysis.claims.comparison import comparisons
from analysis.claims.groups import differing, matched, model_and_task, value
from analysis.estimates.curve import LrCurve
from analysis.reading.arms import Arm, arms
from analysis.reading.sweep import Sweep
from tests.unit.analysis.simulated_sweeps import curve, experiment, judged

SMALL = curve([[0.2, 0.5, 0.8, 0.5, 0.0]] * 3, (1e-5, 3e-5, 1e-4, 3e-4, 1e-3))
LARGE_BATCH = {"objective": {"name": "grpo", "learning_rate": 3e-4, "prompts_per_step": 64}}


def sweep(names: list[str], **settings: Any) -> Sweep:
    curves: dict[str, LrCurve] = {name: replace(SMALL, arm=name) for name in names}
    return experiment(curves, **settings)


def names(groups: list[tuple[Arm, ...]]) -> list[list[str]]:
    return [[arm.name for arm in group] for group in groups]


def test_arms_that_differ_in_the_key_alone_form_a_group() -> None:
    given = sweep(
        ["full", "lora-r1", "lora-r8", "lora-r1-b64", "lora-r8-b64"],
        configs={"lora-r1-b64": LARGE_BATCH, "lora-r8-b64": LARGE_BATCH},
    )
    assert names(matched(given, ("method.rank",))) == [
        ["lora-r1", "lora-r8"],
        ["lora-r1-b64", "lora-r8-b64"],
    ]
    assert names(matched(given, ("objective.prompts_per_step",))) == [
        ["lora-r1", "lora-r1-b64"],
        ["lora-r8", "lora-r8-b64"],
    ]
    both = ("method.rank", "objective.prompts_per_step")
    assert names(matched(given, both)) == [["lora-r1", "lora-r1-b64", "lora-r8", "lora-r8-b64"]]
    assert names(matched(given, both, lambda arm: arm.rank == 8)) == [["lora-r8", "lora-r8-b64"]]


def test_a_key_stands_for_everything_below_it() -> None:
    given = sweep(["full", "lora-r1", "lora-r8"])
    assert names(matched(given, ("method",))) == [["full", "lora-r1", "lora-r8"]]
    assert matched(given, ("method.alpha_rule",)) == []


def test_the_tuned_rate_the_seed_and_micro_batches_are_never_a_difference() -> None:
    own: dict[str, Any] = {
        "objective": {
            "name": "grpo",
            "learning_rate": 9e-9,
            "prompts_per_step": 8,
            "micro_batch_size": 2,
        },
        "seed": 7,
        "save": "none",
        "engine": {"name": "trl"},
    }
    given = sweep(["lora-r1", "lora-r8"], configs={"lora-r8": own})
    assert names(matched(given, ("method.rank",))) == [["lora-r1", "lora-r8"]]


def test_settings_of_an_arm_and_differences_of_a_group() -> None:
    given = sweep(["lora-r1", "lora-r8-b64"], configs={"lora-r8-b64": LARGE_BATCH})
    first, second = arms(given)
    assert value(given, second, "objective.prompts_per_step") == 64
    assert value(given, first, "method.rank") == 1
    assert value(given, first, "model.path") is None
    assert differing(given, (first, second)) == ("method.rank", "objective.prompts_per_step")
    assert model_and_task(given, first) == "lab64 on arithmetic (sum3)"


def test_an_arm_meets_the_baseline_of_its_precision_if_there_is_one() -> None:
    half = {"model": {"name": "lab64", "dtype": "bfloat16"}}
    configs = {"full-bf16": half, "lora-r8-bf16": half}
    given = sweep(["full-bf16", "full", "lora-r8", "lora-r8-bf16"], configs=configs)
    assert [pair.names for pair in comparisons(given)] == [
        ("lora-r8", "full"),
        ("lora-r8-bf16", "full-bf16"),
    ]
    given = sweep(["full-bf16", "lora-r8"], configs={"full-bf16": half})
    assert [pair.names for pair in comparisons(given)] == [("lora-r8", "full-bf16")]


def test_unknown_precisions_of_an_imported_sweep_are_no_difference() -> None:
    given = sweep(["full", "lora-r8"], kind="imported")
    unknown: list[Any] = [None if arm == "full" else {} for arm in given.runs["arm"]]
    given = replace(given, runs=given.runs.assign(dtypes=pd.Series(unknown, dtype=object)))
    (pair,) = comparisons(given)
    assert pair.obstacle is None
    (found,) = judged(c03_ten_times.check, given)
    assert "precision_unknown" in found.flags
    assert "In which precision the arms ran is not recorded" in found.reason
    known = judged(c03_ten_times.check, sweep(["full", "lora-r8"], kind="imported"))[0]
    assert "precision_unknown" not in known.flags


def test_fifty_arms_and_ten_thousand_runs_are_compared_in_a_moment() -> None:
    """Budget 1 s of processor time; about 0.1 s here."""
    ranks = [f"lora-r{rank}" for rank in range(1, 50)]
    rates = tuple(10.0 ** (np.arange(20) / 8 - 5))
    wide = curve(np.tile(np.linspace(0.2, 0.8, 20), (10, 1)).tolist(), rates)
    given = experiment({name: replace(wide, arm=name) for name in ["full", *ranks]})
    assert len(given.runs) == 10_000
    start = process_time()
    found = comparisons(given)
    spent = process_time() - start
    assert [pair.names for pair in found] == [(name, "full") for name in ranks]
    assert spent < 1.0, spent


@pytest.mark.parametrize("methods", [["full"], ["lora-r8"]])
def test_one_method_has_nothing_to_compare(methods: list[str]) -> None:
    assert comparisons(sweep(methods)) == []
