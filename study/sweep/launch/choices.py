"""The arms of a joint search, made from its choices; names of arms; arms that cannot be run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from study.config import ExperimentConfig
from study.plan.best import combinations

Given = TypeVar("Given")
Made = TypeVar("Made")


def with_choices(experiment: ExperimentConfig) -> ExperimentConfig:
    """The experiment with its arms, where they are the combinations of a joint search.

    Raises:
        ValueError: if it names arms beside, or two combinations would have one name.
    """
    best = experiment.best
    if best is None or not best.choices:
        return experiment
    if experiment.arms or experiment.factors:
        raise ValueError(
            "experiment.best.choices makes arms and factors itself: leave experiment.arms and "
            f"experiment.factors out, got {experiment.arms} and {experiment.factors}"
        )
    keys = list(best.choices)
    arms: dict[str, list[str]] = {}
    for overrides in combinations(best):
        name = arm_name(keys, [override.partition("=")[2] for override in overrides])
        if name in arms:
            raise ValueError(
                f"two combinations of experiment.best.choices would be called {name!r}: name the "
                "arms yourself, in experiment.arms"
            )
        arms[name] = overrides
    return replace(experiment, arms=arms, factors=keys)


def arm_name(keys: Sequence[str], values: Sequence[str]) -> str:
    """What an arm with these values is called: ``lora_rank-8``."""
    parts = [
        value if key in ("method", "model", "task") else f"{key.rsplit('.', 1)[-1]}-{value}"
        for key, value in zip(keys, values, strict=True)
    ]
    return re.sub(r"[^A-Za-z0-9_.-]", "-", "_".join(parts)).strip("-.")


def for_every_arm(make: Callable[[str, Given], Made], arms: Mapping[str, Given]) -> dict[str, Made]:
    """What ``make`` makes of each arm.

    Raises:
        ValueError: listing every arm that cannot be made, with its reason.
    """
    made: dict[str, Made] = {}
    refused: dict[str, str] = {}
    for name, given in arms.items():
        try:
            made[name] = make(name, given)
        except ValueError as error:
            refused[name] = str(error)
    if not refused:
        return made
    if len(arms) == 1:
        raise ValueError(next(iter(refused.values())))
    listed = "; ".join(f"{name}: {reason}" for name, reason in refused.items())
    raise ValueError(f"{len(refused)} of {len(arms)} arms cannot be run: {listed}")
