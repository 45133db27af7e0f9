"""Splits, identifiers and scoring of arithmetic tasks."""

from random import Random

import pytest

from study.tasks import ArithmeticTask, Problem, Score
from study.tasks.base import ROLES, prompt_role
from study.tasks.families import FAMILIES, Exercise, Family

SUM = Problem(prompt_id="x", prompt="12+34+56=", answer="102", solution="46+56=102")


@pytest.mark.parametrize("family", FAMILIES)
def test_roles_share_no_prompt(family: str) -> None:
    task = ArithmeticTask(family)
    train = {problem.prompt for problem in task.problems("train", 4000)}
    evaluation = {problem.prompt for problem in task.problems("eval", 512)}
    report = {problem.prompt for problem in task.problems("report", 512)}
    assert (len(train), len(evaluation), len(report)) == (4000, 512, 512)
    assert not train & evaluation and not train & report and not evaluation & report


def test_role_is_a_fixed_function_of_the_prompt() -> None:
    roles = [prompt_role(f"{number}+1=") for number in range(12, 16)]
    assert roles == ["train", "eval", "report", "train"]


def test_role_shares_are_eight_to_one_to_one() -> None:
    roles = [prompt_role(str(number)) for number in range(20_000)]
    shares = [roles.count(role) / len(roles) for role in ROLES]
    assert shares == pytest.approx([0.8, 0.1, 0.1], abs=0.01)


def test_order_is_fixed_and_a_longer_request_extends_a_shorter_one() -> None:
    first, second = ArithmeticTask("sum3"), ArithmeticTask("sum3")
    assert first.problems("eval", 300)[:100] == second.problems("eval", 100)


def test_identifiers_are_unique() -> None:
    problems = ArithmeticTask("difference").problems("train", 3000)
    assert len({problem.prompt_id for problem in problems}) == 3000


@pytest.mark.parametrize(
    ("completion", "correct"),
    [
        ("46+56=102", True),
        ("47+56=102", True),  # only the outcome is verified
        ("102", True),
        (" 46 + 56 = 102 \n", True),
        ("46+56=103", False),
        ("46+56=102=103", False),
        ("46+56=103=102", True),  # the last statement counts
        ("103\n102", True),
        ("102\n103", False),
        ("46+56=102.", False),
        ("46+56=102 done", False),
        ("46+56=0102", False),
        ("46+56=+102", False),
        ("46+56=-102", False),
        ("46+56=102.0", False),
        ("46+56=1 02", False),
        ("46+56=", False),
        ("46+56", False),
        ("46+56=10²", False),
        ("", False),
        ("\n", False),
        ("=", False),
    ],
)
def test_score_table(completion: str, correct: bool) -> None:
    expected = Score(reward=float(correct), correct=correct)
    assert ArithmeticTask("sum3").score(SUM, completion) == expected


def test_negative_answers_need_their_sign() -> None:
    task = ArithmeticTask("difference")
    problem = Problem(prompt_id="x", prompt="12-34=", answer="-22", solution="-22")
    assert task.score(problem, "-22").correct
    assert not task.score(problem, "22").correct


def test_sample_text_holds_every_character_of_the_task() -> None:
    task = ArithmeticTask("sum3")
    known = set(task.sample_text())
    assert all(set(item.prompt + item.solution) <= known for item in task.problems("eval", 200))


def test_unknown_family_names_the_close_one() -> None:
    with pytest.raises(ValueError, match="'sum4'; did you mean sum3"):
        ArithmeticTask("sum4")


def test_too_many_problems_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(rng: Random) -> Exercise:
        number = str(rng.randrange(5))
        return Exercise(f"{number}=", number, number, "x")

    monkeypatch.setitem(FAMILIES, "echo", Family("echo", draw, size=5))
    with pytest.raises(ValueError, match=r"arithmetic-echo has \d problems .* a request for 6"):
        ArithmeticTask("echo").problems("train", 6)


def test_count_below_one_and_unknown_role_are_refused() -> None:
    task = ArithmeticTask()
    with pytest.raises(ValueError, match="at least 1, got 0"):
        task.problems("eval", 0)
    with pytest.raises(ValueError, match="got 'test'"):
        task.problems("test", 1)  # type: ignore[arg-type]
