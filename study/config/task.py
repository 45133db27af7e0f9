"""Where prompts come from and how a completion is judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from study.config.laws import require


@dataclass(kw_only=True)
class TaskConfig:
    """Where prompts come from and how a completion is judged."""

    name: str
    """Which task: ``arithmetic`` or ``reasoning_gym``."""
    train_prompts: int
    """Size of the pool of training prompts."""
    max_completion_length: int
    """Longest completion, in tokens, in training and in evaluation."""

    @property
    def label(self) -> str:
        """Name that tells tasks apart in records."""
        return self.name

    def __post_init__(self) -> None:
        require(self.train_prompts >= 1, "task.train_prompts >= 1", got=self.train_prompts)
        require(
            self.max_completion_length >= 1,
            "task.max_completion_length >= 1",
            got=self.max_completion_length,
        )


@dataclass(kw_only=True)
class ArithmeticTaskConfig(TaskConfig):
    """Worked arithmetic, one family of the lab models' pre-training."""

    family: str = "sum3"
    """Task family, see :mod:`study.tasks.families`."""

    @property
    def label(self) -> str:
        """Name that tells tasks apart in records."""
        return f"{self.name}-{self.family}"


@dataclass(kw_only=True)
class ReasoningGymTaskConfig(TaskConfig):
    """Any dataset of the ``reasoning_gym`` library."""

    dataset: str
    """Dataset name, for example ``chain_sum``."""
    params: dict[str, Any] = field(default_factory=dict)
    """Parameters of the dataset."""
    threshold: float
    """A completion is correct if its score is at least this; there is no default on purpose."""

    @property
    def label(self) -> str:
        """Name that tells tasks apart in records."""
        return f"{self.name}-{self.dataset}"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.threshold <= 1, "0 < task.threshold <= 1", threshold=self.threshold)


TASKS: dict[str, type[TaskConfig]] = {
    "arithmetic": ArithmeticTaskConfig,
    "reasoning_gym": ReasoningGymTaskConfig,
}
