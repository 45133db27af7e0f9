"""Worked solutions as training data."""

from __future__ import annotations

import dataclasses
from itertools import islice

import pytest

from study.config import SftObjective
from study.lab.tokenizer import EOS_ID, build_tokenizer, encode
from study.tasks.base import Problem
from study.train.describe import data_revision
from study.train.solutions import Solutions, solution_ids
from tests.equivalence.recorder import run

PROBLEMS = [
    Problem(prompt_id=str(n), prompt=f"{n}+1=", answer=str(n + 1), solution=f"{n}+1={n + 1}")
    for n in range(7)
]


def solutions(seed: int = 0, size: int = 3) -> Solutions:
    plain = run(seed=seed, train_prompts=7)
    known = {f.name: getattr(plain.objective, f.name) for f in dataclasses.fields(SftObjective)}
    objective = SftObjective(**{**known, "name": "sft", "prompts_per_step": size})
    return Solutions(dataclasses.replace(plain, objective=objective), PROBLEMS, build_tokenizer())


def test_a_solution_follows_its_prompt_and_ends() -> None:
    known = solutions()
    assert known.prompts[2] == encode("2+1=")
    assert known.completions[2] == [*encode("2+1=3"), EOS_ID]


def test_each_epoch_is_a_new_order_and_drops_what_fills_no_step() -> None:
    chosen = list(islice(solutions().steps(), 4))
    first, second = [*chosen[0], *chosen[1]], [*chosen[2], *chosen[3]]
    for epoch in (first, second):
        assert len(set(epoch)) == 6 and set(epoch) <= set(range(7))
    assert first != second
    assert chosen == list(islice(solutions().steps(), 4))
    assert chosen != list(islice(solutions(seed=1).steps(), 4))


def test_a_step_counts_its_tokens_and_no_completion() -> None:
    known = solutions()
    known.read([0, 3])
    batch = known.batch
    assert batch is not None
    assert (batch.prompts, batch.completions, batch.bits, batch.sampled.tokens) == (2, 0, 0.0, 0)
    assert batch.trained.tokens == 2 * (4 + 5 + 1)  # "n+1=", "n+1=m", end
    assert batch.trained.logits == 2 * 6


def test_a_solution_that_is_too_long_is_refused() -> None:
    tokenizer = build_tokenizer()
    assert len(solution_ids(PROBLEMS, tokenizer, 6)) == 7
    with pytest.raises(ValueError, match="the longest has 6 tokens with its end, got 5"):
        solution_ids(PROBLEMS, tokenizer, 5)


def test_a_tokenizer_without_an_end_token_is_refused() -> None:
    tokenizer = build_tokenizer()
    tokenizer.eos_token = None
    with pytest.raises(ValueError, match="needs a tokenizer with an end token"):
        solution_ids(PROBLEMS, tokenizer, 6)


def test_solutions_count_for_the_revision_of_data_that_they_are_trained_on() -> None:
    other = [dataclasses.replace(PROBLEMS[0], solution="another way"), *PROBLEMS[1:]]
    assert data_revision(PROBLEMS, with_solutions=False) == data_revision(
        other, with_solutions=False
    )
    assert data_revision(PROBLEMS, with_solutions=True) != data_revision(other, with_solutions=True)
