"""Arms of a comparison, and what must hold between them for the comparison to be fair."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

from study.config import ExperimentConfig, RunConfig
from study.plan.description import Description
from study.plan.identity import arm_identity, short_hash

SPACING_TOLERANCE = 0.06
"""Decades by which two grids' gaps may differ and still count as equally spaced: a 1-3-10 grid
alternates between gaps of 0.48 and 0.52."""


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One side of a comparison: a configuration with its own learning-rate grid."""

    name: str
    config: RunConfig
    """Configuration of the arm's runs; their learning rate and seed replace the ones in it."""
    factors: dict[str, Any]
    """Value of each factor that the arm has."""
    learning_rates: list[float]
    """The grid, ascending; in a joint search, the ends of the range."""
    model: Description
    target_modules: list[str]
    trainable_params: int


def flatten(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested dictionaries as one, keys joined by dots."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


RATE_KEY = "objective.learning_rate"
NOT_COMPARED = ("method.default_learning_rate", RATE_KEY, "seed", "save")
"""Keys that may differ between arms without being a factor: the tuned rate, and what changes
no result."""


def is_factor(key: str, factors: list[str]) -> bool:
    """Whether ``key`` is a factor or below one."""
    return any(key == factor or key.startswith(factor + ".") for factor in factors)


def arm_factors(config: RunConfig, factors: list[str]) -> dict[str, Any]:
    """The values of the factors that ``config`` has, by key."""
    values = flatten(asdict(config))
    return {
        key: value
        for key, value in values.items()
        if is_factor(key, factors) and key not in NOT_COMPARED
    }


def check_factors(experiment: ExperimentConfig, arms: dict[str, Arm]) -> None:
    """Refuse arms that differ in a key that is not a factor."""
    flat = {name: flatten(asdict(arm.config)) for name, arm in arms.items()}
    keys = {key for values in flat.values() for key in values}
    for key in sorted(keys - set(NOT_COMPARED)):
        values = {name: values.get(key) for name, values in flat.items()}
        if len({repr(v) for v in values.values()}) > 1 and not is_factor(key, experiment.factors):
            shown = ", ".join(f"{name}: {value!r}" for name, value in values.items())
            raise ValueError(
                f"arms may differ only in experiment.factors={experiment.factors}, "
                f"but {key} differs ({shown})"
            )


def check_grids(arms: dict[str, Arm], extend: int) -> None:
    """Refuse grids that are unequal in count or spacing: the longer one would win by luck."""
    first = next(iter(arms.values()))
    if extend and len(first.learning_rates) < 2:
        raise ValueError(
            "experiment.extend needs a grid of at least 2 learning rates to continue, got "
            f"{first.learning_rates}"
        )
    for arm in arms.values():
        if len(arm.learning_rates) != len(first.learning_rates):
            raise ValueError(
                "learning-rate grids must have the same number of points in every arm, got "
                f"{len(first.learning_rates)} for {first.name} and {len(arm.learning_rates)} "
                f"for {arm.name}"
            )
        for a, b in zip(_gaps(first.learning_rates), _gaps(arm.learning_rates), strict=True):
            if abs(a - b) > SPACING_TOLERANCE:
                raise ValueError(
                    "learning-rate grids must have the same spacing in every arm, got gaps of "
                    f"{a:.2f} decades for {first.name} and {b:.2f} for {arm.name}"
                )


def check_early_stopping(experiment: ExperimentConfig, arms: dict[str, Arm]) -> None:
    """Refuse early stopping that would stop nothing, or judge one evaluation twice."""
    settings = experiment.early_stopping
    if settings is None:
        return
    for arm in arms.values():
        steps, every = arm.config.objective.steps, arm.config.evaluation.eval_every
        if not every <= settings.grace_steps < steps:
            raise ValueError(
                "evaluation.eval_every <= experiment.early_stopping.grace_steps < objective.steps "
                f"must hold, arm {arm.name!r} has {every}, {settings.grace_steps} and {steps}"
            )
        rates = len(arm.learning_rates)
        if experiment.best is None and settings.places(rates) == rates:
            raise ValueError(
                f"experiment.early_stopping.keep={settings.keep:g} keeps all {rates} learning "
                f"rates of arm {arm.name!r}: lower it, or give the arm more learning rates"
            )


REFINABLE = 3
"""Learning rates that a grid needs for a curve through them to say where to look on."""
LEAST_GAP = 0.1
"""Decades between the learning rates of a grid that has room for further ones."""


def check_refine(arms: dict[str, Arm]) -> None:
    """Refuse to refine grids that are too short, or so fine that nothing fits in between."""
    for arm in arms.values():
        rates = arm.learning_rates
        if len(rates) < REFINABLE or min(_gaps(rates)) < LEAST_GAP:
            raise ValueError(
                f"experiment.refine needs grids of at least {REFINABLE} learning rates, "
                f"{LEAST_GAP:g} decades apart or more, arm {arm.name!r} has {rates}"
            )


def _gaps(rates: list[float]) -> list[float]:
    return [math.log10(b / a) for a, b in itertools.pairwise(rates)]


def check_rates(name: str, rates: list[float]) -> list[float]:
    """The grid of an arm, ascending.

    Raises:
        ValueError: for an empty grid, a repeated rate, or a rate that is not positive and finite.
    """
    if not rates:
        raise ValueError(
            f"arm {name!r} has no learning rates: set space.learning_rate.{name}, or one list "
            "by method name"
        )
    wrong = [rate for rate in rates if not (math.isfinite(rate) and rate > 0)]
    if wrong:
        raise ValueError(f"learning rates must be positive and finite, arm {name!r} has {wrong}")
    if len({f"{rate:.6g}" for rate in rates}) != len(rates):
        raise ValueError(f"learning rates must be distinct, arm {name!r} has {rates}")
    return sorted(rates)


def check_distinct(arms: dict[str, Arm], factors: Collection[str] = ()) -> None:
    """Refuse two arms that are the same configuration: their runs would be the same runs.

    Where the learning rate is itself a factor, arms may differ in it alone.
    """
    seen: dict[str, str] = {}
    for name, arm in arms.items():
        rates = arm.learning_rates if RATE_KEY in factors else []
        content = short_hash([arm_identity(arm.config, arm.model, arm.target_modules), rates])
        if content in seen:
            raise ValueError(
                f"arms must differ in what changes a result, but {seen[content]} and {name} are "
                "the same configuration"
            )
        seen[content] = name


def extended(arm: Arm, sides: list[str], points: int) -> Arm:
    """The arm with its grid continued on each side by its mean spacing."""
    if not sides:
        return arm
    rates = list(arm.learning_rates)
    step = (rates[-1] / rates[0]) ** (1 / (len(rates) - 1))
    for side in sides:
        for _ in range(points):
            if side == "high":
                rates.append(float(f"{rates[-1] * step:.3g}"))
            else:
                rates.insert(0, float(f"{rates[0] / step:.3g}"))
    return dataclasses.replace(arm, learning_rates=rates)
