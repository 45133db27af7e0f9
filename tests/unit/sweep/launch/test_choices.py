"""The arms of a joint search as a command line makes them, and those that cannot be run."""

from __future__ import annotations

import pytest

from study.compose import compose
from study.sweep.launch.assemble import assemble
from study.sweep.launch.choices import arm_name, for_every_arm, with_choices
from tests.plans import experiment
from tests.unit.plan.joint import settings

SEARCH = ["experiment=best_setting"]


def test_a_name_has_the_last_word_of_each_key_and_its_value() -> None:
    keys = ["method", "method.rank", "task.dataset"]
    assert arm_name(keys, ["lora", "8", "a/b"]) == "lora_rank-8_dataset-a-b"


def test_words_and_switches_become_overrides_that_hydra_reads() -> None:
    choices = {"method.alpha_rule": ["constant", "sqrt"],
               "objective.mask_truncated_completions": [True, False]}  # fmt: skip
    found = with_choices(experiment(best=settings(choices=choices), arms={}, factors=[]))
    assert found.arms["alpha_rule-sqrt_mask_truncated_completions-true"] == [
        "method.alpha_rule=sqrt",
        "objective.mask_truncated_completions=true",
    ]
    assert all(compose(["method=lora", *overrides]) for overrides in found.arms.values())


def test_two_combinations_of_one_name_are_refused() -> None:
    choices = {"task.dataset": ["a/b", "a-b"]}
    with pytest.raises(ValueError, match=r"two combinations .* would be called 'dataset-a-b'"):
        with_choices(experiment(best=settings(choices=choices), arms={}, factors=[]))


def test_every_arm_that_cannot_be_run_is_listed_at_once() -> None:
    def odd(name: str, value: int) -> int:
        if value % 2 == 0:
            raise ValueError(f"{value} is even")
        return value

    assert for_every_arm(odd, {"a": 1, "b": 3}) == {"a": 1, "b": 3}
    message = "2 of 3 arms cannot be run: b: 2 is even; c: 4 is even"
    with pytest.raises(ValueError, match=f"^{message}$"):
        for_every_arm(odd, {"a": 1, "b": 2, "c": 4})
    with pytest.raises(ValueError, match=r"^2 is even$"):
        for_every_arm(odd, {"only": 2})


@pytest.mark.integration
@pytest.mark.timeout(240)
def test_a_command_line_plans_the_first_trials_of_a_joint_search() -> None:
    found = assemble(SEARCH)
    plan = found.plan
    assert len(plan.experiment.arms) == 9
    assert len(plan.runs) == 10
    assert {arm.learning_rates[0] for arm in plan.arms.values()} == {1e-4}
    assert plan.arms.keys() | plan.reserve.keys() == plan.experiment.arms.keys()
    named = assemble([*SEARCH, "name=elsewhere", "experiment.best.trials=60"]).plan
    assert named.experiment.name == "elsewhere"


@pytest.mark.integration
@pytest.mark.timeout(240)
def test_cells_of_the_product_that_cannot_be_run_are_refused_before_any_model_is_read() -> None:
    with pytest.raises(ValueError, match=r"3 of 6 arms cannot be run: .*5000.*; .*5000") as told:
        assemble([*SEARCH, _choices("objective.prompts_per_step", "[8,5000]")])
    assert str(told.value).count("train_prompts") == 3
    with pytest.raises(ValueError, match=r"3 of 6 arms cannot be run: rank-9999\S*: .*rank"):
        assemble([*SEARCH, _choices("method.rank", "[1,9999]")])


def _choices(key: str, values: str) -> str:
    return f"experiment.best.choices={{{key}: {values}}}"


@pytest.mark.integration
@pytest.mark.parametrize(
    ("override", "rule"),
    [
        ("+experiment.best.choices.seed=[1,2]", "can only set keys of a run"),
        ("space=lab64", "leave out one of the two"),
        ("method.rank=4", "is set by arm"),
    ],
)
def test_choices_and_ranges_that_others_set_are_refused(override: str, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        assemble([*SEARCH, override])
