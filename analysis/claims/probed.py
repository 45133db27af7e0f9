"""What probes measured of the runs that an arm's score comes from, and how it is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from analysis.claims.costs import by_seed, chosen_runs, phase
from analysis.claims.groups import value
from analysis.claims.verdict import Obstacle
from analysis.estimates.stats import MIN_SEEDS, Contrast, Estimate, mean_contrast
from analysis.reading.arms import Arm, arms
from analysis.reading.probes import at
from analysis.reading.sweep import Sweep

Measured = Callable[[Mapping[str, Any]], float | None]
"""A number of a run from the content of its ``probes.json``; None where it has none."""
NEEDED = "weights measured by probes (probes=default at launch, or python -m study.probes)"


def share(count: str) -> Measured:
    """Share of the trained weights that a count leaves unchanged: ``fp32``, ``bf16``, ..."""

    def measured(content: Mapping[str, Any]) -> float | None:
        number, total = (at(content, "weights", "trained", key) for key in (count, "parameters"))
        return number / total if number is not None and total else None

    return measured


def overall(statistic: str) -> Measured:
    """A statistic of the update, mean over the matrices of layers."""
    return lambda content: at(content, "weights", "overall", "observed", statistic)


def over_null(statistic: str, null: str) -> Measured:
    """The same over its mean in random updates: 1 is what chance gives."""

    def measured(content: Mapping[str, Any]) -> float | None:
        own = at(content, "weights", "overall", "observed", statistic)
        chance = at(content, "weights", "overall", "null", null, statistic, "mean")
        return own / chance if own is not None and chance else None

    return measured


def probed(sweep: Sweep, arm: Arm, measured: Measured) -> dict[int, float]:
    """Values by ascending seed, of completed runs at the learning rate that the arm goes by."""
    rows = chosen_runs(sweep, arm)
    held = [sweep.probes.get(str(run_id)) for run_id in rows["run_id"]]
    values = [None if content is None else measured(content) for content in held]
    return by_seed(rows, pd.Series(values, index=rows.index, dtype=float))


def contrast(sweep: Sweep, arm: Arm, measured: Measured) -> Contrast | None:
    """Mean over seeds; None if no run was measured."""
    values = probed(sweep, arm, measured)
    return mean_contrast(np.array(list(values.values()))) if values else None


def exact(found: Contrast) -> Estimate:
    """With its interval, from three seeds on: a count that all seeds share is known exactly."""
    estimate = found.estimate()
    if found.n < MIN_SEEDS or found.has_spread:
        return estimate
    return Estimate(found.point, found.point, found.point, found.n)


def is_rl(sweep: Sweep, arm: Arm) -> bool:
    """Whether an arm is trained by reinforcement learning."""
    return bool(value(sweep, arm, "objective.name") == "grpo")


def measured_arms(sweep: Sweep, measured: Measured) -> list[Arm]:
    """Arms trained by reinforcement learning of which some run has the number."""
    return [arm for arm in arms(sweep) if is_rl(sweep, arm) and probed(sweep, arm, measured)]


def in_masters(sweep: Sweep, arm: Arm) -> bool:
    """Whether the measured runs of an arm trained float32 weights: bfloat16 rounds small changes of
    large weights away, which looks like a choice of directions.
    """
    return bool(probed(sweep, arm, share("fp32")))


def lacks_probes(sweep: Sweep, measured: Measured) -> str:
    """What a claim about probes would need; empty if some arm was measured.

    Nothing is read of a sweep without verdicts.
    """
    if measured_arms(sweep, measured):
        return ""
    return "the experiment's directory, where probes are" if sweep.path is None else NEEDED


def few(sweep: Sweep, found: Contrast) -> Obstacle | None:
    """The obstacle that fewer than three seeds are."""
    if found.n >= MIN_SEEDS:
        return None
    more = MIN_SEEDS - found.n
    seeds = f"{more} more {phase(sweep)} seed{'' if more == 1 else 's'}"
    reason = f"Measured on {found.n} of at least {MIN_SEEDS} {phase(sweep)} seeds: run {seeds}."
    return Obstacle("few_seeds", reason, seeds)


def percent(found: Contrast) -> str:
    """``42.0 % [40.1, 43.9]``."""
    estimate = exact(found)
    text = f"{100 * estimate.point:z.1f} %"
    if estimate.interval:
        low, high = (100 * end for end in estimate.interval)
        text += f" [{low:z.1f}, {high:z.1f}]"
    return text


def times(found: Contrast) -> str:
    """``0.82 [0.75, 0.89]``."""
    estimate = exact(found)
    text = f"{estimate.point:.2f}"
    return f"{text} [{estimate.low:.2f}, {estimate.high:.2f}]" if estimate.interval else text
