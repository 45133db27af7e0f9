"""What an ablation may be: its ends, its factors, its arms by name, and what stays fixed."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from study.config import AblateConfig, EarlyStoppingConfig
from study.plan.experiment import plan_search
from study.plan.growth import merge
from study.plan.lattice import Lattice, arm_overrides
from tests.plans import arm, lora, run_config
from tests.unit.plan.ablations import ENDS, FACTORS, ablation, all_arms, planned


def test_the_learning_rate_may_be_a_factor_itself() -> None:
    factors = ["method.rank", "objective.learning_rate"]
    found = ablation(
        factors=factors,
        arms={
            "default": ["objective.learning_rate=1e-4"],
            "tuned": ["method.rank=2", "objective.learning_rate=1e-3"],
        },
    )
    overrides = arm_overrides(found)
    assert overrides["default.learning_rate"] == ["objective.learning_rate=1e-3"]
    assert overrides["default.rank"] == ["method.rank=2", "objective.learning_rate=1e-4"]
    rates = {"default": 1e-4, "tuned": 1e-3, "default.rank": 1e-4, "default.learning_rate": 1e-3}
    ranks = {"default": 1, "tuned": 2, "default.rank": 2, "default.learning_rate": 1}
    arms = {n: arm(n, run_config(lora(ranks[n])), [rates[n]], factors) for n in overrides}
    plan = plan_search(found, arms, "trl")
    assert len(plan.runs) == 4 * 2
    other = {**arms, "tuned": arm("tuned", run_config(lora(2)), [2e-3], factors)}
    with pytest.raises(ValueError, match=r"arm tuned: objective.learning_rate was \[0.001\]"):
        merge(plan, plan_search(found, other, "trl"))


def test_what_an_ablation_asks_is_fixed() -> None:
    plan = planned()
    alone = AblateConfig(source="default", target="tuned", path=False)
    with pytest.raises(ValueError, match=r"experiment.ablate was .* new name=\.\.\."):
        merge(plan, planned(ablate=alone))
    with pytest.raises(ValueError, match=r"experiment.factors was .* new name=\.\.\."):
        merge(plan, planned(factors=FACTORS[::-1]))
    ends = {**ENDS, "tuned": ["method.rank=4", *ENDS["tuned"][1:]]}
    with pytest.raises(ValueError, match=r"arm default.rank: method.rank was 2 in toy and is 4"):
        merge(plan, planned(arms=ends))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"factors": FACTORS[:1]}, "at least 2 experiment.factors"),
        ({"factors": [*FACTORS, "method"]}, "none may be or lie below another, got method and m"),
        ({"factors": [*FACTORS, FACTORS[0]]}, "none may be or lie below another, got method.rank"),
        ({"factors": [f"a.k{i}" for i in range(7)]}, "takes at most 6 factors, .* got 7"),
        ({"arms": {**ENDS, "more": []}}, "are its source and its target"),
        (
            {"ablate": AblateConfig(source="default", target="tunde", path=True)},
            "target='tunde' and experiment.arms default, tuned",
        ),
        (
            {"ablate": AblateConfig(source="tuned", target="tuned", path=True)},
            "are its source and its target",
        ),
        ({"extend": 1}, "experiment.extend cannot be combined with experiment.ablate, got 1"),
        (
            {"early_stopping": EarlyStoppingConfig(grace_steps=1, keep=0.5, window=1)},
            "experiment.early_stopping cannot be combined with experiment.ablate",
        ),
    ],
)
def test_an_ablation_that_cannot_be_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ablation(**changes)


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        ({"tuned": ["method.rank=2"]}, "must differ in each .* both set objective.steps alike"),
        ({"tuned": [*ENDS["tuned"], "save=last"]}, "but one of them sets 'save=last'"),
    ],
)
def test_ends_differ_in_the_factors_and_nowhere_else(
    ends: dict[str, list[str]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        arm_overrides(ablation(arms={**ENDS, **ends}))


def test_a_common_override_reaches_every_arm_and_a_group_is_one_factor() -> None:
    found = ablation(
        factors=["method", "objective.steps"],
        arms={
            "a": ["method=full", "save=none"],
            "b": ["method=lora", "method.rank=8", "objective.steps=6", "save=none"],
        },
        ablate=AblateConfig(source="a", target="b", path=True),
    )
    assert arm_overrides(found) == {
        "a": ["save=none", "method=full"],
        "b": ["save=none", "method=lora", "method.rank=8", "objective.steps=6"],
        "a.method": ["save=none", "method=lora", "method.rank=8"],
        "a.steps": ["save=none", "method=full", "objective.steps=6"],
    }


def test_names_of_arms_are_told_apart() -> None:
    names = Lattice(source="s", target="t", factors=("model.name", "task.name"), path=True).changed
    assert list(names) == ["s", "t", "s.model.name", "s.task.name"]
    with pytest.raises(ValueError, match="called alike: rename source or target"):
        Lattice(source="s", target="s.rank", factors=("method.rank", "a.b"), path=True)


def test_two_arms_that_are_one_configuration_are_refused() -> None:
    found = ablation()
    arms = all_arms(found, [1e-3])
    arms["default.rank"] = dataclasses.replace(arms["default.rank"], config=arms["default"].config)
    with pytest.raises(ValueError, match=r"default and default\.rank are the same configuration"):
        plan_search(found, arms, "trl")
