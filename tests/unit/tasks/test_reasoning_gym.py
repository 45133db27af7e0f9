"""Reasoning-gym tasks: splits, partial scores, thresholds and failing scorers."""

import subprocess
import sys
from typing import Any

import pytest

from study.tasks import ReasoningGymTask, Score

pytest.importorskip("reasoning_gym")


class _Scorer:
    """Stands in for a data set: a fixed score, or an exception."""

    def __init__(self, outcome: float | Exception) -> None:
        self.outcome = outcome

    def __getitem__(self, index: int) -> dict[str, Any]:
        raise IndexError(index)

    def score_answer(self, answer: str, entry: dict[str, Any]) -> float:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def _with_scorer(outcome: float | Exception, threshold: float = 1.0) -> ReasoningGymTask:
    task = ReasoningGymTask("basic_arithmetic", threshold=threshold)
    task._scorer = _Scorer(outcome)
    return task


def test_right_and_wrong_answers() -> None:
    task = ReasoningGymTask("basic_arithmetic", {"max_terms": 3})
    problem = task.problems("eval", 5)[-1]
    assert problem.prompt.endswith("\n")
    assert task.score(problem, f" {problem.answer}\n") == Score(reward=1.0, correct=True)
    assert not task.score(problem, "no idea").correct
    assert task.scorer_errors == 0


def test_roles_share_no_question_even_where_questions_repeat() -> None:
    task = ReasoningGymTask("gcd", {"max_value": 40})
    prompts = [{item.prompt for item in task.problems(role, 40)} for role in ("train", "eval")]
    assert len(prompts[0]) == len(prompts[1]) == 40
    assert not prompts[0] & prompts[1]


def test_order_is_fixed_and_a_longer_request_extends_a_shorter_one() -> None:
    short = ReasoningGymTask("gcd").problems("eval", 5)
    assert ReasoningGymTask("gcd").problems("eval", 20)[:5] == short


@pytest.mark.parametrize(("threshold", "correct"), [(0.5, True), (0.4, True), (0.51, False)])
def test_partial_score_is_the_reward_and_the_threshold_decides_accuracy(
    threshold: float, correct: bool
) -> None:
    task = _with_scorer(0.5, threshold)
    problem = task.problems("train", 1)[0]
    assert task.score(problem, "x") == Score(reward=0.5, correct=correct)


def test_raising_scorer_is_counted_and_never_fatal() -> None:
    task = _with_scorer(RuntimeError("malformed"))
    problem = task.problems("train", 1)[0]
    assert task.score(problem, "x") == task.score(problem, "y") == Score(0.0, False)
    assert task.scorer_errors == 2


def test_unknown_data_set_names_the_close_one() -> None:
    with pytest.raises(ValueError, match="'basic_arithmetics'; close matches: basic_arithmetic"):
        ReasoningGymTask("basic_arithmetics")


def test_unknown_parameter_names_the_close_one() -> None:
    with pytest.raises(ValueError, match="no parameter 'max_term'; close matches: max_terms"):
        ReasoningGymTask("basic_arithmetic", {"max_term": 3})


def test_refused_value_and_reserved_parameter() -> None:
    with pytest.raises(ValueError, match=r"gcd refuses its parameters .* min_numbers must be"):
        ReasoningGymTask("gcd", {"min_numbers": -5})
    with pytest.raises(ValueError, match="no parameter 'seed'"):
        ReasoningGymTask("gcd", {"seed": 3})


@pytest.mark.parametrize("threshold", [0.0, 1.5])
def test_threshold_outside_its_range_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match=rf"in \(0, 1\], got {threshold}"):
        ReasoningGymTask("gcd", threshold=threshold)


def test_exhausted_role_is_refused() -> None:
    task = ReasoningGymTask("gcd", {"max_value": 2}, attempts_per_problem=2)
    with pytest.raises(ValueError, match="got a request for 50"):
        task.problems("eval", 50)


def test_foreign_problem_is_refused() -> None:
    problem = ReasoningGymTask("gcd").problems("train", 1)[0]
    with pytest.raises(ValueError, match="does not belong to task reasoning_gym-lcm"):
        ReasoningGymTask("lcm").score(problem, "1")


def test_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "reasoning_gym.factory", None)
    with pytest.raises(ValueError, match="extra `reasoning`"):
        ReasoningGymTask("gcd")


def test_tasks_import_neither_torch_nor_transformers() -> None:
    code = "import sys, study.tasks; print({'torch', 'transformers'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "set()"
