"""Pre-trains a lab model: seeded, on one thread, with deterministic algorithms."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

import torch
from torch.nn.functional import cross_entropy
from transformers import Qwen3Config, Qwen3ForCausalLM

from study.lab.corpus import IGNORED, batches
from study.lab.recipe import Recipe, Stage
from study.lab.tokenizer import EOS_ID, PAD_ID, VOCABULARY

Progress = Callable[[int, float], None]


def build_model(recipe: Recipe) -> Qwen3ForCausalLM:
    """Builds the untrained float32 model of a recipe, initialized from its seed."""
    config = Qwen3Config(
        vocab_size=len(VOCABULARY),
        hidden_size=recipe.hidden_size,
        intermediate_size=4 * recipe.hidden_size,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.key_value_heads,
        head_dim=recipe.hidden_size // recipe.heads,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=EOS_ID,
        pad_token_id=PAD_ID,
        dtype="float32",
    )
    torch.manual_seed(recipe.seed)
    return Qwen3ForCausalLM(config)


def pretrain(recipe: Recipe, progress: Progress) -> Qwen3ForCausalLM:
    """Trains a model through all stages of its recipe.

    Args:
        recipe: What to train.
        progress: Called after each step with the number of steps done and the loss in nats
            per token.

    Returns:
        The trained model, in evaluation mode.
    """
    model = build_model(recipe)
    model.train(True)
    done = 0
    with _reproducible():
        for index, stage in enumerate(recipe.stages):
            rng = Random(f"{recipe.seed} corpus {index}")
            done = _run_stage(model, recipe, stage, rng, done, progress)
    model.train(False)
    return model


def learning_rate_at(stage: Stage, step: int) -> float:
    """Returns the learning rate of a step (from 0): linear warm-up, then a cosine."""
    if step < stage.warmup:
        return stage.learning_rate * (step + 1) / stage.warmup
    done = (step - stage.warmup) / max(1, stage.steps - stage.warmup)
    cosine = 0.5 * (1 + math.cos(math.pi * done))
    return stage.learning_rate * (stage.final_ratio + (1 - stage.final_ratio) * cosine)


@contextmanager
def _reproducible() -> Iterator[None]:
    """One thread and deterministic algorithms: sums in a fixed order give the same bits."""
    threads, deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(deterministic)


def _run_stage(
    model: Qwen3ForCausalLM,
    recipe: Recipe,
    stage: Stage,
    rng: Random,
    done: int,
    progress: Progress,
) -> int:
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.01)
    for step, (ids, labels) in enumerate(batches(recipe, stage, rng)):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate_at(stage, step)
        logits = model(input_ids=ids, use_cache=False).logits
        loss = cross_entropy(
            logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORED
        )
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        progress(done + step + 1, loss.item())
    return done + stage.steps
