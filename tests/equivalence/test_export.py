"""What a packed run leaves on disk is what TRL's run would have left."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

from study.config import LoraMethod
from study.tasks.loading import load_task
from study.train.evaluate import Evaluator
from study.train.models import load_model, load_tokenizer, model_directory
from study.train.rewards import Scorer
from tests.equivalence.agree import assert_evaluation_equal
from tests.equivalence.recorder import run, run_packed, run_trl
from tests.equivalence.recording import Recording

pytestmark = pytest.mark.equivalence

SHORT = {"steps": 4, "eval_every": 2, "eval_prompts": 24, "eval_batch_size": 10}
RUNS = {
    "all": run(rank=4, learning_rate=3e-3, seed=1, **SHORT),
    "attention": run(rank=3, alpha=7.3, targets=["q_proj", "v_proj"], seed=2, **SHORT),
    "one-layer": run(rank=2, targets="model.layers.0.mlp.up_proj", seed=3, **SHORT),
    "full": run("full", learning_rate=2e-4, seed=4, **SHORT),
}
ADAPTERS = [name for name in RUNS if name != "full"]
TEXT = "12+34+56=46+56=102"


@pytest.fixture(scope="module")
def pack() -> dict[str, Recording]:
    return dict(zip(RUNS, run_packed(list(RUNS.values())), strict=True))


def loaded(recording: Recording) -> Any:
    """The model as a user would load it."""
    config, directory = recording.config, recording.spec.directory
    if isinstance(config.method, LoraMethod):
        return PeftModel.from_pretrained(load_model(config.model), str(directory / "adapter"))
    return AutoModelForCausalLM.from_pretrained(str(directory / "model"))


def logits(model: Any, recording: Recording) -> torch.Tensor:
    ids = load_tokenizer(recording.config.model)(TEXT, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        found: torch.Tensor = model.eval()(input_ids=ids).logits
    return found


@pytest.mark.parametrize("name", RUNS)
def test_the_saved_weights_speak_as_the_run_did_at_its_end(pack, name):
    recording = pack[name]
    config, model = recording.config, loaded(recording)
    texts: list[list[str]] = []
    scorer = Scorer(load_task(config.task))

    def score(problems: Any, completions: list[str]) -> Any:
        texts.append(completions)
        return scorer(problems, completions)

    problems = load_task(config.task).problems("eval", config.evaluation.eval_prompts)
    evaluator: Any = Evaluator(
        config, problems, score, model, load_tokenizer(config.model), alive=lambda: None
    )
    again = evaluator(model, 4, index=2)  # the third evaluation of the run
    assert_evaluation_equal(recording.evaluations[2], again)
    assert recording.scored[-2:] == texts  # sampled and greedy
    assert texts[0] != recording.scored[0]  # training changed what it says


@pytest.mark.parametrize("name", RUNS)
def test_the_saved_weights_give_the_logits_of_trl_s(pack, name):
    oracle = run_trl(RUNS[name])
    got, expected = logits(loaded(pack[name]), pack[name]), logits(loaded(oracle), oracle)
    untrained = logits(load_model(RUNS[name].model), oracle)
    assert float((expected - untrained).abs().max()) > 1e-2
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ADAPTERS)
def test_the_adapter_s_configuration_is_that_of_peft(pack, name):
    found, expected = pack[name].adapter_config, run_trl(RUNS[name]).adapter_config
    assert set(found.pop("target_modules")) == set(expected.pop("target_modules"))
    assert found == expected
    assert found["base_model_name_or_path"] == str(model_directory(RUNS[name].model))


@pytest.mark.parametrize("name", RUNS)
def test_the_same_files_and_nothing_beside_them(pack, name):
    def files(recording: Recording) -> set[str]:
        root = recording.spec.directory
        return {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()}

    assert files(pack[name]) == files(run_trl(RUNS[name]))


def test_a_whole_model_keeps_its_configuration_and_tokenizer(pack):
    oracle = run_trl(RUNS["full"])
    for file in ("config.json", "generation_config.json", "tokenizer_config.json"):
        found, expected = (
            json.loads((r.spec.directory / "model" / file).read_text())
            for r in (pack["full"], oracle)
        )
        expected.pop("use_cache", None)  # TRL leaves it off after training
        assert found | expected == found, file
        assert set(found) - set(expected) <= {"use_cache"}
        assert found.get("use_cache") is not False


def test_nothing_is_saved_where_nothing_is_asked_for():
    config = dataclasses.replace(RUNS["all"], save="none")
    (recording,) = run_packed([config])
    assert not list(recording.spec.directory.iterdir())
