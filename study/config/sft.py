"""What a run optimises by supervised fine-tuning."""

from __future__ import annotations

from dataclasses import dataclass

from study.config.objective import Objective


@dataclass(kw_only=True)
class SftObjective(Objective):
    """Next-token prediction on the task's worked solutions.

    The loss is the mean negative log-likelihood, in nats, over the tokens of a step's solutions,
    end tokens included; prompts are read and not predicted (TRL's completion-only loss).
    """
