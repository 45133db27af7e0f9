"""What an arm is, apart from its name: method, rank, targets, batch, and the rest of its config."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from analysis.claims.facts import alpha_of, hidden_size
from analysis.claims.groups import settings
from analysis.reading.arms import Arm, arms
from analysis.reading.sweep import Sweep

DESCRIBED = ("total_params", "model_revision", "data_revision")
"""What a plan found out about the model of an arm and its data."""


@dataclass(frozen=True)
class ArmFacts:
    """One arm of one experiment; None where the sweep does not say (an imported one)."""

    arm: Arm
    targets: str | None
    """Adapted modules: a preset, or names; of full fine-tuning ``every parameter``."""
    batch: int | None
    """Prompts per optimizer step."""
    alpha: float | None
    """The alpha of alpha / rank; None under full fine-tuning."""
    hidden_size: int | None
    settings: dict[str, Any]
    """What is stated of config, model and data, by dotted key, without what changes no result."""

    @property
    def name(self) -> str:
        """Of the arm."""
        return self.arm.name


def arm_facts(sweep: Sweep) -> tuple[ArmFacts, ...]:
    """Every arm of the plan: FullFT first, then by rank, then by name."""
    flat = settings(sweep)
    return tuple(_facts(sweep, arm, flat[arm.name]) for arm in arms(sweep))


def _facts(sweep: Sweep, arm: Arm, config: dict[str, Any]) -> ArmFacts:
    width = hidden_size(sweep, arm)
    model = sweep.plan["arms"][arm.name].get("model") or {}
    stated = config | {f"model.{key}": model.get(key) for key in DESCRIBED}
    stated["model.hidden_size"] = width
    known = {key: value for key, value in stated.items() if _is_known(value)}
    return ArmFacts(
        arm=arm,
        targets=_targets(arm, config.get("method.target_modules")),
        batch=known.get("objective.prompts_per_step"),
        alpha=None if arm.is_full else alpha_of(sweep, arm),
        hidden_size=width,
        settings=known,
    )


def _is_known(value: Any) -> bool:
    """Whether a plan states a fact; an imported one leaves None or NaN where it does not."""
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def _targets(arm: Arm, targets: Any) -> str | None:
    if arm.is_full:
        return "every parameter"
    if isinstance(targets, list):
        return ", ".join(sorted(map(str, targets)))
    return None if targets is None else str(targets)
