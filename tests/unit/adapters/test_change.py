"""Combined, merged and exported adapters, against PEFT and arithmetic."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

from study.adapters.change import combine, export, merge
from study.adapters.updates import matrices, summed
from study.config import ModelConfig
from study.lab.tokenizer import encode
from study.train.models import load_model
from tests.unit.adapters.stored_adapters import OTHER_TARGETS, named, write_adapter
from tests.unit.probes.stored_runs import LAB

IDS = torch.tensor([encode("12+34+56=")])


def logits(model: torch.nn.Module) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model.eval()(IDS).logits
    return found


def by_hand(parts: list[tuple[float, float, object]]) -> torch.nn.Module:
    """The base with the sum of updates in its weights."""
    model = load_model(LAB)
    with torch.no_grad():
        for target, update in summed(parts).items():
            model.get_submodule(target).weight += update.float()
    return model


def test_cat_is_the_weighted_sum_whatever_ranks_and_targets(tmp_path: Path) -> None:
    one = write_adapter(tmp_path / "a" / "one", 1, rank=2)
    two = write_adapter(tmp_path / "a" / "two", 2, rank=3, targets=OTHER_TARGETS)
    first, second = named(one=one, two=two)
    gap = combine([(1.0, first), (-0.5, second)], "cat", tmp_path / "both")
    assert gap < 1e-6
    loaded = PeftModel.from_pretrained(load_model(LAB), str(tmp_path / "both"))
    parts = [(1.0, first.scaling, matrices(first)), (-0.5, second.scaling, matrices(second))]
    torch.testing.assert_close(logits(loaded), logits(by_hand(parts)), rtol=1e-4, atol=1e-4)
    settings = json.loads((tmp_path / "both" / "adapter_config.json").read_text())
    assert settings["base_model_name_or_path"] == "lab32"
    assert sorted(p.name for p in (tmp_path / "both").iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]


def test_linear_is_no_sum_of_updates_and_says_so(tmp_path: Path) -> None:
    one, two = (write_adapter(tmp_path / "a" / f"r{seed}", seed) for seed in (1, 2))
    first, second = named(one=one, two=two)
    assert combine([(1.0, first), (1.0, second)], "linear", tmp_path / "both") > 0.1
    settings = json.loads((tmp_path / "both" / "adapter_config.json").read_text())
    assert settings["r"] == 2


def test_linear_needs_one_rank(tmp_path: Path) -> None:
    one, two = (write_adapter(tmp_path / "a" / f"r{rank}", 1, rank=rank) for rank in (1, 2))
    parts = [(1.0, own) for own in named(one=one, two=two)]
    with pytest.raises(ValueError, match=r"adapters of one rank, got \[1, 2\]; cat takes any"):
        combine(parts, "linear", tmp_path / "both")


def test_a_merged_model_is_base_and_adapter(tmp_path: Path) -> None:
    (own,) = named(one=write_adapter(tmp_path / "a" / "one", 1))
    done = merge([(1.0, own)], tmp_path / "merged")
    assert done.logits_gap < 1e-4 < done.logits_range
    assert done.kept == pytest.approx(1, abs=1e-4)
    merged = AutoModelForCausalLM.from_pretrained(str(tmp_path / "merged"))
    expected = by_hand([(1.0, own.scaling, matrices(own))])
    torch.testing.assert_close(logits(merged), logits(expected), rtol=1e-4, atol=1e-4)


def test_a_base_without_room_for_the_update_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own,) = named(one=write_adapter(tmp_path / "a" / "one", 1, scale=1e-6))
    half = ModelConfig(name="lab32", source="lab", dtype="bfloat16")
    monkeypatch.setattr("study.adapters.change.load_model", lambda _: load_model(half))
    with pytest.raises(ValueError, match=r"bfloat16 has room for .*% of its norm"):
        merge([(1.0, own)], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_an_export_names_its_base_and_the_rank_that_vllm_needs(tmp_path: Path) -> None:
    (own,) = named(one=write_adapter(tmp_path / "arm" / "one", 1, rank=9))
    (line,) = export(own, "vllm", tmp_path / "out", "Qwen/Qwen3-0.6B")
    assert line == (
        "vllm serve Qwen/Qwen3-0.6B --enable-lora --max-lora-rank 16 --lora-modules "
        f"arm={tmp_path / 'out'}"
    )
    settings = json.loads((tmp_path / "out" / "adapter_config.json").read_text())
    assert settings["base_model_name_or_path"] == "Qwen/Qwen3-0.6B"
    assert settings["target_modules"] == sorted(settings["target_modules"])
    assert str(tmp_path) not in json.dumps(settings)
    loaded = PeftModel.from_pretrained(load_model(LAB), str(tmp_path / "out"))
    expected = by_hand([(1.0, own.scaling, matrices(own))])
    torch.testing.assert_close(logits(loaded), logits(expected), rtol=1e-4, atol=1e-4)


def test_nothing_that_exists_is_written_over(tmp_path: Path) -> None:
    (own,) = named(one=write_adapter(tmp_path / "arm" / "one", 1))
    for act in (
        lambda: merge([(1.0, own)], tmp_path),
        lambda: combine([(1.0, own)], "cat", tmp_path),
        lambda: export(own, "peft", tmp_path, "x"),
    ):
        with pytest.raises(ValueError, match="must name a directory that does not exist"):
            act()
