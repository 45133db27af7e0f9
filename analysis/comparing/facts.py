"""What an arm is, apart from its name: method, rank, targets, batch, and the rest of its config."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from analysis.claims.c20_width import hidden_size
from analysis.claims.c21_alpha import alpha_of
from analysis.reading.arms import Arm, arms
from analysis.reading.sweep import Sweep
from study.plan.arms import NOT_COMPARED, flatten

SAME_RESULT = (
    *NOT_COMPARED,
    "objective.micro_batch_size",
    "engine.name",
    "engine.pack_size",
)
"""Keys that change no result, or that every arm tunes for itself; records say which engine ran."""


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
    """The config with keys joined by dots, without the keys that change no result."""

    @property
    def name(self) -> str:
        """Of the arm."""
        return self.arm.name


def arm_facts(sweep: Sweep) -> tuple[ArmFacts, ...]:
    """Every arm of the plan: FullFT first, then by rank, then by name."""
    return tuple(_facts(sweep, arm) for arm in arms(sweep))


def _facts(sweep: Sweep, arm: Arm) -> ArmFacts:
    planned = sweep.plan["arms"][arm.name]
    config = planned["config"]
    settings = {key: value for key, value in flatten(config).items() if _is_known(value)}
    width = hidden_size(sweep, arm)
    model = {f"model.{key}": value for key, value in _described(planned).items()}
    if width is not None:
        model["model.hidden_size"] = width
    kept = {k: v for k, v in (settings | model).items() if k not in SAME_RESULT}
    return ArmFacts(
        arm=arm,
        targets=_targets(arm, config["method"]),
        batch=settings.get("objective.prompts_per_step"),
        alpha=None if arm.is_full else alpha_of(sweep, arm),
        hidden_size=width,
        settings=kept,
    )


def _described(planned: dict[str, Any]) -> dict[str, Any]:
    """What the plan found out about the model and its data, where it did."""
    model = planned.get("model") or {}
    keys = ("total_params", "model_revision", "data_revision")
    return {key: model[key] for key in keys if _is_known(model.get(key))}


def _is_known(value: Any) -> bool:
    """Whether a plan states a fact; an imported one leaves None or NaN where it does not."""
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def _targets(arm: Arm, method: dict[str, Any]) -> str | None:
    if arm.is_full:
        return "every parameter"
    targets = method.get("target_modules")
    if isinstance(targets, list):
        return ", ".join(sorted(map(str, targets)))
    return None if targets is None else str(targets)
