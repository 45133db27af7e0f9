"""Arms that differ in named settings only: what a fair comparison is made of."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from analysis.reading.arms import Arm, arms, model_name, task_name
from analysis.reading.sweep import Sweep
from study.plan.arms import flatten, is_factor

NEVER_COMPARED = (
    "seed",
    "save",
    "engine",
    "probes",
    "method.default_learning_rate",
    "objective.learning_rate",
    "objective.micro_batch_size",
)
"""Settings that change no result, or that each arm has its own of: the tuned learning rate.
Micro-batches are gradient accumulation."""


def settings(sweep: Sweep) -> dict[str, dict[str, Any]]:
    """The config of every arm as ``{"method.rank": 8, ...}``, without what is never compared."""
    return {
        name: {
            key: value
            for key, value in flatten(arm["config"]).items()
            if not is_factor(key, list(NEVER_COMPARED))
        }
        for name, arm in sweep.plan["arms"].items()
    }


def fingerprint(flat: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Everything but ``keys`` and what lies below them, as canonical JSON."""
    kept = {key: value for key, value in flat.items() if not is_factor(key, list(keys))}
    return json.dumps(kept, sort_keys=True)


def matched(
    sweep: Sweep, keys: Sequence[str], among: Callable[[Arm], bool] = lambda _: True
) -> list[tuple[Arm, ...]]:
    """Groups of arms that are equal in everything but ``keys``.

    Args:
        sweep: The experiment.
        keys: Config keys in which the arms of a group may differ, ``("method.rank",)``; a key
            stands for everything below it.
        among: Which arms to group; all by default.

    Returns:
        Every group of two or more, in the order of the plan's arms: FullFT first, then by rank.
    """
    flat = settings(sweep)
    groups: dict[str, list[Arm]] = {}
    for arm in filter(among, arms(sweep)):
        groups.setdefault(fingerprint(flat[arm.name], keys), []).append(arm)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def value(sweep: Sweep, arm: Arm, key: str) -> Any:
    """One setting of an arm, None if it has none: ``value(sweep, arm, "model.name")``."""
    return flatten(sweep.plan["arms"][arm.name]["config"]).get(key)


def differing(sweep: Sweep, group: Iterable[Arm]) -> tuple[str, ...]:
    """The settings in which the arms of a group do differ, sorted."""
    flat = settings(sweep)
    rows = [flat[arm.name] for arm in group]
    keys = {key for row in rows for key in row}
    return tuple(sorted(key for key in keys if len({repr(row.get(key)) for row in rows}) > 1))


def model_and_task(sweep: Sweep, arm: Arm) -> str:
    """Model and task of one arm, for the end of a statement."""
    one = _alone(sweep, arm)
    return f"{model_name(one)} on {task_name(one)}"


def task_of(sweep: Sweep, arm: Arm) -> str:
    """Task of one arm, where a statement is about several models."""
    return task_name(_alone(sweep, arm))


def _alone(sweep: Sweep, arm: Arm) -> Sweep:
    return replace(sweep, plan={**sweep.plan, "arms": {arm.name: sweep.plan["arms"][arm.name]}})
