"""Measures the accuracy of a lab model on a task family."""

from collections.abc import Sequence

import torch
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from study.tasks import ArithmeticTask, Problem, Role

MAX_NEW_TOKENS = 14


def complete(
    model: Qwen3ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    problems: Sequence[Problem],
    sampled: bool,
) -> list[str]:
    """Returns one completion per problem: greedy, or sampled at temperature 1."""
    batch = tokenizer([problem.prompt for problem in problems], return_tensors="pt", padding=True)
    with torch.no_grad():
        tokens = model.generate(
            **batch,
            do_sample=sampled,
            temperature=1.0 if sampled else None,
            top_k=0 if sampled else None,
            top_p=1.0 if sampled else None,
            max_new_tokens=MAX_NEW_TOKENS,
        )
    completions = tokens[:, batch["input_ids"].shape[1] :]
    return [str(text) for text in tokenizer.batch_decode(completions, skip_special_tokens=True)]


def accuracy(
    model: Qwen3ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    family: str,
    count: int,
    sampled: bool,
    role: Role = "eval",
    seed: int = 0,
) -> float:
    """Returns the share of right answers on the first `count` problems of a role.

    Args:
        model: A lab model, in evaluation mode.
        tokenizer: Its tokenizer, padding on the left.
        family: Name of a task family.
        count: Number of problems, one completion each.
        sampled: Sample at temperature 1 if true, else decode greedily.
        role: The split to take problems from.
        seed: Seed of the sampling.

    Returns:
        Accuracy in [0, 1].
    """
    task = ArithmeticTask(family)
    problems = task.problems(role, count)
    torch.manual_seed(seed)
    texts = complete(model, tokenizer, problems, sampled)
    scores = [task.score(problem, text) for problem, text in zip(problems, texts, strict=True)]
    return sum(score.correct for score in scores) / count
