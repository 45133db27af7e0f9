"""Builds a lab model: pre-trains it, saves it with its tokenizer, measures and records it."""

import hashlib
import json
import platform
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from study.lab.measure import accuracy
from study.lab.pretrain import Progress, pretrain
from study.lab.recipe import Recipe
from study.lab.tokenizer import build_tokenizer

MEASURED_PROMPTS = 512


def build(recipe: Recipe, out: Path, progress: Progress) -> dict[str, Any]:
    """Builds a model into a directory.

    Args:
        recipe: What to build.
        out: Directory for the weights, the tokenizer and `lab.json`; created if missing.
        progress: Called after each training step with steps done and the loss.

    Returns:
        The content of `lab.json`: recipe, accuracies by family, versions and hash.
    """
    return save(pretrain(recipe, progress), recipe, out)


def save(model: Qwen3ForCausalLM, recipe: Recipe, out: Path) -> dict[str, Any]:
    """Writes a trained model with its tokenizer and record; returns the record."""
    tokenizer = build_tokenizer()
    out.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    weights = out / "model.safetensors"
    weights.chmod(0o644)
    record = {
        "recipe": asdict(recipe),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "role": "eval",
        "accuracy": measure(model, tokenizer, recipe.family_shares),
        "versions": _versions(),
        "sha256": hashlib.sha256(weights.read_bytes()).hexdigest(),
    }
    (out / "lab.json").write_text(json.dumps(record, indent=2) + "\n")
    return record


def measure(
    model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, families: Iterable[str]
) -> dict[str, dict[str, float]]:
    """Returns sampled and greedy accuracy in [0, 1], and the number of prompts, by family."""
    return {
        family: {
            "sampled": accuracy(model, tokenizer, family, MEASURED_PROMPTS, sampled=True),
            "greedy": accuracy(model, tokenizer, family, MEASURED_PROMPTS, sampled=False),
            "n": MEASURED_PROMPTS,
        }
        for family in families
    }


def _versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "transformers": transformers.__version__,
        "tokenizers": tokenizers.__version__,
    }
