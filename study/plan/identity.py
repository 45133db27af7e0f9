"""The name of a run is a hash of everything that changes its result."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any

from study.config import GrpoObjective, LoraMethod, Objective, RunConfig
from study.plan.description import Description

IDENTITY_VERSION = 1
"""Raised by hand when the numerics of a run change."""


def identity(
    config: RunConfig, model: Description, target_modules: list[str], phase: str
) -> dict[str, Any]:
    """Everything that decides a run's result: no names, paths, engines or package versions.

    The phase is in it because each phase is evaluated on prompts of its own.
    """
    return {
        "identity_version": IDENTITY_VERSION,
        **arm_identity(config, model, target_modules),
        "learning_rate": config.objective.learning_rate,
        "seed": config.seed,
        "eval_role": eval_role(phase),
    }


def arm_identity(
    config: RunConfig, model: Description, target_modules: list[str]
) -> dict[str, Any]:
    """The part of the identity that the runs of an arm share."""
    method: dict[str, Any] = {"name": config.method.name}
    if isinstance(config.method, LoraMethod):
        method |= {"rank": config.method.rank, "alpha": config.method.alpha}
        method |= {"alpha_rule": config.method.alpha_rule, "targets": target_modules}
    return {
        "method": method,
        "objective": _objective(config.objective),
        "evaluation": asdict(config.evaluation),
        "task": asdict(config.task) | {"data_revision": model.data_revision},
        "model": {"revision": model.model_revision, "dtype": config.model.dtype},
    }


def _objective(objective: Objective) -> dict[str, Any]:
    """What defines the loss; settings younger than the identity only where they change a result,
    so that no run gets another id.
    """
    unused = {"learning_rate"}
    if isinstance(objective, GrpoObjective):
        if not objective.entropy_shaping.is_on:
            unused.add("entropy_shaping")
        if objective.top_entropy_quantile == 1:
            unused.add("top_entropy_quantile")
    return {key: value for key, value in asdict(objective).items() if key not in unused}


def eval_role(phase: str) -> str:
    """The split that a phase is evaluated on."""
    return {"search": "eval", "report": "report"}[phase]


def short_hash(content: object, length: int = 12) -> str:
    """Hash of the canonical JSON of ``content``: sorted keys, floats to 6 significant digits."""
    text = json.dumps(_canonical(content), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def _canonical(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return {str(k): _canonical(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(v) for v in value]
    return value
