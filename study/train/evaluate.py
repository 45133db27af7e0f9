"""Held-out evaluation: fixed prompts, a sampled and a greedy completion for each."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from transformers import GenerationConfig

from study.config import RunConfig
from study.plan.flops import Sequences
from study.tasks.base import Problem
from study.train.engine import Evaluation
from study.train.models import end_token_ids
from study.train.rewards import Scorer


def evaluation_seed(seed: int, index: int) -> int:
    """Returns the seed of the draws of a run's evaluation number `index`, below 2**63."""
    digest = hashlib.sha256(f"evaluation {seed} {index}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


@contextmanager
def own_draws(seed: int) -> Iterator[None]:
    """Draws inside start from `seed`; those outside go on as if nothing had happened."""
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


@contextmanager
def evaluation_mode(model: Any) -> Iterator[None]:
    """Switches a model to evaluation without gradients, and back to what it was."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)


class Evaluator:
    """Evaluates a model on fixed held-out problems."""

    def __init__(
        self,
        config: RunConfig,
        problems: Sequence[Problem],
        scorer: Scorer,
        model: Any,
        tokenizer: Any,
        alive: Callable[[], None],
    ) -> None:
        """Builds the evaluator and tokenizes its prompts once.

        Args:
            config: The run.
            problems: Held-out problems, in their fixed order.
            scorer: What scores.
            model: The model, for its end tokens.
            tokenizer: Its tokenizer, padding on the left.
            alive: Called after each batch: a large model's evaluation may outlast what a
                worker waits for.
        """
        self._alive = alive
        self._problems = problems
        self._scorer = scorer
        self._tokenizer = tokenizer
        self._seed = config.seed
        self._end = end_token_ids(model, tokenizer)
        self._length = config.task.max_completion_length
        self._temperature = config.objective.temperature
        self._batches = self._tokenize(config.evaluation.eval_batch_size)
        masks = (batch["attention_mask"] for batch in self._batches)
        self._prompt_lengths = [length for mask in masks for length in mask.sum(1).tolist()]

    def _tokenize(self, size: int) -> list[Any]:
        prompts = [problem.prompt for problem in self._problems]
        return [
            self._tokenizer(prompts[i : i + size], padding=True, return_tensors="pt")
            for i in range(0, len(prompts), size)
        ]

    def __call__(self, model: Any, step: int, index: int) -> Evaluation:
        """Evaluates the model; its mode and the training's random draws stay untouched.

        Args:
            model: The model as it is after `step` optimizer steps.
            step: Optimizer steps done.
            index: Number of evaluations before this one; it seeds the draws with the run's seed.

        Raises:
            RuntimeError: If the scorer fails on more than half of the completions, or, from
                torch, if the sampling probabilities are not finite.
        """
        with evaluation_mode(model), own_draws(evaluation_seed(self._seed, index)):
            sampled = self._complete(model, self._sampling())
            greedy = self._complete(model, self._greedy())
        work = drawn(self._prompt_lengths, sampled, greedy)
        return judged(step, self._problems, self._scorer, self._decode, (sampled, greedy), work)

    def _sampling(self) -> Any:
        return self._generation(
            do_sample=True, temperature=self._temperature, top_p=1.0, top_k=0, min_p=None
        )

    def _greedy(self) -> Any:
        return self._generation(do_sample=False)

    def _generation(self, **how: Any) -> Any:
        return GenerationConfig(
            max_new_tokens=self._length,
            eos_token_id=self._end,
            pad_token_id=self._tokenizer.pad_token_id,
            bos_token_id=self._tokenizer.bos_token_id,
            repetition_penalty=1.0,
            disable_compile=True,
            **how,
        )

    def _complete(self, model: Any, generation: Any) -> list[list[int]]:
        """Returns each prompt's completion, up to and with its end token."""
        completions: list[list[int]] = []
        for batch in self._batches:
            inputs = batch.to(model.device)
            output = model.generate(
                input_ids=inputs["input_ids"],
                attention_mask=inputs["attention_mask"],
                generation_config=generation,
            )
            rows = output[:, inputs["input_ids"].size(1) :].tolist()
            completions += [until_end(row, self._end) for row in rows]
            self._alive()
        return completions

    def _decode(self, completions: Sequence[list[int]]) -> list[str]:
        texts: list[str] = self._tokenizer.batch_decode(completions, skip_special_tokens=True)
        return texts


def judged(
    step: int,
    problems: Sequence[Problem],
    scorer: Scorer,
    decode: Callable[[Sequence[list[int]]], list[str]],
    completions: tuple[Sequence[list[int]], Sequence[list[int]]],
    work: Sequences,
) -> Evaluation:
    """Returns the evaluation that completions amount to.

    Args:
        step: Optimizer steps done.
        problems: Held-out problems.
        scorer: What scores.
        decode: Gives the texts of completions, without special tokens.
        completions: Token ids of a sampled and of a greedy completion of each problem.
        work: What it took to draw them.

    Raises:
        RuntimeError: If the scorer fails on more than half of the completions.
    """
    sampled, greedy = completions
    texts, greedy_texts = decode(sampled), decode(greedy)
    scores = scorer(problems, texts)
    return Evaluation(
        step=step,
        prompt_ids=[problem.prompt_id for problem in problems],
        completions=texts,
        correct=[score.correct for score in scores],
        tokens=[len(ids) for ids in sampled],
        greedy_correct=[score.correct for score in scorer(problems, greedy_texts)],
        mean_reward=sum(score.reward for score in scores) / len(scores),
        work=work,
    )


def drawn(prompt_lengths: Sequence[int], *completions: Sequence[list[int]]) -> Sequences:
    """Returns what it takes to draw completions, each after a reading of its prompt.

    Args:
        prompt_lengths: In tokens.
        *completions: Token ids of one completion of each prompt, any number of times.
    """
    return Sequences.sampled(
        (prompt, len(completion))
        for ids in completions
        for prompt, completion in zip(prompt_lengths, ids, strict=True)
    )


def until_end(ids: list[int], end: Sequence[int]) -> list[int]:
    """Returns the tokens up to and with the first end token."""
    for position, token in enumerate(ids):
        if token in end:
            return ids[: position + 1]
    return ids
