"""Tasks: prompts with split roles, and the way from text to reward (torch-free)."""

from study.tasks.arithmetic import ArithmeticTask
from study.tasks.base import Problem, Role, Score, Task
from study.tasks.reasoning_gym import ReasoningGymTask

__all__ = ["ArithmeticTask", "Problem", "ReasoningGymTask", "Role", "Score", "Task"]
