"""Every family: answers verified independently, corruption really wrong, drawing repeatable."""

import math
import re
from collections.abc import Callable
from random import Random

import pytest

from study.tasks.arithmetic import stated_answer
from study.tasks.families import FAMILIES, Exercise, misprint


def _comparison(prompt: str) -> str:
    first, second = (int(text) for text in prompt.rstrip("=").split("?"))
    return "<" if first < second else ">" if second < first else "same"


def _sorting(prompt: str) -> str:
    return ",".join(sorted(prompt.rstrip("=").split(",")))  # equal lengths: text order is order


def _gcd(prompt: str) -> str:
    first, second = (int(text) for text in re.findall(r"\d+", prompt))
    return str(math.gcd(first, second))


def _evaluated(prompt: str) -> str:
    return str(eval(prompt.rstrip("=")))


REFERENCES: dict[str, Callable[[str], str]] = {
    "sum3": _evaluated,
    "difference": _evaluated,
    "product": _evaluated,
    "comparison": _comparison,
    "sorting": _sorting,
    "gcd": _gcd,
}


def _draws(family: str, count: int = 2000) -> list[Exercise]:
    rng = Random(7)
    return [FAMILIES[family].draw(rng) for _ in range(count)]


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_agree_with_an_independent_computation(family: str) -> None:
    for exercise in _draws(family):
        assert exercise.answer == REFERENCES[family](exercise.prompt)


@pytest.mark.parametrize("family", FAMILIES)
def test_solution_states_the_answer_and_corruption_does_not(family: str) -> None:
    for exercise in _draws(family):
        assert stated_answer(exercise.solution) == exercise.answer
        assert stated_answer(exercise.corrupted) != exercise.answer


@pytest.mark.parametrize("family", ["sum3", "product"])
def test_every_line_of_worked_solutions_is_true(family: str) -> None:
    for exercise in _draws(family):
        working, _, final = exercise.solution.partition("=")
        assert eval(working) == int(final) == eval(exercise.prompt.rstrip("="))


@pytest.mark.parametrize("family", FAMILIES)
def test_text_is_short_printable_ascii(family: str) -> None:
    for exercise in _draws(family):
        assert len(exercise.prompt) <= 10
        for text in (exercise.solution, exercise.corrupted):
            assert 1 <= len(text) <= 13  # 14 tokens with the end of the sequence
            assert (exercise.prompt + text).isascii()
            assert (exercise.prompt + text).isprintable()


@pytest.mark.parametrize("family", FAMILIES)
def test_same_generator_state_gives_the_same_exercises(family: str) -> None:
    assert _draws(family, 50) == _draws(family, 50)


@pytest.mark.parametrize("family", ["difference", "product", "comparison", "gcd"])
def test_size_bounds_the_number_of_distinct_prompts(family: str) -> None:
    distinct = {exercise.prompt for exercise in _draws(family, 30_000)}
    assert 0.9 * FAMILIES[family].size < len(distinct) <= FAMILIES[family].size


def test_misprint_changes_exactly_one_digit() -> None:
    rng = Random(0)
    for _ in range(200):
        changed = misprint("-12,34", rng)
        assert sum(old != new for old, new in zip("-12,34", changed, strict=True)) == 1
        assert re.fullmatch(r"-\d\d,\d\d", changed)
