"""A run of supervised fine-tuning through TRL's SFTTrainer."""

import itertools
import time
from collections.abc import Mapping, Sequence
from typing import Any

from datasets import Dataset
from trl import SFTTrainer

from study.tasks.base import Problem
from study.train.methods import adapter_config
from study.train.rewards import Scorer
from study.train.solutions import Solutions
from study.train.trl.arguments import sft_arguments
from study.train.trl.session import Session

IGNORED = -100
"""Label of a token that is read and not predicted."""


class SftSession(Session):
    """One run under ``objective=sft``."""

    def make_source(self, scorer: Scorer, problems: Sequence[Problem]) -> Solutions:
        """The solutions, and the order in which steps read them."""
        self.solutions = Solutions(self.config, problems, self.tokenizer)
        steps = itertools.islice(self.solutions.steps(), self.config.objective.steps)
        self._steps = list(steps)
        return self.solutions

    def make_trainer(self, model: Any, **shared: Any) -> Any:
        """TRL's trainer, which takes the rows in the order in which they lie."""
        return SFTTrainer(
            model=model,
            args=sft_arguments(self.config, str(self.spec.directory)),
            train_dataset=self._rows(),
            processing_class=self.tokenizer,
            peft_config=adapter_config(self.config.method, self.spec.target_modules),
            **shared,
        )

    def evaluate(self, model: Any, step: int) -> None:
        """See :class:`Session`."""
        super().evaluate(model, step)
        self._step_began = time.perf_counter()

    def after_step(self, model: Any, step: int, logs: Mapping[str, Any]) -> None:
        """See :class:`Session`; the trainer does not say how long a step took."""
        taken = time.perf_counter() - self._step_began
        self.solutions.read(self._steps[step - 1])
        super().after_step(model, step, {**logs, "step_time": taken})
        self._step_began = time.perf_counter()

    def _rows(self) -> Dataset:
        """The rows of every step, one after the other."""
        known, chosen = self.solutions, [index for step in self._steps for index in step]
        pairs = [(known.prompts[index], known.completions[index]) for index in chosen]
        return Dataset.from_dict(
            {
                "input_ids": [prompt + solution for prompt, solution in pairs],
                "labels": [[IGNORED] * len(prompt) + solution for prompt, solution in pairs],
            }
        )
