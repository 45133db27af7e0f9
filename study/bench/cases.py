"""What is measured: a model, the size of a step, a method and a reward."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

from study.compose import compose
from study.plan.description import Description
from study.sweep.launch.assemble import make_arm
from study.tasks.arithmetic import ArithmeticTask
from study.tasks.base import Problem, Score
from study.train.engine import RunSpec

EVAL_PROMPTS = 512
MOST_LANES, MOST_ROWS = 16, 512
"""Lanes of a pack, and completions of all its lanes together."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """Runs that differ in their seed only."""

    model: str
    """A lab model: ``lab64`` has 2 layers of hidden size 64, ``lab128`` 4 of 128."""
    rows: int
    """Completions of a step: groups of 8, or of 4 where a step has 8."""
    method: str
    """``lora`` (rank 8, all layers) or ``full``."""
    reward: str
    """``task`` (three-term sums, one completion in five is right at first) or ``parity``."""
    lanes: int
    """Runs of a pack."""

    @property
    def num_generations(self) -> int:
        """Completions of a group."""
        return 8 if self.rows > 8 else 4

    @property
    def prompts(self) -> int:
        """Prompts of a step."""
        return self.rows // self.num_generations

    @property
    def label(self) -> str:
        """The case in a few words."""
        return f"{self.model}, {self.rows} rows, {self.method}, {self.reward}"


def step_cases() -> list[Case]:
    """The cases of the paired measurement."""
    kinds = [
        ("lab64", 16, ("task", "parity")),
        ("lab64", 64, ("task", "parity")),
        ("lab128", 8, ("parity",)),
        ("lab128", 32, ("parity",)),
    ]
    return [
        Case(
            model=model,
            rows=rows,
            method=method,
            reward=reward,
            lanes=min(MOST_LANES, MOST_ROWS // rows),
        )
        for model, rows, rewards in kinds
        for method in ("lora", "full")
        for reward in rewards
    ]


def make_specs(case: Case, steps: int, eval_prompts: int, directory: Path) -> list[RunSpec]:
    """The runs of a case, seeds 0, 1, ...: ``steps`` steps, evaluated before and after them.

    Args:
        case: What they are.
        steps: Optimizer steps.
        eval_prompts: Held-out prompts of an evaluation, all in one batch.
        directory: Their attempts' directories are made below it.
    """
    from study.train.describe import describe  # seconds of import that --help need not pay

    config = compose(overrides(case, steps, eval_prompts)).run()
    model = describe(config)
    arm = make_arm(case.method, config, [], [config.objective.learning_rate], model)
    specs = []
    for seed in range(case.lanes):
        home = directory / str(seed)
        home.mkdir(parents=True, exist_ok=True)
        spec = RunSpec(
            run_id=f"seed-{seed}",
            config=replace(config, seed=seed),
            model=arm.model,
            target_modules=arm.target_modules,
            trainable_params=arm.trainable_params,
            eval_role="eval",
            directory=home,
        )
        specs.append(spec)
    return specs


def overrides(case: Case, steps: int, eval_prompts: int) -> list[str]:
    """The command line of a run of the case."""
    method = ["method=lora", "method.rank=8"] if case.method == "lora" else ["method=full"]
    return [
        *method,
        f"model={case.model}",
        f"objective.steps={steps}",
        f"objective.no_signal_steps={steps}",
        f"objective.prompts_per_step={case.prompts}",
        f"objective.num_generations={case.num_generations}",
        f"evaluation.eval_every={steps}",
        "evaluation.final_window=1",
        f"evaluation.eval_prompts={eval_prompts}",
        f"evaluation.eval_batch_size={eval_prompts}",
        "save=none",
    ]


def layers(model: Description) -> int:
    """Blocks of a described model."""
    return sum(name.endswith(".q_proj") for name in model.linear_modules)


def parity(task: ArithmeticTask, problem: Problem, completion: str) -> Score:
    """A reward without any sense: the last bit of the completion's SHA-256."""
    odd = hashlib.sha256(completion.encode()).digest()[-1] % 2 == 1
    return Score(reward=float(odd), correct=odd)


@contextmanager
def rewarding(reward: str) -> Iterator[None]:
    """Let the arithmetic task score by a case's ``reward`` inside."""
    if reward == "task":
        yield
        return
    with patch.object(ArithmeticTask, "score", parity):
        yield
