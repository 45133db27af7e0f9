"""Any data set of the reasoning_gym library as a task with disjoint roles."""

import difflib
import importlib
import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from study.tasks.base import Problem, Role, Score, check_request, prompt_id, prompt_role

_RESERVED = ("seed", "size")  # set here: they decide the order of problems, not their kind


class _Dataset(Protocol):
    """The part of a reasoning_gym data set that is used."""

    def __getitem__(self, index: int) -> dict[str, Any]: ...

    def score_answer(self, answer: str, entry: dict[str, Any]) -> float: ...


class ReasoningGymTask:
    """Problems of one data set of reasoning_gym, scored by the data set's own scorer.

    The partial score is the reward; a completion is correct if the score reaches the
    threshold. The role of a problem is a function of its question, so no question is in
    two roles. A scorer that raises costs its completion the reward, and is counted.

    Attributes:
        name: Name of the task.
        scorer_errors: Number of completions whose scorer raised, so far.
    """

    def __init__(
        self,
        dataset: str,
        params: Mapping[str, object] | None = None,
        threshold: float = 1.0,
        seed: int = 0,
        attempts_per_problem: int = 100,
    ) -> None:
        """Builds the task.

        Args:
            dataset: Registered name of the data set.
            params: Parameters of the data set's configuration.
            threshold: Lowest score that counts as correct, in (0, 1].
            seed: Seed of the data set: another order and other problems.
            attempts_per_problem: Draws per requested problem before a role counts as
                exhausted; draws that belong to other roles or repeat a question are spent.

        Raises:
            ValueError: If reasoning_gym is not installed, or the data set, a parameter or
                the threshold is not valid.
        """
        if not 0 < threshold <= 1:
            raise ValueError(f"the correctness threshold must be in (0, 1], got {threshold}.")
        self.name = f"reasoning_gym-{dataset}"
        self.scorer_errors = 0
        self._dataset_name = dataset
        self._threshold = threshold
        self._seed = seed
        self._attempts_per_problem = attempts_per_problem
        self._params = dict(params or {})
        _check_parameters(dataset, self._params)
        self._scorer = self._create(size=1)
        self._entries: dict[str, dict[str, Any]] = {}

    def problems(self, role: Role, count: int) -> list[Problem]:
        """Returns the first `count` problems of the role's fixed order.

        Raises:
            ValueError: If the role has fewer than `count` problems within the allowed draws.
        """
        check_request(role, count)
        attempts = self._attempts_per_problem * count
        problems: list[Problem] = []
        for entry in self._distinct_entries(attempts):
            problem = _as_problem(entry)
            if prompt_role(problem.prompt) == role:
                self._entries[problem.prompt_id] = entry
                problems.append(problem)
            if len(problems) == count:
                return problems
        raise ValueError(
            f"task {self.name} gave {len(problems)} distinct problems with role {role} in"
            f" {attempts} draws, got a request for {count}."
        )

    def score(self, problem: Problem, completion: str) -> Score:
        """Scores a completion, without surrounding blanks, with the data set's scorer.

        Raises:
            ValueError: If the problem did not come from this task's `problems`.
        """
        if problem.prompt_id not in self._entries:
            raise ValueError(f"problem {problem.prompt_id} does not belong to task {self.name}.")
        entry = self._entries[problem.prompt_id]
        try:
            reward = float(self._scorer.score_answer(completion.strip(), entry))
        except Exception:  # third-party scorers raise anything on malformed text
            self.scorer_errors += 1
            return Score(reward=0.0, correct=False)
        return Score(reward=reward, correct=reward >= self._threshold)

    def sample_text(self) -> str:
        """Returns the text of ten problems: more or rarer characters may exist."""
        return "".join(item.prompt + item.solution for item in self.problems("train", 10))

    def _distinct_entries(self, attempts: int) -> Iterator[dict[str, Any]]:
        dataset = self._create(size=attempts)
        seen: set[str] = set()
        for index in range(attempts):
            entry = dataset[index]
            if entry["question"] not in seen:
                seen.add(entry["question"])
                yield entry

    def _create(self, size: int) -> _Dataset:
        """Builds the data set; item `i` depends on the seed and `i`, not on the size."""
        try:
            dataset: _Dataset = _library("reasoning_gym").create_dataset(
                self._dataset_name, seed=self._seed, size=size, **self._params
            )
        except (AssertionError, TypeError, ValueError) as error:
            raise ValueError(
                f"reasoning_gym data set {self._dataset_name} refuses its parameters"
                f" {self._params}: {error}."
            ) from error
        return dataset


def _library(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ValueError(
            "reasoning_gym tasks need the extra `reasoning`, which is not installed."
        ) from error


def _check_parameters(dataset: str, params: Mapping[str, object]) -> None:
    registry: dict[str, tuple[type, type]] = _library("reasoning_gym.factory").DATASETS
    if dataset not in registry:
        raise ValueError(f"unknown reasoning_gym data set {dataset!r}{_hint(dataset, registry)}.")
    known = inspect.signature(registry[dataset][1]).parameters
    allowed = [name for name in known if name not in _RESERVED]
    for name in params:
        if name not in allowed:
            raise ValueError(
                f"reasoning_gym data set {dataset} has no parameter {name!r}{_hint(name, allowed)}."
            )


def _hint(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, known, n=3)
    return f"; close matches: {', '.join(close)}" if close else ""


def _as_problem(entry: Mapping[str, Any]) -> Problem:
    prompt = f"{entry['question']}\n"
    answer = str(entry["answer"])
    return Problem(prompt_id=prompt_id(prompt), prompt=prompt, answer=answer, solution=answer)
