"""Short arithmetic exercises, scored by exact comparison of the final answer."""

import difflib
from collections.abc import Iterator
from random import Random

from study.tasks.base import Problem, Role, Score, check_request, prompt_id, prompt_role
from study.tasks.families import FAMILIES, Exercise, Family


def find_family(name: str) -> Family:
    """Returns the family of that name.

    Raises:
        ValueError: If there is no such family; names the close matches.
    """
    if name in FAMILIES:
        return FAMILIES[name]
    close = difflib.get_close_matches(name, FAMILIES, n=3) or list(FAMILIES)
    raise ValueError(f"unknown arithmetic family {name!r}; did you mean {' or '.join(close)}?")


def stated_answer(completion: str) -> str:
    """Returns the answer that a completion states.

    It is the last line of the completion after its last `=`, without surrounding blanks.
    """
    last_line = completion.strip().rpartition("\n")[2]
    return last_line.rpartition("=")[2].strip()


def distinct_exercises(family: Family) -> Iterator[Exercise]:
    """Yields every exercise of a family once, in a fixed order."""
    rng = Random(f"{family.name} problems")
    seen: set[str] = set()
    while len(seen) < family.size:
        exercise = family.draw(rng)
        if exercise.prompt not in seen:
            seen.add(exercise.prompt)
            yield exercise


class ArithmeticTask:
    """Exercises of one family; the reward is 1.0 for the right answer, else 0.0."""

    def __init__(self, family: str = "sum3") -> None:
        """Builds the task.

        Args:
            family: Name of a family of `study.tasks.families`.

        Raises:
            ValueError: If there is no such family.
        """
        self._family = find_family(family)
        self.name = f"arithmetic-{family}"

    def problems(self, role: Role, count: int) -> list[Problem]:
        """Returns the first `count` problems of the role's fixed order.

        Raises:
            ValueError: If the role has fewer than `count` problems.
        """
        check_request(role, count)
        problems: list[Problem] = []
        for exercise in distinct_exercises(self._family):
            if prompt_role(exercise.prompt) == role:
                problems.append(_as_problem(exercise))
            if len(problems) == count:
                return problems
        raise ValueError(
            f"task {self.name} has {len(problems)} problems with role {role}, got a request"
            f" for {count}."
        )

    def score(self, problem: Problem, completion: str) -> Score:
        """Scores a completion: the stated answer must equal the reference character by character.

        A leading zero, a plus sign or text after the answer makes it wrong.
        """
        correct = stated_answer(completion) == problem.answer
        return Score(reward=float(correct), correct=correct)

    def sample_text(self) -> str:
        """Returns every digit plus the text of one hundred exercises."""
        problems = self.problems("train", 100)
        return "0123456789" + "".join(problem.prompt + problem.solution for problem in problems)


def _as_problem(exercise: Exercise) -> Problem:
    return Problem(
        prompt_id=prompt_id(exercise.prompt),
        prompt=exercise.prompt,
        answer=exercise.answer,
        solution=exercise.solution,
    )
