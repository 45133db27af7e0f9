"""Rows of a foreign sweep -> arms: names, configs and factors."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.__main__ import main
from analysis.reading.arms import arms
from tests.unit.analysis.reading.foreign import imported, reasons, write_csv


def table(*columns: str, rows: list[str]) -> str:
    """CSV text; every row gets a learning rate and a score of its own."""
    head = ",".join(("method", "lora_rank", *columns, "learning_rate", "score_final"))
    return "\n".join([head, *(f"{row},1e-{i + 2},0.{i + 1}" for i, row in enumerate(rows))])


def names(tmp_path: Path, text: str, *options: str) -> list[str]:
    return list(imported(tmp_path, text, *options).runs["arm"])


def test_arms_are_named_after_method_and_rank_and_ordered_full_first(tmp_path: Path) -> None:
    sweep = imported(tmp_path, table(rows=["lora,16", "lora,2", "full,"]))

    assert list(sweep.runs["arm"]) == ["lora-r16", "lora-r2", "full"]
    assert [arm.name for arm in arms(sweep)] == ["full", "lora-r2", "lora-r16"]
    assert sweep.plan["experiment"]["factors"] == ["method"]


def test_ranks_alone_are_the_factor_where_no_method_differs(tmp_path: Path) -> None:
    sweep = imported(tmp_path, table(rows=["lora,4", "lora,16"]))

    assert sweep.plan["experiment"]["factors"] == ["method.rank"]
    assert list(sweep.runs["factors"]) == [{"method.rank": 4}, {"method.rank": 16}]


def test_what_varies_ends_the_name_and_becomes_a_factor(tmp_path: Path) -> None:
    rows = ["full,,Qwen/Qwen3-8B,32", "full,,meta/Llama_3,32", "lora,8,Qwen/Qwen3-8B,64"]
    sweep = imported(tmp_path, table("model", "prompts_per_step", rows=rows))

    # The batch goes with the method within a model, so that it needs no name of its own.
    assert list(sweep.runs["arm"]) == ["full-qwen3-8b", "full-llama-3", "lora-r8-qwen3-8b"]
    assert sweep.plan["experiment"]["factors"] == ["method", "model.name"]
    config = sweep.plan["arms"]["full-llama-3"]["config"]
    assert config == {
        "method": {"name": "full"},
        "model": {"name": "meta/Llama_3"},
        "objective": {"prompts_per_step": 32},
    }


def test_a_model_is_named_though_the_rank_implies_it(tmp_path: Path) -> None:
    text = table("model", rows=["lora,4,org/one", "lora,16,org/two"])
    assert names(tmp_path, text) == ["lora-r4-one", "lora-r16-two"]


def test_what_belongs_to_lora_says_nothing_of_full_fine_tuning(tmp_path: Path) -> None:
    text = table("lora_alpha", "target_modules", rows=["full,8,32,all", "lora,8,32,all"])
    sweep = imported(tmp_path, text)

    assert list(sweep.runs["arm"]) == ["full", "lora-r8"]
    assert sweep.plan["arms"]["full"]["config"] == {"method": {"name": "full"}}
    for name, value in (("lora_rank", 8), ("lora_alpha", 32)):
        assert sweep.runs[name].isna().tolist() == [True, False]
        assert sweep.runs[name].iloc[1] == value
    assert list(sweep.runs["target_modules"]) == [[], ["all"]]


def test_full_fine_tuning_has_no_layer_set_to_be_named_after(tmp_path: Path) -> None:
    text = table("target_modules", rows=["full,,all", "lora,8,all", "lora,8,mlp"])
    assert names(tmp_path, text) == ["full", "lora-r8-all", "lora-r8-mlp"]


def test_the_batch_names_arms_that_differ_in_it_alone(tmp_path: Path) -> None:
    text = table("prompts_per_step", rows=["full,,32", "full,,128", "lora,8,32", "lora,8,128"])
    sweep = imported(tmp_path, text)

    assert list(sweep.runs["arm"]) == ["full-b32", "full-b128", "lora-r8-b32", "lora-r8-b128"]
    assert sweep.plan["experiment"]["factors"] == ["method", "objective.prompts_per_step"]


def test_alpha_that_goes_with_the_rank_is_no_arm_of_its_own(tmp_path: Path) -> None:
    text = table("lora_alpha", rows=["full,,", "lora,4,8", "lora,16,32"])
    assert names(tmp_path, text) == ["full", "lora-r4", "lora-r16"]


def test_alpha_that_varies_within_a_rank_is(tmp_path: Path) -> None:
    text = table("lora_alpha", rows=["lora,4,8", "lora,4,32.5"])
    assert names(tmp_path, text) == ["lora-r4-a8", "lora-r4-a32.5"]


def test_layer_sets(tmp_path: Path) -> None:
    text = table("target_modules", rows=["lora,4,q_proj v_proj", "lora,4,all"])
    sweep = imported(tmp_path, text)

    assert list(sweep.runs["arm"]) == ["lora-r4-q-proj-v-proj", "lora-r4-all"]
    assert list(sweep.runs["target_modules"]) == [["q_proj", "v_proj"], ["all"]]
    assert sweep.plan["experiment"]["factors"] == ["method.target_modules"]


def test_precision_that_goes_with_the_method_is_no_factor(tmp_path: Path) -> None:
    """Only full fine-tuning in bfloat16 is a confound, and a factor would excuse it."""
    text = table("precision", rows=["full,,bfloat16", "lora,8,float32"])
    sweep = imported(tmp_path, text, "--map", "dtypes.base=precision")

    assert list(sweep.runs["arm"]) == ["full", "lora-r8"]
    assert sweep.plan["experiment"]["factors"] == ["method"]
    assert list(sweep.runs["dtypes"]) == [{"base": "bfloat16"}, {"base": "float32"}]


def test_precision_that_is_crossed_with_the_method_is_a_factor(tmp_path: Path) -> None:
    rows = ["full,,bf16", "lora,8,fp32", "full,,fp32"]
    sweep = imported(tmp_path, table("p", rows=rows), "--map", "dtypes.base=p")

    assert list(sweep.runs["arm"]) == ["full-bf16", "lora-r8-fp32", "full-fp32"]
    assert sweep.plan["experiment"]["factors"] == ["method", "model.dtype"]


def test_own_factors(tmp_path: Path) -> None:
    text = table("sched", rows=["full,,cosine", "full,,constant"])
    sweep = imported(tmp_path, text, "--map", "factors.schedule=sched")

    assert list(sweep.runs["arm"]) == ["full-cosine", "full-constant"]
    assert sweep.plan["experiment"]["factors"] == ["factors.schedule"]


def test_values_that_shorten_to_one_name_stay_apart(tmp_path: Path) -> None:
    text = table("model", rows=["full,,a/Base", "full,,b/base", "full,,a/Base"])
    assert names(tmp_path, text) == ["full-base", "full-base-2", "full-base"]


def test_named_arms(tmp_path: Path) -> None:
    sweep = imported(tmp_path, table("arm", rows=["full,,mine", "lora,8,other", "lora,8,"]))

    assert list(sweep.runs["arm"]) == ["mine", "other"]
    assert reasons(sweep) == {"row-3": ("not comparable", "it names no arm")}


def test_an_empty_column_of_arms_names_none(tmp_path: Path) -> None:
    assert names(tmp_path, table("arm", rows=["full,,", "lora,8,"])) == ["full", "lora-r8"]


def test_a_named_arm_must_be_one_arm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_csv(tmp_path / "a.csv", table("arm", rows=["lora,4,mine", "lora,8,mine"]))

    assert main(["import", source, "--out", str(tmp_path / "out")]) == 2
    assert "mine has method.rank=4 and 8" in capsys.readouterr().err


def test_trainable_parameters_of_an_arm(tmp_path: Path) -> None:
    text = table("trainable_params", rows=["full,,1000", "full,,1000", "lora,8,16", "lora,8,17"])
    plan = imported(tmp_path, text).plan["arms"]

    assert plan["full"]["trainable_params"] == 1000
    assert "trainable_params" not in plan["lora-r8"]
