"""Early stopping in a joint search: each trial against all others, at equal numbers of episodes.

Trials come one after the other, so nobody waits for the others of a rung (Li et al. 2020, "A
System for Massively Parallel Hyperparameter Tuning"): a run goes on while it is among the best of
those that have come as far.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping

from study.config import EarlyStoppingConfig
from study.plan.experiment import Plan, PlannedRun

RUNG_FACTOR = 2
FEWEST = 4
"""Runs that must have come as far before any of them is stopped there."""

Curve = Mapping[int, float]
"""Held-out accuracy by optimizer step."""


def reason(
    plan: Plan, run: PlannedRun, curves: Mapping[str, Curve], stopped: Collection[str]
) -> str | None:
    """Why ``run`` stops now, in a clause for its record; None if it goes on.

    It is judged at the last rung it has reached: ``grace_steps`` of the arm with the fewest
    episodes a step, then twice that, four times that, and so on. Runs of one seed are compared.

    Args:
        plan: A joint search with early stopping.
        run: One of its runs, under way.
        curves: Accuracies of all search runs that have reported any, by run id.
        stopped: Ids of runs that were stopped.
    """
    settings = plan.experiment.early_stopping
    if settings is None or run.phase != "search":
        return None
    trial = [r for r in plan.cells(run.arm, "search") if r.learning_rate == run.learning_rate]
    other = next((r.seed for r in trial if r.run_id in stopped), None)
    if other is not None:
        return f"{_label(run)} was stopped on seed {other}"
    rung = _rung(plan, settings, run, curves.get(run.run_id, {}))
    if rung is None:
        return None
    reached = {
        peer: accuracy
        for peer in plan.runs
        if peer.phase == "search" and peer.seed == run.seed
        if (accuracy := _accuracy(plan, settings, peer, curves.get(peer.run_id, {}), rung))
        is not None
    }
    places = settings.places(len(reached))
    place = 1 + sum(accuracy > reached[run] for accuracy in reached.values())
    if len(reached) < FEWEST or place <= places:
        return None
    last = sorted(reached.values(), reverse=True)[places - 1]
    return (
        f"{_label(run)} is number {place} of {len(reached)} after {rung:,} episodes: accuracy "
        f"{reached[run]:.3f}, the last kept has {last:.3f}"
    )


def _label(run: PlannedRun) -> str:
    return f"{run.arm} at learning rate {run.learning_rate:g}"


def _rung(plan: Plan, settings: EarlyStoppingConfig, run: PlannedRun, curve: Curve) -> int | None:
    """Episodes of the last rung that a curve has reached."""
    each = [arm.config.objective.rows_per_step for arm in plan.arms.values()]
    each += [arm.config.objective.rows_per_step for arm in plan.reserve.values()]
    rung, done = settings.grace_steps * min(each), max(curve, default=0) * _episodes(plan, run)
    if done < rung:
        return None
    while rung * RUNG_FACTOR <= done:
        rung *= RUNG_FACTOR
    return rung


def _accuracy(
    plan: Plan, settings: EarlyStoppingConfig, run: PlannedRun, curve: Curve, rung: int
) -> float | None:
    """Accuracy at a run's first evaluation from a rung on, smoothed; None if it is not there."""
    made = sorted(step for step in curve if step > 0)
    reached = next((i for i, s in enumerate(made) if s * _episodes(plan, run) >= rung), None)
    if reached is None:
        return None
    judged = made[max(0, reached + 1 - settings.window) : reached + 1]
    return statistics.fmean(curve[step] for step in judged)


def _episodes(plan: Plan, run: PlannedRun) -> int:
    """Completions that a run trains on in a step."""
    return plan.arms[run.arm].config.objective.rows_per_step
