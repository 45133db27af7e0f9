"""Weights of stored runs before and after training."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from study.config import ModelConfig
from study.probes.weights.pairs import Bases, trained_pairs
from study.train.models import load_model
from tests import plans
from tests.unit.probes.stored_runs import (
    LAB,
    TARGETS,
    adapted_model,
    changed_model,
    read_run,
    write_run,
)

LORA = plans.lora(rank=4, alpha_rule="sqrt")


def pairs(path):
    run = read_run(path)
    return list(trained_pairs(run, Bases().of(run)))


@pytest.fixture
def lora_run(tmp_path):
    return write_run(tmp_path / "lora" / "a", LORA, adapted_model(LORA))


def test_an_adapter_is_materialised_as_peft_merges_it(lora_run):
    """alpha = 32 sqrt(4) = 64, so alpha / r = 16."""
    base, merged = load_model(LAB), adapted_model(LORA).merge_and_unload()
    found = pairs(lora_run)
    assert [pair.name for pair in found] == [f"{target}.weight" for target in TARGETS]
    for pair in found:
        assert torch.equal(pair.before.float(), base.get_parameter(pair.name))
        torch.testing.assert_close(
            pair.after.float(), merged.get_parameter(pair.name), rtol=1e-6, atol=1e-6
        )
        assert int(torch.linalg.matrix_rank(pair.update)) == 4  # no rounding to fp32 on the way
        assert pair.fp32_masters


def test_the_base_is_that_of_the_precision_in_which_it_was_trained(tmp_path):
    low = ModelConfig(name="lab32", source="lab", dtype="bfloat16")
    model = adapted_model(plans.lora(), model=low)
    for pair in pairs(write_run(tmp_path / "lora" / "a", plans.lora(), model, model=low)):
        assert torch.equal(pair.before, pair.before.bfloat16().double())
        assert pair.fp32_masters  # the adapter is


def test_full_fine_tuning_compares_every_parameter_tied_ones_once(tmp_path):
    model = changed_model(lambda name, w: w + 0.25 if "o_proj" in name else w)
    found = {pair.name: pair for pair in pairs(write_run(tmp_path / "full/a", plans.full(), model))}
    assert list(found) == sorted(name for name, _ in load_model(LAB).named_parameters())
    for name, pair in found.items():
        if "o_proj" in name:
            assert torch.allclose(pair.update, torch.tensor(0.25).double(), atol=1e-7)
        else:
            assert not pair.update.any()
        assert pair.fp32_masters


def test_a_run_in_pure_bf16_has_no_fp32_masters(tmp_path):
    low = ModelConfig(name="lab32", source="lab", dtype="bfloat16")
    path = write_run(tmp_path / "full/a", plans.full(), load_model(low), model=low)
    found = pairs(path)
    assert not any(pair.fp32_masters for pair in found)
    assert not any(pair.update.any() for pair in found)  # the same rounding before and after


def test_a_base_that_has_changed_is_refused(tmp_path):
    path = write_run(tmp_path / "full/a", plans.full(), load_model(LAB), model_revision="beef")
    with pytest.raises(ValueError, match=r"was trained from revision beef of lab32, but .* is now"):
        pairs(path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("lora_alpha", 32.0, r"lora_alpha must be 64\.0, got 32\.0"),
        ("r", 2, "r must be 4, got 2"),
        ("use_rslora", True, "use_rslora must be False, got True"),
        ("rank_pattern", {"q_proj": 2}, "rank_pattern must be {}"),
    ],
)
def test_an_adapter_that_is_not_as_recorded_is_refused(lora_run, key, value, message):
    file = lora_run / "adapter" / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {key: value}))
    with pytest.raises(ValueError, match=message):
        pairs(lora_run)


def test_an_adapter_without_a_recorded_target_is_refused(lora_run):
    file = lora_run / "adapter" / "adapter_model.safetensors"
    stored = load_file(file)
    del stored[f"base_model.model.{TARGETS[1]}.lora_B.weight"]
    save_file(stored, file)
    with pytest.raises(ValueError, match=r"they differ in .*down_proj\.lora_B"):
        pairs(lora_run)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"{", "cannot be read as safetensors weights"), (None, "cannot be read as safetensors")],
)
def test_damaged_or_missing_weights_are_one_sentence(lora_run, content, message):
    file = lora_run / "adapter" / "adapter_model.safetensors"
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        pairs(lora_run)


def test_weights_that_are_not_finite_are_refused(tmp_path):
    model = changed_model(lambda name, w: w * float("nan") if "k_proj" in name else w)
    with pytest.raises(ValueError, match=r"k_proj.weight in .* holds numbers that are not finite"):
        pairs(write_run(tmp_path / "full/a", plans.full(), model))


def test_a_model_of_another_shape_is_refused(tmp_path):
    other = load_model(ModelConfig(name="lab64", source="lab"))
    with pytest.raises(ValueError, match=r"has the shape \(99, 64\) in .* but \(99, 32\) in"):
        pairs(write_run(tmp_path / "full/a", plans.full(), other))


def test_an_unknown_tensor_is_refused(tmp_path):
    path = write_run(tmp_path / "full/a", plans.full(), load_model(LAB))
    file = path / "model" / "model.safetensors"
    save_file(load_file(file) | {"odd.weight": torch.ones(2)}, file)
    with pytest.raises(ValueError, match=r"lab32 holds no tensor odd\.weight"):
        pairs(path)
