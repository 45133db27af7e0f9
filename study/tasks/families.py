"""The families of short exercises that the lab models are trained on.

A family draws exercises from a `random.Random`. Each exercise has a worked solution and a
corrupted one: the same working with plausible wrong digits, ending in a wrong answer.
All text is printable ASCII; the prompt and the solution are one character per token for
the lab tokenizer.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

DIGITS = "0123456789"


@dataclass(frozen=True)
class Exercise:
    """One drawn exercise.

    Attributes:
        prompt: Text up to the point where the model continues.
        answer: The only accepted answer, in canonical form.
        solution: The worked solution; its text after the last `=` is the answer.
        corrupted: A worked solution of the same form whose final answer is wrong.
    """

    prompt: str
    answer: str
    solution: str
    corrupted: str


@dataclass(frozen=True)
class Family:
    """A named generator of exercises.

    Attributes:
        name: Name used in configuration.
        draw: Draws one exercise; the same generator state gives the same exercise.
        size: Number of distinct prompts the family can draw.
    """

    name: str
    draw: Callable[[Random], Exercise]
    size: int


def misprint(text: str, rng: Random) -> str:
    """Returns the text with one of its decimal digits replaced by a different digit."""
    places = [place for place, character in enumerate(text) if character in DIGITS]
    place = rng.choice(places)
    digit = rng.choice([digit for digit in DIGITS if digit != text[place]])
    return text[:place] + digit + text[place + 1 :]


def _two_digits(rng: Random) -> int:
    return rng.randint(10, 99)


def _slipped(value: int, rng: Random) -> int:
    """A value that differs from the given one in one digit, as a slip of the pen would."""
    return int(misprint(str(value), rng))


def _worked(partial: int, rest: str, finish: Callable[[int], int], rng: Random) -> tuple[str, str]:
    """Writes `<partial><rest>=<final>` correctly and with one wrong line of working.

    Half of the slips are in the partial result, from which the rest then follows; the
    other half are in the final result.
    """
    final = finish(partial)
    wrong_partial, wrong_final = partial, _slipped(final, rng)
    if rng.random() < 0.5:
        wrong_partial = _slipped(partial, rng)
        wrong_final = finish(wrong_partial)
    return f"{partial}{rest}={final}", f"{wrong_partial}{rest}={wrong_final}"


def _draw_sum3(rng: Random) -> Exercise:
    first, second, third = _two_digits(rng), _two_digits(rng), _two_digits(rng)
    partial = first + second
    solution, wrong = _worked(partial, f"+{third}", lambda value: value + third, rng)
    return Exercise(f"{first}+{second}+{third}=", str(partial + third), solution, wrong)


def _draw_difference(rng: Random) -> Exercise:
    first, second = _two_digits(rng), _two_digits(rng)
    answer = str(first - second)
    return Exercise(f"{first}-{second}=", answer, answer, misprint(answer, rng))


def _draw_product(rng: Random) -> Exercise:
    first, second, third = _two_digits(rng), rng.randint(2, 9), rng.randint(2, 9)
    partial = first * second
    solution, wrong = _worked(partial, f"*{third}", lambda value: value * third, rng)
    return Exercise(f"{first}*{second}*{third}=", str(partial * third), solution, wrong)


def _draw_comparison(rng: Random) -> Exercise:
    first, second = _two_digits(rng), _two_digits(rng)
    answer = "<" if first < second else ">" if first > second else "same"
    wrong = rng.choice([sign for sign in ("<", ">", "same") if sign != answer])
    return Exercise(f"{first}?{second}=", answer, answer, wrong)


def _draw_sorting(rng: Random) -> Exercise:
    values = [_two_digits(rng) for _ in range(3)]
    answer = ",".join(str(value) for value in sorted(values))
    prompt = ",".join(str(value) for value in values) + "="
    return Exercise(prompt, answer, answer, misprint(answer, rng))


def _draw_gcd(rng: Random) -> Exercise:
    first, second = _two_digits(rng), _two_digits(rng)
    answer = str(math.gcd(first, second))
    return Exercise(f"gcd {first},{second}=", answer, answer, misprint(answer, rng))


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family("sum3", _draw_sum3, 90**3),
        Family("difference", _draw_difference, 90**2),
        Family("product", _draw_product, 90 * 8 * 8),
        Family("comparison", _draw_comparison, 90**2),
        Family("sorting", _draw_sorting, 90**3),
        Family("gcd", _draw_gcd, 90**2),
    )
}
