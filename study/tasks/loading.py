"""From a task's configuration to the task."""

from study.config import ArithmeticTaskConfig, ReasoningGymTaskConfig, TaskConfig
from study.tasks.arithmetic import ArithmeticTask
from study.tasks.base import Task
from study.tasks.reasoning_gym import ReasoningGymTask


def load_task(config: TaskConfig) -> Task:
    """Returns the task that a configuration describes.

    Raises:
        ValueError: If the task refuses its settings, or the library behind it is missing.
    """
    if isinstance(config, ArithmeticTaskConfig):
        return ArithmeticTask(family=config.family)
    assert isinstance(config, ReasoningGymTaskConfig), config
    return ReasoningGymTask(
        dataset=config.dataset, params=config.params, threshold=config.threshold
    )
