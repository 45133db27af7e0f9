"""What the lanes of a pack share beside the base: the tokenizer and tokenized problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn
from transformers.trainer_pt_utils import get_parameter_names

from study.tasks.base import Problem, Role
from study.tasks.loading import load_task
from study.train.engine import RunSpec
from study.train.models import end_token_ids, load_tokenizer

NO_DECAY = [r"bias", r"layernorm", r"rmsnorm", r"(?:^|\.)norm(?:$|\.)", r"_norm(?:$|\.)"]
"""Parameters that the library's trainer does not decay (``Trainer.get_decay_parameter_names``)."""


@dataclass(frozen=True)
class RunData:
    """Problems of a run, with their prompts' token ids."""

    train: list[Problem]
    train_ids: list[list[int]]
    held_out: list[Problem]
    held_out_ids: list[list[int]]


class Shared:
    """Tokenizer and data of a pack; equal requests are answered once.

    Attributes:
        tokenizer: The model's tokenizer.
        end: Tokens that end a completion.
        no_decay: Parameters of a full model that weight decay leaves alone.
    """

    def __init__(self, spec: RunSpec, model: Any) -> None:
        """Loads the tokenizer of a run's model, which all runs of the pack have."""
        self.tokenizer = load_tokenizer(spec.config.model)
        self.end = end_token_ids(model, self.tokenizer)
        self.end_or_pad = frozenset([*self.end, self.tokenizer.pad_token_id])
        decayed = set(get_parameter_names(model, [nn.LayerNorm], NO_DECAY))
        names = (name for name, _ in model.named_parameters())
        self.no_decay = frozenset(name for name in names if name not in decayed)
        self._task = load_task(spec.config.task)
        self._known: dict[tuple[str, int], tuple[list[Problem], list[list[int]]]] = {}

    def data(self, spec: RunSpec) -> RunData:
        """The problems that a run trains on, and those that it is evaluated on."""
        train = self._problems("train", spec.config.task.train_prompts)
        return RunData(
            *train, *self._problems(spec.held_out_role, spec.config.evaluation.eval_prompts)
        )

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """The texts of completions, without special tokens; equal ones are decoded once."""
        rows = [tuple(row) for row in ids]
        distinct = list(dict.fromkeys(rows))
        decode = self.tokenizer.decode
        if self.tokenizer.is_fast and not self.tokenizer.clean_up_tokenization_spaces:
            decode = self.tokenizer.backend_tokenizer.decode  # all that the former would call
        texts = [decode(list(row), skip_special_tokens=True) for row in distinct]
        text_of = dict(zip(distinct, texts, strict=True))
        return [text_of[row] for row in rows]

    def _problems(self, role: Role, count: int) -> tuple[list[Problem], list[list[int]]]:
        if (role, count) not in self._known:
            problems = self._task.problems(role, count)
            ids = self.tokenizer([problem.prompt for problem in problems])["input_ids"]
            self._known[role, count] = (problems, ids)
        return self._known[role, count]
