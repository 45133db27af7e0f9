"""Model directories, hashes and names."""

import json
import shutil
from types import SimpleNamespace

import pytest
import torch

from study.config import ModelConfig
from study.lab import lab_model_path
from study.train.models import (
    check_directory,
    empty_model,
    end_token_ids,
    hash_parameters,
    linear_modules,
    load_model,
    load_tokenizer,
    model_directory,
    model_revision,
)

LAB = ModelConfig(name="lab64", source="lab")


@pytest.fixture
def local(tmp_path):
    """A copy of the lab model that a test may break."""
    return shutil.copytree(lab_model_path("lab64"), tmp_path / "model")


def config_of(path, **changes) -> ModelConfig:
    return ModelConfig(name="mine", source="local", path=str(path), **changes)


def test_lab_and_local_sources_name_the_same_model(local):
    assert model_directory(LAB) == lab_model_path("lab64")
    assert model_revision(model_directory(config_of(local))) == model_revision(model_directory(LAB))


@pytest.mark.parametrize(
    ("removed", "message"),
    [
        ("config.json", "has no config.json"),
        ("model.safetensors", "lacks the safetensors weights model.safetensors"),
    ],
)
def test_incomplete_directory_is_one_sentence(local, removed, message):
    (local / removed).unlink()
    with pytest.raises(ValueError, match=message):
        model_directory(config_of(local))


def test_missing_directory_is_one_sentence(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        check_directory(tmp_path / "absent")


def test_missing_shard_is_named(local):
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (local / "model.safetensors.index.json").write_text(json.dumps(index))
    (local / "model.safetensors").rename(local / "model-1.safetensors")
    with pytest.raises(ValueError, match=r"lacks the safetensors weights model-2\.safetensors"):
        check_directory(local)
    (local / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(ValueError, match="not a valid index"):
        check_directory(local)


def test_directory_without_a_vocabulary_is_refused(local):
    (local / "tokenizer.json").unlink()
    (local / "tokenizer_config.json").unlink()
    with pytest.raises(ValueError, match="has no tokenizer"):
        load_tokenizer(config_of(local))


@pytest.mark.parametrize(
    ("load", "file", "text"),
    [
        (empty_model, "config.json", "{"),
        (empty_model, "config.json", '{"model_type": "unheard_of"}'),
        (load_model, "model.safetensors", "damaged weights"),
        (load_tokenizer, "tokenizer.json", "{"),
    ],
)
def test_damaged_file_is_one_sentence(local, load, file, text):
    (local / file).write_text(text)
    with pytest.raises(ValueError, match=r"model directory .* is not usable: ") as refused:
        load(config_of(local))
    assert "\n" not in str(refused.value)


def test_revision_follows_weights_and_configuration(local):
    revision = model_revision(local)
    assert len(revision) == 16
    config = json.loads((local / "config.json").read_text())
    (local / "config.json").write_text(json.dumps({**config, "rms_norm_eps": 1e-5}))
    assert model_revision(local) != revision


def test_weights_that_are_missing_from_the_file_are_refused(local):
    config = json.loads((local / "config.json").read_text())
    (local / "config.json").write_text(
        json.dumps({**config, "num_hidden_layers": 3, "layer_types": ["full_attention"] * 3})
    )
    with pytest.raises(ValueError, match=r"holds no weights for model\.layers\.2"):
        load_model(config_of(local))


def test_sampling_defaults_of_the_model_are_dropped(local):
    defaults = json.loads((local / "generation_config.json").read_text())
    (local / "generation_config.json").write_text(
        json.dumps({**defaults, "min_p": 0.5, "do_sample": True, "eos_token_id": [1, 5]})
    )
    model = load_model(config_of(local, dtype="bfloat16"))
    assert model.generation_config.min_p is None
    assert model.dtype == torch.bfloat16
    assert end_token_ids(model, SimpleNamespace(eos_token_id=1)) == [1, 5]
    assert end_token_ids(model, SimpleNamespace(eos_token_id=9)) == [9, 1, 5]


def test_tokenizer_pads_on_the_left():
    tokenizer = load_tokenizer(LAB)
    ids = tokenizer(["1+1=", "12+34="], padding=True)["input_ids"]
    assert ids[0][:2] == [tokenizer.pad_token_id] * 2


def test_empty_model_has_the_names_of_the_loaded_one():
    empty, loaded = empty_model(LAB), load_model(LAB)
    assert {p.device.type for p in empty.parameters()} == {"meta"}
    shapes = {name: p.shape for name, p in loaded.named_parameters()}
    assert {name: p.shape for name, p in empty.named_parameters()} == shapes
    assert linear_modules(empty) == linear_modules(loaded)
    assert "lm_head" not in linear_modules(empty)


def test_hash_sees_bytes_names_and_types_but_no_order():
    a, b = torch.ones(2), torch.zeros(2, dtype=torch.bfloat16)
    whole = hash_parameters([("a", a), ("b", b)])
    assert hash_parameters([("b", b), ("a", a)]) == whole
    changes = [[("a", a), ("c", b)], [("a", a)], [("a", a + 1e-7), ("b", b)], [("a", a), ("b", -b)]]
    assert all(hash_parameters(changed) != whole for changed in changes)
    assert hash_parameters([("s", torch.tensor(1.0))]) != hash_parameters([("s", torch.ones(1))])
