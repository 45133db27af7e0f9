"""Arms are matched by what they are; names break ties only."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.comparing.facts import ArmFacts, arm_facts
from analysis.comparing.matching import match
from tests.unit.analysis.comparing.side_by_side import arm, sweep


def facts(names: list[str], **options: Any) -> tuple[ArmFacts, ...]:
    return arm_facts(sweep("x", {name: arm(name) for name in names}, **options))


def labels(a: tuple[ArmFacts, ...], b: tuple[ArmFacts, ...]) -> list[str]:
    return [pair.label for pair in match(a, b).pairs]


def targets(**by_arm: Any) -> dict[str, Any]:
    return {name.replace("_", "-"): {"target_modules": value} for name, value in by_arm.items()}


def batch(size: int | None) -> dict[str, Any]:
    return {"objective": {"name": "grpo", "prompts_per_step": size}}


def test_names_do_not_matter_method_and_rank_do() -> None:
    found = match(
        facts(["full", "lora-r1-x", "lora-r8"]), facts(["full-ft", "lora-r1", "lora-r16"])
    )
    assert [pair.label for pair in found.pairs] == ["full = full-ft", "lora-r1-x = lora-r1"]
    assert [f.name for f in found.only_a] == ["lora-r8"]
    assert [f.name for f in found.only_b] == ["lora-r16"]


def test_target_modules_keep_arms_apart_where_an_experiment_has_several() -> None:
    names = ["full", "lora-r8-attn", "lora-r8-mlp"]
    a = facts(names, methods=targets(lora_r8_attn="attention", lora_r8_mlp="mlp"))
    b = facts(names, methods=targets(lora_r8_attn="mlp", lora_r8_mlp="attention"))
    assert labels(a, b) == ["full", "lora-r8-attn = lora-r8-mlp", "lora-r8-mlp = lora-r8-attn"]


def test_a_list_of_modules_matches_in_any_order() -> None:
    names = ["lora-r8-a", "lora-r8-b"]
    a = facts(names, methods=targets(lora_r8_a=["q_proj", "v_proj"], lora_r8_b="all"))
    b = facts(names, methods=targets(lora_r8_a="all", lora_r8_b=["v_proj", "q_proj"]))
    assert labels(a, b) == ["lora-r8-a = lora-r8-b", "lora-r8-b = lora-r8-a"]


def test_a_batch_that_all_arms_share_is_a_setting_of_the_experiment() -> None:
    a = facts(["full", "lora-r8"], configs={n: batch(8) for n in ("full", "lora-r8")})
    b = facts(["full", "lora-r8"], configs={n: batch(64) for n in ("full", "lora-r8")})
    assert labels(a, b) == ["full", "lora-r8"]


def test_batches_keep_arms_apart_where_an_experiment_crosses_them() -> None:
    crossed = {"lora-r8-s": batch(8), "lora-r8-l": batch(64)}
    a = facts(list(crossed), configs=crossed)
    b = facts(["lora-r8"], configs={"lora-r8": batch(64)})
    assert labels(a, b) == ["lora-r8-l = lora-r8"]


def test_what_one_side_does_not_state_fits_anything_and_two_partners_are_none() -> None:
    a = facts(["lora-r8"], configs={"lora-r8": batch(None)})
    b = facts(["lora-r8-s", "lora-r8-l"], configs={"lora-r8-s": batch(8), "lora-r8-l": batch(64)})
    found = match(a, b)
    assert found.pairs == ()
    assert found.ambiguous == (("lora-r8", "lora-r8-l", "lora-r8-s"),)
    assert labels(a, b[:1]) == ["lora-r8 = lora-r8-l"]


def test_the_nearest_config_wins_then_the_name() -> None:
    models = {
        "full-fp32": {"model": {"name": "m", "dtype": "float32"}},
        "full-bf16": {"model": {"name": "m", "dtype": "bfloat16"}},
    }
    swapped = {"full-fp32": models["full-bf16"], "full-bf16": models["full-fp32"]}
    by_config = labels(facts(list(models), configs=models), facts(list(models), configs=swapped))
    assert by_config == ["full-bf16 = full-fp32", "full-fp32 = full-bf16"]
    alike = facts(["lora-r8-x", "lora-r8-y"])
    assert labels(alike, alike) == ["lora-r8-x", "lora-r8-y"]


@pytest.mark.parametrize("rule", [("constant", 32.0, 32.0), ("2r", 32.0, 16.0), ("sqrt", 32, 90.5)])
def test_alpha_by_rule(rule: tuple[str, float, float]) -> None:
    name, constant, alpha = rule
    methods = {"lora-r8": {"alpha_rule": name, "lora_alpha": constant}}
    assert facts(["lora-r8"], methods=methods)[0].alpha == pytest.approx(alpha, abs=0.05)
