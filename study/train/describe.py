"""Describes a run's model and data before any weights are read."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from study.config import RunConfig, SftObjective
from study.plan.description import Description
from study.tasks.base import Problem, Task
from study.tasks.loading import load_task
from study.train.models import (
    HASH_LENGTH,
    empty_model,
    linear_modules,
    load_tokenizer,
    model_directory,
    model_revision,
)
from study.train.packed.support import refusal
from study.train.quiet import quiet_libraries
from study.train.solutions import solution_ids
from study.train.trl.arguments import trainer_arguments


def describe(config: RunConfig) -> Description:
    """Returns names, shapes and hashes of a run's model and data.

    The model is built on torch's meta device: seconds, whatever its size.

    Raises:
        ValueError: If the model directory or the task is not usable, or TRL refuses the
            objective's settings, or the task's solutions do not fit.
    """
    with quiet_libraries():
        return _describe(config)


def _describe(config: RunConfig) -> Description:
    trainer_arguments(config, output_dir="unused")
    model = empty_model(config.model)
    tokenizer = load_tokenizer(config.model)
    task, completion = load_task(config.task), config.task.max_completion_length
    problems = run_problems(config, task)
    supervised = isinstance(config.objective, SftObjective)
    if supervised:
        solution_ids(problems[: config.task.train_prompts], tokenizer, completion)
    texts = [problem.prompt for problem in problems]
    answers = [problem.answer for problem in problems]
    longest_prompt = max(len(ids) for ids in tokenizer(texts)["input_ids"])
    return Description(
        model_revision=model_revision(model_directory(config.model)),
        hidden_size=model.config.get_text_config().hidden_size,
        vocab_size=model.config.get_text_config().vocab_size,
        linear_modules=linear_modules(model),
        total_params=sum(parameter.numel() for parameter in model.parameters()),
        max_prompt_tokens=longest_prompt,
        unknown_characters=unknown_characters(tokenizer, [*texts, *answers, task.sample_text()]),
        data_revision=data_revision(problems, with_solutions=supervised),
        packed_refusal=refusal(model, longest_prompt + completion),
    )


def run_problems(config: RunConfig, task: Task) -> list[Problem]:
    """Returns every problem a run may meet: training, search and report roles, in this order.

    Raises:
        ValueError: If a role has too few problems.
    """
    held_out = config.evaluation.eval_prompts
    return [
        *task.problems("train", config.task.train_prompts),
        *task.problems("eval", held_out),
        *task.problems("report", held_out),
    ]


def data_revision(problems: Iterable[Problem], *, with_solutions: bool) -> str:
    """Returns the SHA-256 of the problems' ids, prompts and answers, shortened to 16 digits.

    Args:
        problems: The problems.
        with_solutions: Whether their worked solutions are trained on, and so count too.
    """
    digest = hashlib.sha256()
    for problem in problems:
        content: tuple[str, ...] = (problem.prompt_id, problem.prompt, problem.answer)
        content += (problem.solution,) if with_solutions else ()
        digest.update(repr(content).encode())
    return digest.hexdigest()[:HASH_LENGTH]


def unknown_characters(tokenizer: Any, texts: Sequence[str]) -> str:
    """Returns the characters of `texts` that a tokenizer drops or maps to its unknown token."""
    characters = sorted(set().union(*texts))
    encoded = tokenizer(characters, add_special_tokens=False)["input_ids"]
    unknown = tokenizer.unk_token_id
    return "".join(
        character
        for character, ids in zip(characters, encoded, strict=True)
        if not ids or unknown in ids
    )
