"""Methods over several tasks: interquartile mean and probability of improvement over FullFT."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.claims.groups import matched, settings
from analysis.estimates.curve import FloatArray, oriented_scores
from analysis.estimates.stats import Estimate
from analysis.estimates.tasks import MIN_TASKS, interquartile_mean, probability_of_improvement
from analysis.reading.arms import Arm, reported
from analysis.reading.sweep import Sweep
from analysis.reporting.tables import as_stated

RNG_SEED = 0
"""Of the bootstrap: the same report gives the same interval."""
Scores = Mapping[str, FloatArray]
"""``[seeds]`` report scores by task, higher is better."""


@dataclass(frozen=True)
class OverTasks:
    """One method over all tasks that it was run on."""

    name: str
    """The arms, one a task."""
    tasks: int
    mean: Estimate
    """Interquartile mean of the report scores of all tasks, as the sweep states them."""
    improvement: Estimate | None
    """Probability that a run beats one of FullFT on the same task; None for FullFT."""


def over_tasks(sweep: Sweep) -> list[OverTasks]:
    """A row per method with report scores on three or more tasks; scores are not rescaled."""
    found = []
    for family in matched(sweep, ("task", "method")):
        methods = _by_method(sweep, family)
        full = next((s for arms, s in methods.values() if arms[0].is_full), None)
        for arms, scores in methods.values():
            found.append(_row(sweep, arms, scores, None if arms[0].is_full else full))
    return found


def _by_method(sweep: Sweep, family: Sequence[Arm]) -> dict[str, tuple[list[Arm], Scores]]:
    """Arms and their scores by task, for every method that has enough tasks."""
    flat = settings(sweep)
    methods: dict[str, dict[str, Arm]] = {}
    for arm in family:
        own = flat[arm.name]
        method, task = (
            json.dumps({k: v for k, v in own.items() if k.startswith(part)}, sort_keys=True)
            for part in ("method.", "task.")
        )
        methods.setdefault(method, {})[task] = arm
    scored = {
        method: {task: (arm, _scores(sweep, arm)) for task, arm in arms.items()}
        for method, arms in methods.items()
    }
    return {
        method: ([arm for arm, _ in arms.values()], {task: s for task, (_, s) in arms.items()})
        for method, arms in scored.items()
        if len(arms) >= MIN_TASKS and all(len(s) for _, s in arms.values())
    }


def _scores(sweep: Sweep, arm: Arm) -> FloatArray:
    return oriented_scores(reported(sweep, arm.name), "score_final")


def _row(sweep: Sweep, arms: Sequence[Arm], scores: Scores, full: Scores | None) -> OverTasks:
    rng = np.random.default_rng(RNG_SEED)
    baseline = full if full is not None and set(full) == set(scores) else None
    mean = as_stated(sweep, interquartile_mean(scores, rng))
    beats = None if baseline is None else probability_of_improvement(scores, baseline, rng)
    return OverTasks(", ".join(arm.name for arm in arms), len(arms), mean, beats)
