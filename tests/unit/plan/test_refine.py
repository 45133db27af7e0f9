"""Learning rates that are added around an arm's best one."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from study.config import EarlyStoppingConfig, RefineConfig, SeedsConfig
from study.plan.budget import bill
from study.plan.experiment import Plan, PlannedRun, from_json, plan_search, to_json
from study.plan.growth import merge
from study.plan.refine import around, grow
from study.plan.select import Selection
from study.records.record import Record
from study.sweep.modes import search
from tests.plans import LORA_RATES, arm, experiment, lora, record_of, run_config, toy_plan

FULL_BEST, LORA_BEST = 1.3e-4, 3.5e-3


def parabola(run: PlannedRun) -> float:
    """A score that falls by 0.1 in a decade from the best rate, 0.4 in two."""
    best = FULL_BEST if run.arm == "full" else LORA_BEST
    return 0.8 - 0.1 * math.log10(run.learning_rate / best) ** 2


def records_of(plan: Plan, score: Callable[[PlannedRun], float] = parabola) -> dict[str, Record]:
    return {run.run_id: record_of(run, score(run)) for run in plan.runs}


def refining(points: int = 2, **changes: Any) -> Plan:
    return toy_plan(refine=RefineConfig(points=points), **changes)


def step(plan: Plan, selections: Mapping[str, Selection] | None = None) -> Plan:
    """What the plan becomes once everything in it is recorded."""
    return grow(plan, records_of(plan), selections or {})[0]


def test_a_refined_rate_lies_nearer_to_the_top_of_a_parabola_than_the_grid_does() -> None:
    grid = [1e-4, 1e-3, 1e-2, 1e-1]
    top = math.log10(4e-3)
    means = {rate: 0.8 - 0.1 * (math.log10(rate) - top) ** 2 for rate in grid}
    found = around(means, 3)
    assert len(found) == 3
    assert all(1e-3 < rate < 1e-1 for rate in found)  # between the neighbours of the best, 1e-2
    assert min(abs(math.log10(rate) - top) for rate in found) < 0.1  # the grid's nearest: 0.4


def test_refined_rates_have_three_digits_and_keep_apart_from_each_other_and_the_grid() -> None:
    means = {1e-4: 0.1, 3.2e-4: 0.5, 1e-3: 0.52, 3.2e-3: 0.3, 1e-2: 0.0}
    for points in range(1, 11):
        found = around(means, points)
        assert len(found) == points
        assert all(float(f"{rate:.3g}") == rate for rate in found)
        gaps = [math.log10(b / a) for a, b in itertools.pairwise(sorted([*means, *found]))]
        assert min(gaps) >= 0.49 / (4 * (points + 1))


@pytest.mark.parametrize("best", [0, 3])
def test_at_the_edge_of_a_grid_points_lie_inside_and_are_as_many(best: int) -> None:
    rates = [1e-4, 2e-4, 4e-4, 8e-4]
    means = {rate: -abs(i - best) / 10 for i, rate in enumerate(rates)}
    found = around(means, 10)
    low, high = (rates[0], rates[1]) if best == 0 else (rates[2], rates[3])
    assert len(found) == 10
    assert all(low < rate < high for rate in found)


def test_equal_means_and_collapsed_rates_are_refined_too() -> None:
    assert len(around(dict.fromkeys((1e-4, 1e-3, 1e-2), 0.3), 4)) == 4
    found = around({1e-4: 0.6, 1e-3: 0.7, 1e-2: 0.0}, 4)
    assert all(1e-4 < rate < 1e-2 for rate in found)


def test_an_arm_is_refined_once_its_own_grid_is_recorded() -> None:
    plan = refining()
    records = records_of(plan)
    full = {k: r for k, r in records.items() if r.arm == "full"}
    grown, fresh = grow(plan, full, {})
    assert (list(grown.refined), fresh) == (["full"], [])
    assert len(grown.cells("full", "search")) == (3 + 2) * 2  # every search seed at each rate
    assert grown.cells("lora-r1", "search") == plan.cells("lora-r1", "search")


def test_every_arm_gets_equally_many_rates_and_its_grid_stays() -> None:
    grown = step(refining(points=3))
    assert {arm: len(rates) for arm, rates in grown.refined.items()} == {"full": 3, "lora-r1": 3}
    assert grown.arms["lora-r1"].learning_rates == LORA_RATES
    assert len({run.run_id for run in grown.runs}) == len(grown.runs) == 2 * (3 + 3) * 2


def test_the_report_follows_at_the_best_of_all_rates() -> None:
    refined = step(refining())
    assert not any(run.phase == "report" for run in refined.runs)
    grown, fresh = grow(refined, records_of(refined), {})
    for choice in fresh:
        best = FULL_BEST if choice.arm == "full" else LORA_BEST
        grid = refined.arms[choice.arm].learning_rates
        assert choice.learning_rate in refined.refined[choice.arm]
        assert choice.edge is None
        nearest = min(abs(math.log10(rate / best)) for rate in grid)
        assert abs(math.log10(choice.learning_rate / best)) < nearest
    assert [run.seed for run in grown.cells("full", "report")] == [100, 101]


def test_growing_is_a_function_of_what_is_known_and_settles() -> None:
    plan = refining()
    once, again = step(plan), step(plan)
    assert once == again
    selections: dict[str, Selection] = {}
    for _ in range(4):
        plan, fresh = grow(plan, records_of(plan), selections)
        selections |= {choice.arm: choice for choice in fresh}
    assert grow(plan, records_of(plan), selections) == (plan, [])


def test_an_arm_without_a_score_is_neither_refined_nor_reported() -> None:
    plan = refining()
    records = {run.run_id: record_of(run, None) for run in plan.runs}
    assert grow(plan, records, {}) == (plan, [])


def test_grids_are_extended_before_they_are_refined() -> None:
    plan = refining(extend=1)
    records = records_of(plan, lambda run: run.learning_rate)  # the best lies at the high edge
    extended, _ = grow(plan, records, {})
    assert extended.extended == ["high"]
    assert extended.refined == {}
    refined, _ = grow(extended, records_of(extended, lambda run: run.learning_rate), {})
    assert {len(rates) for rates in refined.refined.values()} == {2}


def test_a_plan_with_refined_rates_is_read_back_from_json() -> None:
    plan = step(refining())
    assert from_json(json.loads(json.dumps(to_json(plan)))) == plan
    older = to_json(toy_plan())
    del older["refined"], older["experiment"]["refine"], older["experiment"]["best"]
    assert from_json(older).refined == {}


def test_seeds_that_join_later_run_at_the_refined_rates_too() -> None:
    plan = step(refining())
    more = refining(seeds=SeedsConfig(search=[0, 1, 2], report=[100, 101]))
    grown = merge(plan, more)
    assert grown.refined == plan.refined
    assert {r.learning_rate for r in grown.cells("full", "search") if r.seed == 2} == {
        *plan.arms["full"].learning_rates,
        *plan.refined["full"],
    }
    assert grown.looks == 2


def test_the_number_of_points_is_part_of_what_an_experiment_means() -> None:
    with pytest.raises(ValueError, match=r"experiment\.refine was .*points=2.* new name="):
        merge(refining(points=2), refining(points=3))


def test_bill_and_runs_to_come_count_what_refining_will_add() -> None:
    plan = refining(points=2)
    assert bill(plan, 1, None, {}).runs == 2 * ((3 + 2) * 2 + 2)
    assert search.to_come(plan, {}) == 2 * (2 * 2 + 2)
    refined = step(plan)
    assert bill(refined, 1, None, {}).runs == 24
    assert search.to_come(refined, {}) == 4
    assert search.to_come(step(refined), {}) == 0


def test_search_grows_a_plan_in_its_own_mode() -> None:
    plan = refining()
    assert search.grow(plan, records_of(plan), {}) == grow(plan, records_of(plan), {})
    grid = toy_plan()
    assert search.grow(grid, records_of(grid), {})[0].refined == {}


def test_grids_too_short_or_too_fine_to_refine_are_refused() -> None:
    for rates in ([1e-4, 1e-3], [1e-4, 1.1e-4, 1.2e-4]):
        arms = {"lora-r1": arm("lora-r1", run_config(lora()), rates)}
        with pytest.raises(ValueError, match=r"at least 3 learning rates, 0\.1 decades apart"):
            plan_search(experiment(refine=RefineConfig(points=1)), arms, "trl")


def test_settings_that_exclude_each_other_are_refused() -> None:
    stopping = EarlyStoppingConfig(grace_steps=1, keep=0.5, window=1)
    with pytest.raises(ValueError, match=r"early_stopping cannot be combined with .*refine"):
        refining(early_stopping=stopping)
    with pytest.raises(ValueError, match=r"refine\.points"):
        RefineConfig(points=0)
    with pytest.raises(ValueError, match=r"refine\.points"):
        RefineConfig(points=11)
