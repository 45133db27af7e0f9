"""Description of a model before it is loaded, and the trainer's settings."""

from __future__ import annotations

import dataclasses

import pytest
from train_runs import run_config
from transformers import TrainingArguments
from trl import GRPOConfig, SFTConfig

from study.config import ModelConfig
from study.train.describe import describe, unknown_characters
from study.train.models import load_tokenizer
from study.train.trl import arguments
from study.train.trl.arguments import grpo_arguments

pytestmark = pytest.mark.integration

OFF_PREFIXES = ("vllm_", "sapo_", "vespo_", "entropy_coef_", "ref_model_", "log_", "ds3_")
"""Families of settings that belong to something we do not use."""
LEFT_ALONE = {
    "cache_implementation",
    "chat_template_kwargs",
    "entropy_target",
    "generation_batch_size",
    "max_tool_calling_iterations",
    "model_init_kwargs",
    "num_completions_to_print",
    "num_generations_eval",
    "reward_weights",
    "transformers_continuous_batching_config",
    "use_transformers_paged",
}


def test_describes_the_lab_model():
    model = describe(run_config())
    assert model.hidden_size == 64
    assert len(model.linear_modules) == 14
    assert model.linear_modules["model.layers.1.mlp.down_proj"] == (64, 256)
    assert model.total_params == 129_600  # the head counts once
    assert model.max_prompt_tokens == 9
    assert model.unknown_characters == ""


def test_data_revision_follows_the_data():
    config = run_config()
    more = dataclasses.replace(config, task=dataclasses.replace(config.task, train_prompts=65))
    assert describe(config).data_revision == describe(run_config("full", seed=9)).data_revision
    assert describe(config).data_revision != describe(more).data_revision


def test_characters_outside_the_vocabulary_are_named():
    tokenizer = load_tokenizer(run_config().model)
    assert unknown_characters(tokenizer, ["1+1=\n", "é2→"]) == "é→"


def test_missing_model_is_named():
    model = ModelConfig(name="mine", source="local", path="/nowhere/mine")
    with pytest.raises(ValueError, match=r"model directory /nowhere/mine does not exist"):
        describe(dataclasses.replace(run_config(), model=model))


def test_refusal_of_the_library_is_one_clear_error():
    config = run_config()
    config.objective.lr_scheduler_type = "zigzag"
    with pytest.raises(ValueError, match=r"TRL .* refuses the objective: .*zigzag"):
        describe(config)


def test_settings_unknown_to_the_library_are_named(monkeypatch):
    monkeypatch.setattr(arguments, "_program", lambda config: {"max_prompt_length": 1})
    with pytest.raises(ValueError, match=r"does not know the settings \['max_prompt_length'\]"):
        grpo_arguments(run_config(), "unused")


def test_settings_that_define_the_loss_arrive():
    config = run_config(micro_batch_size=8, temperature=0.7, scale_rewards="batch", max_grad_norm=0)
    settings = grpo_arguments(config, "unused")
    assert (settings.per_device_train_batch_size, settings.gradient_accumulation_steps) == (8, 2)
    assert (settings.generation_batch_size, settings.num_generations) == (16, 4)
    for name in ("loss_type", "scale_rewards", "beta", "epsilon", "temperature", "learning_rate"):
        assert getattr(settings, name) == getattr(config.objective, name)
    assert (settings.bf16, settings.fp16, settings.gradient_checkpointing) == (False, False, False)
    assert settings.logging_nan_inf_filter is False


def test_every_setting_of_the_library_is_set_or_known_to_be_off():
    """A field that a new version of the library adds must be looked at before it joins runs."""
    own = {f.name for f in dataclasses.fields(GRPOConfig)}
    own -= {f.name for f in dataclasses.fields(TrainingArguments)}
    config = run_config()
    shared = (arguments._optimizer, arguments._batch, arguments._program)
    explicit = {name for part in shared for name in part(config)}
    explicit |= set(arguments._policy(config, config.objective))
    assert {name for name in own - explicit if not name.startswith(OFF_PREFIXES)} == LEFT_ALONE


def test_settings_of_supervised_training_that_are_left_alone_concern_text_and_packing():
    """Rows come tokenized and are never packed or cut: what says how to do that is not read."""
    own = {f.name for f in dataclasses.fields(SFTConfig)}
    own -= {f.name for f in dataclasses.fields(TrainingArguments)}
    left = own - set(arguments._likelihood()) - set(arguments._program(run_config()))
    text = {
        "chat_template_path",
        "dataset_num_proc",
        "dataset_text_field",
        "eos_token",
        "pad_token",
    }
    packing = {"eval_packing", "packing_strategy", "truncation_mode"}
    assert left == {*text, *packing, "model_init_kwargs"}
