"""Which models the packed engine refuses, on the meta device."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from study.train.packed.support import refusal

SIZES = {
    "vocab_size": 11,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
}


def tiny(model_type: str, **changes: Any) -> Any:
    config = AutoConfig.for_model(model_type, **{**SIZES, **changes})
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


@pytest.mark.parametrize("model_type", ["gemma", "llama", "mistral", "qwen2", "qwen3"])
@pytest.mark.parametrize("tied", [True, False])
def test_dense_models_qualify(model_type, tied):
    assert refusal(tiny(model_type, tie_word_embeddings=tied), longest=24) == ""


def test_other_architectures_are_named():
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(
            AutoConfig.for_model("gpt2", n_embd=8, n_layer=1, n_head=2, vocab_size=11)
        )
    assert refusal(model, 24).startswith("has a model of type gpt2, none of gemma, llama")


def test_rotary_embeddings_that_depend_on_the_longest_row_are_refused():
    rope = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}
    model = tiny("llama", rope_parameters=rope)
    assert refusal(model, 24).startswith("has a model with rope_type=dynamic, none of default")


def test_a_model_with_code_of_its_own_is_refused():
    class Own(type(tiny("llama"))):
        pass

    model = tiny("llama")
    model.__class__ = Own
    assert refusal(model, 24) == "has a model that brings its own code"


def test_dropout_is_refused():
    assert refusal(tiny("llama", attention_dropout=0.1), 24).endswith("attention_dropout=0.1")


def test_a_window_shorter_than_the_texts_is_refused():
    model = tiny("mistral", sliding_window=16)
    assert refusal(model, 16) == ""
    assert refusal(model, 17) == "has a model with sliding_window=16 for texts of up to 17 tokens"


def test_widths_that_no_vector_register_divides_are_refused():
    assert refusal(tiny("qwen2", intermediate_size=48), 24) == (
        "has a model with 48 features in the activations, no multiple of 32"
    )
    assert refusal(tiny("qwen3", num_attention_heads=3, head_dim=8), 24) == (
        "has a model with 24 features in model.layers.0.self_attn.q_proj, no multiple of 16"
    )


def test_a_parameter_without_a_packed_twin_is_refused():
    model = tiny("qwen2")
    model.model.layers[0].self_attn.register_parameter(
        "sinks", torch.nn.Parameter(torch.zeros(2, device="meta"))
    )
    assert "the parameter model.layers.0.self_attn.sinks" in refusal(model, 24)
