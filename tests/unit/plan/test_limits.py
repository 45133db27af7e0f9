from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from study.config import BudgetConfig
from study.plan.budget import evaluation_flops, run_flops
from study.plan.experiment import Plan
from study.plan.flops import Sequences, forward_flops, train_flops
from study.plan.limits import Limits, ended_sentence
from study.records.record import Record
from tests.plans import arm, lora, objective, run_config, toy_plan


def result(flops: float = 0.0) -> Record:
    known: dict[str, Any] = {f.name: None for f in dataclasses.fields(Record)}
    return Record(**{**known, "train_flops": 0.75 * flops, "rollout_flops": 0.25 * flops})


def limits(results: int = 0, **budget: Any) -> Limits:
    """A budget of which some results have been counted."""
    found = Limits(BudgetConfig(**budget))
    for _ in range(results):
        found.add(result())
    return found


def fitting(found: Limits, plan: Plan, begun: int = 0, elapsed_s: float = 0.0) -> int:
    """Of the plan's 12 runs, the first ``begun`` being under way, how many more may begin."""
    affordable = found.affordable(plan.runs[begun:], plan.runs[:begun], plan.arms, elapsed_s)
    assert affordable == plan.runs[begun : begun + len(affordable)]
    return len(affordable)


def test_without_a_budget_everything_may_begin() -> None:
    assert fitting(limits(results=1000), toy_plan()) == 12
    assert limits().ended_by(toy_plan().runs[0], toy_plan().arms, 1e9) == ""


def test_results_and_runs_under_way_count_against_the_runs() -> None:
    plan = toy_plan()
    assert fitting(limits(runs=5), plan) == 5
    assert fitting(limits(runs=5, results=3), plan) == 2
    assert fitting(limits(runs=5, results=3), plan, begun=1) == 1
    assert fitting(limits(runs=5, results=3), plan, begun=2) == 0
    assert fitting(limits(runs=5, results=9), plan) == 0


def test_no_run_begins_after_the_hours_of_its_worker() -> None:
    plan, found = toy_plan(), limits(hours=0.5)
    assert fitting(found, plan, elapsed_s=1799) == 12
    assert fitting(found, plan, elapsed_s=1800) == 0
    assert found.ended_by(plan.runs[0], plan.arms, 1799) == ""
    assert found.ended_by(plan.runs[0], plan.arms, 1800) == "budget.hours=0.5"


def test_a_run_that_could_overshoot_the_flops_is_not_begun_and_no_cheaper_one_after_it() -> None:
    plan = toy_plan()
    cost = {name: run_flops(plan.arms[name]) for name in plan.arms}
    assert cost["full"] > cost["lora-r1"]
    assert [run.arm for run in plan.runs[:4]] == ["full", "lora-r1"] * 2
    pair = cost["full"] + cost["lora-r1"]
    assert fitting(limits(flops=pair), plan) == 2
    assert fitting(limits(flops=0.999 * pair), plan) == 1
    assert fitting(limits(flops=0.999 * cost["full"]), plan) == 0  # though the next would fit
    assert fitting(limits(flops=2 * pair), plan, begun=2) == 2


def test_what_results_took_counts_and_not_what_they_might_have_taken() -> None:
    plan = toy_plan()
    full, lora_run = (run_flops(plan.arms[name]) for name in ("full", "lora-r1"))
    found = limits(flops=0.4 * full + full + lora_run)
    found.add(result(0.4 * full))
    assert fitting(found, plan) == 2
    found.add(result(0.01 * full))
    assert fitting(found, plan) == 1
    found.add(result(0.01 * full + lora_run))
    assert fitting(found, plan) == 0
    assert found.ended_by(plan.runs[0], plan.arms, 0.0).startswith("budget.flops=")
    assert found.ended_by(plan.runs[1], plan.arms, 0.0) == ""


def test_the_estimate_of_a_run_by_hand_and_above_what_any_run_records() -> None:
    """3 steps of 8 completions of at most 9 + 8 tokens."""
    found = arm("a", run_config(lora(2)), [1e-3])
    read, drawn = Sequences.trained([(9, 8)]), Sequences.sampled([(9, 8)])
    train = train_flops(found.config.method, found.target_modules, found.model, read)
    forward = [forward_flops(found.model, work) for work in (drawn, read)]
    assert run_flops(found) == 24 * train + 24 * forward[0]
    twice = run_config(lora(2), objective=objective(num_iterations=2))
    # Steps are optimizer steps: the first batch is trained on twice, the second once; each is
    # sampled once, and scored once before it is used.
    assert run_flops(arm("a", twice, [1e-3])) == 24 * train + 16 * sum(forward)


def test_evaluation_is_no_part_of_the_budget_by_hand() -> None:
    found = arm("a", run_config(lora(2)), [1e-3])
    evaluation = found.config.evaluation
    count = 2 * evaluation.eval_prompts * len(evaluation.steps(3))
    one = forward_flops(found.model, Sequences.sampled([(9, 8)]))
    assert evaluation_flops(found) == count * one


def test_the_end_by_a_budget_is_one_sentence_that_says_how_to_go_on() -> None:
    assert ended_sentence("budget.runs=20", 34) == (
        "budget.runs=20 ended the sweep: 34 planned runs are open; the same command with a larger "
        "budget.runs, or none, goes on"
    )
    assert ended_sentence("budget.hours=0.5", 1) == (
        "budget.hours=0.5 ended the sweep: 1 planned run is open; the same command goes on"
    )


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ({"runs": 0}, "budget.runs > 0 must hold, got runs=0"),
        ({"hours": -1.0}, "budget.hours > 0 must hold, got hours=-1.0"),
        ({"flops": float("inf")}, "budget.flops > 0 must hold, got flops=inf"),
        ({"flops": float("nan")}, "budget.flops > 0 must hold, got flops=nan"),
    ],
)
def test_an_impossible_budget_is_refused(budget: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BudgetConfig(**budget)
