"""Shipped lab models: where they are found, how they load, and that their accuracy is as stated."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import study.lab
from study.lab import SHIPPED, cache_path, lab_model_path

MEGABYTE = 1_000_000


def _record(name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((lab_model_path(name) / "lab.json").read_text())
    return record


def test_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"lab models are lab32, .*, got 'lab65'"):
        lab_model_path("lab65")


def test_model_that_is_not_built_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(ValueError, match=r"python -m study\.lab build lab256"):
        lab_model_path("lab256")


def test_built_model_is_found_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache_path("lab256").mkdir(parents=True)
    (cache_path("lab256") / "model.safetensors").touch()
    assert lab_model_path("lab256") == tmp_path / "lora-rl-study" / "lab256"


def test_lab_imports_without_torch() -> None:
    code = "import sys, study.lab; print({'torch', 'transformers'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "set()"


def test_shipped_files_stay_small_and_hold_no_pickle() -> None:
    files = list(Path(study.lab.__file__).parent.glob("weights/**/*"))
    assert sum(path.stat().st_size for path in files if path.is_file()) < 6 * MEGABYTE
    assert {path.suffix for path in files if path.is_file()} == {".json", ".safetensors"}


@pytest.mark.parametrize("name", SHIPPED)
def test_recorded_hash_and_base_accuracy(name: str) -> None:
    record = _record(name)
    weights = (lab_model_path(name) / "model.safetensors").read_bytes()
    assert record["sha256"] == hashlib.sha256(weights).hexdigest()
    default = record["accuracy"]["sum3"]
    assert 0.08 <= default["sampled"] <= 0.4
    assert default["greedy"] > default["sampled"]


@pytest.mark.integration
@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_model_loads_as_any_other_model(name: str) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(lab_model_path(name), trust_remote_code=False)
    tokenizer = AutoTokenizer.from_pretrained(lab_model_path(name), trust_remote_code=False)
    assert model.config.model_type == "qwen3"
    assert model.config.tie_word_embeddings
    assert model.config.hidden_size == int(name.removeprefix("lab"))
    assert (model.config.eos_token_id, model.config.pad_token_id) == (
        tokenizer.eos_token_id,
        tokenizer.pad_token_id,
    )
    assert model.num_parameters() == _record(name)["parameters"]


@pytest.mark.integration
def test_measured_accuracy_agrees_with_the_record() -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from study.lab.measure import accuracy

    model = AutoModelForCausalLM.from_pretrained(lab_model_path("lab64"))
    tokenizer = AutoTokenizer.from_pretrained(lab_model_path("lab64"))
    recorded = _record("lab64")["accuracy"]["sum3"]
    # 256 of the 512 recorded prompts: three standard errors are at most 0.1
    for sampled, key in ((True, "sampled"), (False, "greedy")):
        measured = accuracy(model, tokenizer, "sum3", 256, sampled, seed=1)
        assert measured == pytest.approx(recorded[key], abs=0.1)
