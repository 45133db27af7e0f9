"""Settings of the loss: laws, the way through files, the engine, and the names of runs."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from study.compose import compose, split_sweeps
from study.config import EngineConfig, EntropyShaping, RunConfig, run_config_from_dict
from study.plan.arms import Arm
from study.plan.experiment import planned_run
from study.plan.identity import arm_identity
from study.plan.packs import choose_engine
from tests.plans import LORA_RATES, arm, lora, objective, run_config

PAPER = EntropyShaping(alpha=0.4, kappa=2.0)
SHAPED_BLOCK = "objective.entropy_shaping={alpha: 0.4, kappa: 2}"
OF_THE_FIRST_IDENTITY = {
    "name",
    "steps",
    "prompts_per_step",
    "num_generations",
    "micro_batch_size",
    "loss_type",
    "scale_rewards",
    "beta",
    "epsilon",
    "epsilon_high",
    "num_iterations",
    "importance_sampling_level",
    "mask_truncated_completions",
    "lr_scheduler_type",
    "warmup_steps",
    "weight_decay",
    "adam_beta1",
    "adam_beta2",
    "adam_epsilon",
    "max_grad_norm",
    "temperature",
    "no_signal_steps",
}


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["objective.entropy_shaping.alpha=-0.1"], r"entropy_shaping\.alpha < inf must .*=-0\.1"),
        (["objective.entropy_shaping.alpha=nan"], r"entropy_shaping\.alpha < inf must hold"),
        (["objective.entropy_shaping={alpha: 0.4, kappa: 1}"], r"turns the sign .* got kappa=1"),
        (["objective.entropy_shaping.kappa=inf"], r"entropy_shaping\.kappa < inf .* kappa=inf"),
        (["objective.entropy_shaping.alpah=0.4"], r"alpah is not a key of EntropyShaping"),
        (["objective.entropy_shaping=null"], r"entropy_shaping must have a value, got null"),
        (["objective.top_entropy_quantile=0"], r"0 < objective\.top_entropy_quantile <= 1 must"),
        (
            ["objective.top_entropy_quantile=1.5"],
            r"quantile <= 1 must hold, got .*1\.5",
        ),
        (["objective.loss_type=luspo"], r"luspo needs .*=sequence, got token"),
        (
            ["objective.loss_type=vespo", "objective.importance_sampling_level=sequence"],
            r"vespo needs .*=token, got sequence",
        ),
        (["objective.loss_type=cispo"], r"epsilon_high >= 1 \(under loss_type=cispo .*=0\.2"),
    ],
)
def test_bad_input_is_one_sentence(overrides: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        compose(overrides)
    assert "\n" not in str(caught.value)


def test_shaping_is_off_unless_asked_for() -> None:
    plain = compose([]).objective
    assert (plain.entropy_shaping.is_on, plain.top_entropy_quantile) == (False, 1.0)
    for override in ("objective.entropy_shaping.alpha=0.4", SHAPED_BLOCK):
        assert compose([override]).objective.entropy_shaping == PAPER


def test_shaping_can_be_swept() -> None:
    _, swept = split_sweeps(["objective.entropy_shaping.alpha=0,0.4"])
    ((key, values),) = swept.items()
    found = [compose([f"{key}={value}"]).objective.entropy_shaping for value in values]
    assert found == [EntropyShaping(), PAPER]


def test_a_run_with_shaping_survives_json() -> None:
    config = run_config(objective=objective(entropy_shaping=PAPER, top_entropy_quantile=0.2))
    assert run_config_from_dict(json.loads(json.dumps(dataclasses.asdict(config)))) == config


def configured(**changes: Any) -> Arm:
    engine = EngineConfig(name="packed")
    config: RunConfig = run_config(lora(8), objective=objective(**changes), engine=engine)
    return arm("a", config, LORA_RATES)


def test_objectives_from_before_these_settings_are_read() -> None:
    config = run_config()
    data = dataclasses.asdict(config)
    data["objective"] = without_later(data["objective"])
    assert run_config_from_dict(data) == config


def without_later(settings: dict[str, Any]) -> dict[str, Any]:
    """As files hold them that were written before the settings existed."""
    return {k: v for k, v in settings.items() if k in OF_THE_FIRST_IDENTITY | {"learning_rate"}}


def test_settings_that_came_later_leave_the_ids_of_runs_without_them() -> None:
    for shaping in (EntropyShaping(), EntropyShaping(alpha=0.0, kappa=3.0)):
        plain = configured(entropy_shaping=shaping)
        known = arm_identity(plain.config, plain.model, plain.target_modules)["objective"]
        assert known.keys() == OF_THE_FIRST_IDENTITY


def test_settings_that_came_later_are_in_the_ids_of_runs_with_them() -> None:
    shapings = [EntropyShaping(), PAPER, EntropyShaping(alpha=0.1, kappa=2.0)]
    arms = [
        configured(entropy_shaping=shaping, top_entropy_quantile=share)
        for shaping in shapings
        for share in (1.0, 0.2)
    ]
    assert len({planned_run(a, "search", 1e-3, 0).run_id for a in arms}) == 6


@pytest.mark.parametrize("changes", [{"entropy_shaping": PAPER}, {"top_entropy_quantile": 0.2}])
def test_the_packed_engine_takes_what_weighs_tokens_by_entropy(changes: dict[str, Any]) -> None:
    assert choose_engine("packed", {"a": configured(**changes)}).name == "packed"


@pytest.mark.parametrize(
    ("loss", "changes"),
    [
        ("cispo", {"epsilon_high": 5.0}),
        ("sapo", {}),
        ("vespo", {}),
        ("luspo", {"importance_sampling_level": "sequence"}),
    ],
)
def test_losses_that_trl_alone_computes_are_its(loss: str, changes: dict[str, Any]) -> None:
    arms = {"a": configured(loss_type=loss, **changes)}
    choice = choose_engine("auto", arms)
    assert (choice.name, choice.reason) == ("trl", f"since arm a sets objective.loss_type={loss}")
    with pytest.raises(ValueError, match=f"sets objective.loss_type={loss}; use engine=trl"):
        choose_engine("packed", arms)
