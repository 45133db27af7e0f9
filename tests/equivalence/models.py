"""Tiny random base models of the families that the packed engine must train."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    GemmaConfig,
    LlamaConfig,
    MistralConfig,
    Qwen2Config,
    Qwen3Config,
)

from study.lab.tokenizer import EOS_ID, PAD_ID, VOCABULARY, build_tokenizer

SHAPE: dict[str, Any] = {
    "vocab_size": len(VOCABULARY),
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "bos_token_id": None,
    "eos_token_id": EOS_ID,
    "pad_token_id": PAD_ID,
    "initializer_range": 0.25,  # logits that differ by more than noise
}
FAMILIES: dict[str, tuple[Any, dict[str, Any]]] = {
    "qwen2": (Qwen2Config, {}),  # biases on q, k and v
    "qwen3": (Qwen3Config, {"head_dim": 8}),  # norms on q and k
    "llama": (LlamaConfig, {"attention_bias": True, "mlp_bias": True}),
    "gemma": (GemmaConfig, {"head_dim": 16}),  # scaled embeddings, norms around one
    "mistral": (MistralConfig, {"head_dim": 8, "sliding_window": None}),
}
ENDS = [EOS_ID, *(VOCABULARY[c] for c in "abcdefgh")]
"""What ends a completion: several tokens, so that random text stops at many lengths."""


def save_tiny_model(family: str, directory: Path, *, tied: bool, **changes: int) -> None:
    """Writes a model as its owner would: weights, configuration and the lab's tokenizer."""
    build, extra = FAMILIES[family]
    shape = {**SHAPE, **extra, **changes}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(sum(map(ord, family)) + tied)
        model = AutoModelForCausalLM.from_config(build(**shape, tie_word_embeddings=tied))
        for parameter in model.parameters():
            if (
                parameter.dim() == 1
            ):  # biases start at zero and norms at one: no test would see them
                parameter.data += 0.3 * torch.randn_like(parameter)
    model.generation_config.eos_token_id = ENDS
    model.save_pretrained(str(directory))
    build_tokenizer().save_pretrained(str(directory))
