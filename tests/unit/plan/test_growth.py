"""An experiment grows and never changes; whoever makes it grow takes another look."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from study.config import SeedsConfig
from study.plan.experiment import Plan, plan_search
from study.plan.growth import merge
from study.plan.select import grow
from tests.plans import (
    FULL_RATES,
    LORA_RATES,
    arm,
    experiment,
    full,
    lora,
    objective,
    run_config,
    toy_plan,
)
from tests.unit.plan.joint import joint, settings
from tests.unit.plan.toy_records import all_records

SEEDS = {"search": [0, 1], "report": [100, 101]}


def finished(plan: Plan) -> Plan:
    """The plan once its search is over: report runs have joined."""
    grown, _ = grow(plan, all_records(plan), {})
    assert len(grown.runs) > len(plan.runs)
    return grown


def with_rank(rank: int) -> Plan:
    arms = {**toy_plan().arms, f"lora-r{rank}": arm("r", run_config(lora(rank)), LORA_RATES)}
    arms = {name: dataclasses.replace(found, name=name) for name, found in arms.items()}
    return plan_search(experiment(arms={name: [] for name in arms}), arms, "trl")


def rates(more: list[float]) -> Plan:
    """Both grids are continued by so many points, a decade apart."""
    arms = {
        "full": arm("full", run_config(full()), [*FULL_RATES, *more]),
        "lora-r1": arm("lora-r1", run_config(lora()), [*LORA_RATES, *(10 * r for r in more)]),
    }
    return plan_search(experiment(), arms, "trl")


def test_the_same_launch_again_is_no_look_wherever_the_sweep_is() -> None:
    begun = toy_plan()
    for old in (begun, finished(begun)):
        again = merge(old, toy_plan())
        assert again == old
        assert again.looks == 1
    extended, _ = grow(toy_plan(extend=1), all_records(toy_plan()), {})
    again = merge(extended, toy_plan(extend=1))
    assert (again.runs, again.looks) == (extended.runs, 1)


@pytest.mark.parametrize(
    ("later", "added"),
    [
        (toy_plan(seeds=SeedsConfig(search=[0, 1, 2], report=[100, 101])), 6),
        (rates([2e-2]), 4),
        (with_rank(2), 6),
    ],
)
def test_seeds_rates_and_arms_join_behind_what_exists_and_are_a_look(
    later: Plan, added: int
) -> None:
    old = finished(toy_plan())
    grown = merge(old, later)
    assert grown.runs[: len(old.runs)] == old.runs
    assert len(grown.runs) == len(old.runs) + added
    assert grown.looks == 2
    assert merge(grown, later).looks == 2
    assert merge(merge(grown, toy_plan()), later) == grown  # the older file takes nothing away


def test_more_report_seeds_are_a_look_though_their_runs_join_later() -> None:
    old = finished(toy_plan())
    more = toy_plan(seeds=SeedsConfig(search=[0, 1], report=[100, 101, 102]))
    grown = merge(old, more)
    assert (len(grown.runs), grown.looks) == (len(old.runs), 2)
    final, _ = grow(grown, all_records(grown), {})
    assert [run.seed for run in final.runs[len(old.runs) :]] == [102, 102]
    assert merge(final, more).looks == 2


def test_more_trials_of_a_joint_search_are_a_look_though_their_runs_join_later() -> None:
    old = joint(settings(trials=8))
    assert merge(old, joint(settings(trials=8))).looks == 1
    assert merge(old, joint(settings(trials=16))).looks == 2


def test_every_growth_counts() -> None:
    plan = toy_plan()
    for n in range(2, 5):
        seeds = SeedsConfig(search=[*range(n + 1)], report=[100, 101])
        plan = merge(plan, toy_plan(seeds=seeds))
        assert plan.looks == n


def test_a_seed_keeps_its_phase() -> None:
    with pytest.raises(ValueError, match=r"must be disjoint, both hold \[100\]"):
        merge(toy_plan(), toy_plan(seeds=SeedsConfig(search=[0, 1, 100], report=[101])))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hypothesis": "H"}, "experiment.hypothesis was 'h' in toy and is 'H' now"),
        ({"decision_metric": "M"}, "experiment.decision_metric was 'm' in toy and is 'M' now"),
        ({"criterion": "C"}, "experiment.criterion was 'c' in toy and is 'C' now"),
        ({"factors": ["method", "save"]}, r"experiment.factors was \['method'\] in toy and is"),
        ({"margin": 0.1}, "experiment.margin was None in toy and is 0.1 now"),
        ({"extend": 2}, "experiment.extend was 0 in toy and is 2 now"),
    ],
)
def test_any_other_change_of_the_question_names_its_key_and_wants_a_new_name(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message) as refused:
        merge(toy_plan(), toy_plan(**changes))
    assert str(refused.value).endswith("give the changed experiment a new name=...")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"objective": objective(steps=5)}, "arm full: objective.steps was 3 in toy and is 5 now"),
        (
            {"objective": objective(prompts_per_step=8)},
            "arm full: objective.prompts_per_step was 4 in toy and is 8 now",
        ),
    ],
)
def test_any_other_change_of_an_arm_names_its_key_and_wants_a_new_name(
    config: dict[str, Any], message: str
) -> None:
    old = toy_plan()
    arms = {**old.arms, "full": arm("full", run_config(full(), **config), FULL_RATES)}
    with pytest.raises(ValueError, match=message) as refused:
        merge(old, dataclasses.replace(old, arms=arms))
    assert str(refused.value).endswith("give the changed experiment a new name=...")
