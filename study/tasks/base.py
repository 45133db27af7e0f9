"""What a task is: problems with split roles, and a score for each completion."""

import hashlib
from dataclasses import dataclass
from typing import Literal, Protocol

Role = Literal["train", "eval", "report"]

ROLES: tuple[Role, ...] = ("train", "eval", "report")


@dataclass(frozen=True)
class Problem:
    """One prompt with its reference answer.

    Attributes:
        prompt_id: Stable identifier, unique within the task.
        prompt: The text given to the model, verbatim.
        answer: The answer that `Task.score` accepts.
        solution: A worked solution that ends in the answer (what supervised training
            would use); may equal the answer.
    """

    prompt_id: str
    prompt: str
    answer: str
    solution: str


@dataclass(frozen=True)
class Score:
    """The verdict on one completion.

    Attributes:
        reward: What the policy gradient sees, dimensionless, usually in [0, 1].
        correct: Whether the completion counts towards accuracy.
    """

    reward: float
    correct: bool


class Task(Protocol):
    """Prompts with disjoint roles, and a function from text to score."""

    name: str

    def problems(self, role: Role, count: int) -> list[Problem]:
        """Returns the first `count` problems of the role's fixed order.

        Raises:
            ValueError: If the role has fewer than `count` problems.
        """
        ...

    def score(self, problem: Problem, completion: str) -> Score:
        """Scores the text that followed the problem's prompt, without special tokens."""
        ...

    def sample_text(self) -> str:
        """Returns text with the characters that a tokenizer must know for this task."""
        ...


def prompt_role(prompt: str) -> Role:
    """Returns the role of a prompt: 80 % train, 10 % eval, 10 % report, by its SHA-256.

    The role is a function of the text alone, so two roles can never share a prompt.
    """
    bucket = int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:8], "big") % 10
    if bucket < 8:
        return "train"
    return "eval" if bucket == 8 else "report"


def prompt_id(prompt: str) -> str:
    """Returns a stable identifier of a prompt: 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(prompt.encode()).hexdigest()[:16]


def check_request(role: str, count: int) -> None:
    """Checks the arguments of `Task.problems`.

    Raises:
        ValueError: If the role is unknown or the count is below 1.
    """
    if role not in ROLES:
        raise ValueError(f"role must be one of {', '.join(ROLES)}, got {role!r}.")
    if count < 1:
        raise ValueError(f"the number of problems must be at least 1, got {count}.")
