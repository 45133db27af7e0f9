"""Early stopping in a joint search."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from study.config import SeedsConfig
from study.plan import best
from study.plan.experiment import Plan, PlannedRun
from study.sweep.modes.culling import reason
from tests.unit.plan.joint import joint, settings, stopping


def searching(prompts: list[int] | None = None, **changes: Any) -> Plan:
    """Ten trials of runs of 3 steps; 4 prompts a step in groups of two are 8 episodes."""
    choices = {"method.rank": [1, 2], "objective.prompts_per_step": prompts or [4]}
    early = stopping(**changes.pop("early", {}))
    found = settings(choices=choices, trials=20)
    return best.begin(joint(found, early_stopping=early, **changes))


def at(plan: Plan, accuracies: list[float], step: int = 1) -> dict[str, dict[int, float]]:
    """Curves in which the first runs have come to ``step``."""
    return {
        run.run_id: {0: 0.9, step: accuracy}
        for run, accuracy in zip(plan.runs, accuracies, strict=False)
    }


def verdicts(plan: Plan, curves: dict[str, dict[int, float]]) -> list[str | None]:
    return [reason(plan, run, curves, ()) for run in plan.runs[: len(curves)]]


def test_the_lower_half_of_those_that_came_as_far_stop() -> None:
    plan = searching()
    found = verdicts(plan, at(plan, [0.1, 0.2, 0.3, 0.4, 0.5]))  # 3 of 5 go on
    assert [why is None for why in found] == [False, False, True, True, True]
    run = plan.runs[1]
    assert found[1] == (
        f"{run.arm} at learning rate {run.learning_rate:g} is number 4 of 5 after 8 episodes: "
        "accuracy 0.200, the last kept has 0.300"
    )


def test_nobody_stops_while_fewer_than_four_have_come_as_far() -> None:
    plan = searching()
    assert verdicts(plan, at(plan, [0.1, 0.5, 0.6])) == [None, None, None]
    assert verdicts(plan, at(plan, [0.1, 0.5, 0.6, 0.7]))[0] is not None


def test_the_untrained_model_and_the_time_before_the_first_rung_do_not_count() -> None:
    plan = searching(early={"grace_steps": 2})
    assert verdicts(plan, at(plan, [0.1, 0.2, 0.3, 0.4, 0.5])) == [None] * 5
    assert verdicts(plan, at(plan, [0.1, 0.2, 0.3, 0.4, 0.5], step=0)) == [None] * 5


def test_a_run_is_judged_at_the_last_rung_it_has_reached() -> None:
    plan = searching()
    curves = at(plan, [0.1, 0.2, 0.3, 0.4, 0.5])
    slow = plan.runs[0]
    curves[slow.run_id][2] = 0.9  # alone at the second rung
    assert reason(plan, slow, curves, ()) is None


def test_equal_accuracies_all_go_on() -> None:
    plan = searching()
    assert verdicts(plan, at(plan, [0.3] * 6)) == [None] * 6


def test_runs_of_different_batches_are_compared_at_equal_numbers_of_episodes() -> None:
    plan = searching([4, 8])
    small = [run for run in plan.runs if run.arm.endswith("-4")][:4]
    large = next(run for run in plan.runs if run.arm.endswith("-8"))
    curves = {run.run_id: {1: 0.9, 2: 0.2, 4: 0.8} for run in small}
    # One step of 8 prompts is two of 4: the rung at 16 episodes, where the others had 0.2.
    assert reason(plan, large, {**curves, large.run_id: {1: 0.3}}, ()) is None
    why = reason(plan, large, {**curves, large.run_id: {1: 0.1}}, ())
    assert why is not None and "number 5 of 5 after 16 episodes" in why


def test_accuracies_are_smoothed_over_the_window() -> None:
    plan = searching(early={"grace_steps": 2, "window": 2})
    curves = at(plan, [0.4, 0.4, 0.4, 0.4], step=2)
    for curve in curves.values():
        curve[1] = 0.4
    noisy = plan.runs[0]
    curves[noisy.run_id] = {1: 0.5, 2: 0.35}  # mean 0.425
    assert reason(plan, noisy, curves, ()) is None


def test_a_trial_stopped_on_one_seed_stops_on_all_and_seeds_are_compared_apart() -> None:
    plan = searching(seeds=SeedsConfig(search=[0, 1], report=[100]))
    first = plan.runs[0]
    twin = _twin(plan, first)
    curves = at(plan, [0.1, 0.2, 0.3, 0.4, 0.5])
    assert reason(plan, twin, {**curves, twin.run_id: {1: 0.0}}, ()) is None
    assert reason(plan, twin, curves, (first.run_id,)) == (
        f"{first.arm} at learning rate {first.learning_rate:g} was stopped on seed 0"
    )


def _twin(plan: Plan, run: PlannedRun) -> PlannedRun:
    point = (run.arm, run.learning_rate)
    return next(r for r in plan.runs if (r.arm, r.learning_rate) == point and r.seed == 1)


@pytest.mark.parametrize("phase", ["search", "report"])
def test_report_runs_and_searches_without_early_stopping_stop_nobody(phase: str) -> None:
    plan = searching()
    curves = at(plan, [0.1, 0.2, 0.3, 0.4, 0.5])
    if phase == "search":
        off = dataclasses.replace(plan.experiment, early_stopping=None)
        plan = dataclasses.replace(plan, experiment=off)
    run = dataclasses.replace(plan.runs[0], phase=phase)
    assert reason(plan, run, curves, ()) is None
