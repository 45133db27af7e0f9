"""Samples of a model on fixed prompts, and its logits on given sequences."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig

from study.tasks.base import Problem
from study.train.evaluate import evaluation_mode, own_draws, until_end

LOGITS_AT_ONCE = 2**25
"""Numbers in a batch of logits: 128 MiB in float32."""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How completions are drawn: the same for base and tuned model."""

    length: int
    """Most new tokens."""
    temperature: float
    end: list[int]
    """Tokens that end a completion."""
    seed: int
    batch_size: int
    """Completions per generation call."""


@dataclass(frozen=True)
class Drawn:
    """A prompt with one completion of it, as token ids."""

    prompt: list[int]
    completion: list[int]
    """Up to and with its end token."""


def draw_seed(seed: int, batch: int) -> int:
    """The seed of one generation call, below 2**63: other draws than any evaluation's."""
    digest = hashlib.sha256(f"behaviour {seed} {batch}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def draw(
    model: Any,
    tokenizer: Any,
    problems: Sequence[Problem],
    samples: int,
    how: Sampling,
    alive: Callable[[], None],
) -> list[list[Drawn]]:
    """Draw ``samples`` completions of every problem; random draws elsewhere stay untouched.

    Args:
        model: The model.
        tokenizer: Its tokenizer, padding on the left.
        problems: The problems.
        samples: Per problem.
        how: Length, temperature, seed.
        alive: Called after each batch.

    Returns:
        Per problem its samples, in the order in which they were drawn.
    """
    prompts = [problem.prompt for problem in problems for _ in range(samples)]
    flat: list[Drawn] = []
    for index, start in enumerate(range(0, len(prompts), how.batch_size)):
        batch = tokenizer(
            prompts[start : start + how.batch_size], padding=True, return_tensors="pt"
        )
        with evaluation_mode(model), own_draws(draw_seed(how.seed, index)):
            flat += _drawn(model, tokenizer, batch.to(model.device), how)
        alive()
    return [flat[i : i + samples] for i in range(0, len(flat), samples)]


def _drawn(model: Any, tokenizer: Any, batch: Any, how: Sampling) -> Iterator[Drawn]:
    ids, mask = batch["input_ids"], batch["attention_mask"]
    output = model.generate(
        input_ids=ids, attention_mask=mask, generation_config=_generation(tokenizer, how)
    )
    rows = output[:, ids.size(1) :].tolist()
    for prompt, kept, row in zip(ids, mask.bool(), rows, strict=True):
        yield Drawn(prompt[kept].tolist(), until_end(row, how.end))


def _generation(tokenizer: Any, how: Sampling) -> GenerationConfig:
    # As in held-out evaluation: nothing but the temperature shapes the distribution.
    return GenerationConfig(
        do_sample=True,
        temperature=how.temperature,
        top_p=1.0,
        top_k=0,
        min_p=None,
        max_new_tokens=how.length,
        eos_token_id=how.end,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        repetition_penalty=1.0,
        disable_compile=True,
    )


def completion_logits(
    model: Any, drawn: Sequence[Drawn], alive: Callable[[], None]
) -> Iterator[Tensor]:
    """Yield, by batches, what a model expects at every token of completions, in their order.

    Args:
        model: The model.
        drawn: Prompts with completions.
        alive: Called after each batch.

    Yields:
        Logits (tokens of the batch, vocabulary). Batches depend on lengths and vocabulary alone:
        two models of one vocabulary give matching ones.
    """
    longest = max(len(one.prompt) + len(one.completion) for one in drawn)
    size = max(1, LOGITS_AT_ONCE // (longest * model.config.vocab_size))
    for start in range(0, len(drawn), size):
        part = drawn[start : start + size]
        # Padding on the right is after every token that counts: a causal model does not see it.
        rows = [torch.tensor(one.prompt + one.completion) for one in part]
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).to(model.device)
        with evaluation_mode(model):
            logits = model(input_ids=ids, use_cache=False).logits
        starts = [len(one.prompt) - 1 for one in part]  # a token is expected by the one before it
        ends = [len(one.prompt) + len(one.completion) - 1 for one in part]
        spans = zip(logits, starts, ends, strict=True)
        yield torch.cat([row[first:last] for row, first, last in spans])
        alive()
