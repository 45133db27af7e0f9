from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from study.config import EarlyStoppingConfig, SeedsConfig
from study.plan.arms import extended
from study.plan.budget import bill
from study.plan.experiment import from_json, plan_search, planned_run, to_json
from study.plan.growth import merge
from study.plan.identity import arm_identity, short_hash
from tests.plans import (
    FULL_RATES,
    LORA_RATES,
    arm,
    description,
    experiment,
    full,
    lora,
    objective,
    run_config,
    toy_plan,
)


def test_plan_holds_every_cell_once_and_arms_keep_pace() -> None:
    plan = toy_plan()
    cells = {(r.arm, r.learning_rate, r.seed) for r in plan.runs}
    expected = {
        (name, rate, seed)
        for name, rates in (("full", FULL_RATES), ("lora-r1", LORA_RATES))
        for rate in rates
        for seed in (0, 1)
    }
    assert cells == expected
    assert len({r.run_id for r in plan.runs}) == len(plan.runs) == 12
    assert [r.seed for r in plan.runs] == [0] * 6 + [1] * 6
    assert [r.arm for r in plan.runs[:2]] == ["full", "lora-r1"]


def test_run_id_follows_what_changes_the_result_and_nothing_else() -> None:
    base = arm("a", run_config(lora(8)), LORA_RATES)
    known = planned_run(base, "search", 1e-3, 0).run_id

    def run_id(**changes: Any) -> str:
        changed = dataclasses.replace(base.config, **changes)
        return planned_run(dataclasses.replace(base, config=changed), "search", 1e-3, 0).run_id

    assert run_id(save="best") == known
    assert run_id(model=dataclasses.replace(base.config.model, name="other")) == known
    assert run_id(objective=objective(temperature=0.9)) != known
    assert run_id(task=dataclasses.replace(base.config.task, max_completion_length=9)) != known
    assert run_id(method=lora(8, alpha_rule="sqrt")) != known
    assert planned_run(base, "report", 1e-3, 0).run_id != known  # other prompts
    assert planned_run(base, "search", 1e-3, 1).run_id != known
    renamed = dataclasses.replace(base, name="b")
    assert planned_run(renamed, "search", 1e-3, 0).run_id == known
    other_weights = dataclasses.replace(base, model=description(model_revision="xyz"))
    assert planned_run(other_weights, "search", 1e-3, 0).run_id != known


def test_floats_that_agree_to_six_digits_are_one_run() -> None:
    assert short_hash({"x": 0.1 + 0.2}) == short_hash({"x": 0.3})
    assert short_hash({"x": 3.00001}) != short_hash({"x": 3.0})
    assert short_hash({"a": 1, "b": 2}) == short_hash({"b": 2, "a": 1})


def test_plan_survives_json() -> None:
    plan = toy_plan()
    assert from_json(json.loads(json.dumps(to_json(plan)))) == plan


def test_foreign_plan_version_is_named() -> None:
    with pytest.raises(ValueError, match="schema_version 99"):
        from_json({"schema_version": 99})


def test_arms_may_differ_only_in_factors() -> None:
    arms = {
        "full": arm("full", run_config(full()), FULL_RATES),
        "lora": arm("lora", run_config(lora(), objective=objective(steps=4)), LORA_RATES),
    }
    with pytest.raises(ValueError, match=r"objective\.steps differs \(full: 3, lora: 4\)"):
        plan_search(experiment(), arms, "trl")
    plan_search(experiment(factors=["method", "objective.steps"]), arms, "trl")


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        ([2e-4, 2e-3], "same number of points in every arm, got 3 for full and 2 for lora-r1"),
        ([2e-4, 2e-3, 6e-3], "same spacing in every arm, got gaps of 1.00 decades"),
    ],
)
def test_unequal_grids_are_refused(rates: list[float], message: str) -> None:
    arms = {
        "full": arm("full", run_config(full()), FULL_RATES),
        "lora-r1": arm("lora-r1", run_config(lora()), rates),
    }
    with pytest.raises(ValueError, match=message):
        plan_search(experiment(), arms, "trl")


def test_one_three_ten_grids_count_as_equally_spaced() -> None:
    arms = {
        "full": arm("full", run_config(full()), [1e-4, 3e-4, 1e-3]),
        "lora-r1": arm("lora-r1", run_config(lora()), [3e-4, 1e-3, 3e-3]),
    }
    assert len(plan_search(experiment(), arms, "trl").runs) == 12


def test_experiments_grow_but_never_change() -> None:
    old = toy_plan()
    more = toy_plan(seeds=SeedsConfig(search=[0, 1, 2], report=[100, 101]))
    merged = merge(old, more)
    assert merged.runs[:12] == old.runs
    assert {r.seed for r in merged.runs[12:]} == {2}
    assert len(merged.runs) == 18
    fewer = toy_plan(seeds=SeedsConfig(search=[0], report=[100]))
    assert merge(old, fewer).runs == old.runs
    with pytest.raises(ValueError, match=r"criterion was 'c' in toy and is 'other' now.*new name"):
        merge(old, toy_plan(criterion="other"))
    longer = run_config(full(), objective=objective(steps=5))
    changed = {**old.arms, "full": arm("full", longer, FULL_RATES)}
    with pytest.raises(ValueError, match=r"arm full: objective\.steps was 3"):
        merge(old, dataclasses.replace(old, arms=changed))


STOPPING = EarlyStoppingConfig(grace_steps=1, keep=0.5, window=1)


def test_early_stopping_is_part_of_what_an_experiment_means() -> None:
    old = toy_plan(early_stopping=STOPPING)
    assert merge(old, toy_plan(early_stopping=STOPPING)).runs == old.runs
    milder = dataclasses.replace(STOPPING, keep=0.6)
    for other in (None, milder):
        with pytest.raises(ValueError, match=r"experiment\.early_stopping was .*new name"):
            merge(old, toy_plan(early_stopping=other))
    with pytest.raises(ValueError, match=r"experiment\.early_stopping was None"):
        merge(toy_plan(), old)


def test_early_stopping_survives_plan_json_and_may_lack_in_it() -> None:
    plan = toy_plan(early_stopping=STOPPING)
    assert from_json(json.loads(json.dumps(to_json(plan)))) == plan
    data = json.loads(json.dumps(to_json(toy_plan())))
    del data["experiment"]["early_stopping"]  # as written before there was any
    assert from_json(data) == toy_plan()


@pytest.mark.parametrize(
    ("changes", "law"),
    [
        (
            {"grace_steps": 3},
            r"grace_steps < objective\.steps must hold, arm 'full' has 1, 3 and 3",
        ),
        ({"keep": 0.7}, r"keep=0\.7 keeps all 3 learning rates of arm 'full'"),
    ],
)
def test_early_stopping_that_would_stop_nothing_is_refused(
    changes: dict[str, Any], law: str
) -> None:
    with pytest.raises(ValueError, match=law):
        toy_plan(early_stopping=dataclasses.replace(STOPPING, **changes))


def test_a_margin_is_not_read_with_early_stopping() -> None:
    with pytest.raises(ValueError, match=r"experiment\.margin is not read with"):
        experiment(margin=0.05, early_stopping=STOPPING)


def test_growing_keeps_seeds_of_the_phases_apart() -> None:
    with pytest.raises(ValueError, match=r"disjoint, both hold \[0, 100\]"):
        merge(toy_plan(), toy_plan(seeds=SeedsConfig(search=[100], report=[0])))


def test_bill_counts_both_phases_and_knows_time_only_when_measured() -> None:
    plan = toy_plan()
    unknown = bill(plan, workers=2, price_per_hour=3.6, measured={})
    assert (unknown.runs, unknown.seconds, unknown.price) == (16, None, None)
    known = bill(plan, workers=2, price_per_hour=3.6, measured={"full": 10.0, "lora-r1": 20.0})
    assert known.seconds == (8 * 10 + 8 * 20) / 2
    assert known.price == pytest.approx(3.6 * 240 / 3600)


def test_arm_identity_has_no_rate_and_no_seed() -> None:
    a, b = run_config(objective=objective(learning_rate=1e-4)), run_config(seed=7)
    assert arm_identity(a, description(), []) == arm_identity(b, description(), [])


def test_arms_that_are_the_same_configuration_are_refused() -> None:
    arms = {
        "a": arm("a", run_config(lora()), LORA_RATES),
        "b": arm("b", run_config(lora(target_modules=["all"])), LORA_RATES),
    }
    with pytest.raises(ValueError, match="a and b are the same configuration"):
        plan_search(experiment(arms={"a": [], "b": []}), arms, "trl")


def test_an_extended_experiment_can_still_gain_an_arm() -> None:
    old = toy_plan(extend=1)
    arms = {name: extended(a, ["high"], 1) for name, a in old.arms.items()}
    grown = dataclasses.replace(old, arms=arms, extended=["high"])
    fresh = {**old.arms, "lora-r2": arm("lora-r2", run_config(lora(2)), LORA_RATES)}
    names = {"full": [], "lora-r1": [], "lora-r2": []}
    merged = merge(grown, plan_search(experiment(extend=1, arms=names), fresh, "trl"))
    assert len(merged.arms["lora-r2"].learning_rates) == 4
    assert len(merged.cells("lora-r2", "search")) == 8


def test_a_grid_of_one_rate_cannot_be_extended() -> None:
    arms = {
        "full": arm("full", run_config(full()), [1e-4]),
        "lora-r1": arm("lora-r1", run_config(lora()), [1e-3]),
    }
    with pytest.raises(ValueError, match="at least 2 learning rates to continue"):
        plan_search(experiment(extend=1), arms, "trl")


def test_single_runs_share_a_plan() -> None:
    seeds = SeedsConfig(search=[0], report=[])
    one = plan_search(
        experiment(kind="single", arms={"a": []}, seeds=seeds),
        {"a": arm("a", run_config(lora()), [1e-3])},
        "trl",
    )
    other = plan_search(
        experiment(kind="single", arms={"b": []}, seeds=seeds),
        {"b": arm("b", run_config(full()), [1e-4])},
        "trl",
    )
    both = merge(one, other)
    assert [run.arm for run in both.runs] == ["a", "b"]
    assert merge(both, one).runs == both.runs
