from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from study.compose import compose
from study.config import ExperimentConfig, StudyConfig
from study.plan.lattice import arm_overrides
from study.sweep.launch.grids import learning_rate_grids


def composed(*overrides: str) -> tuple[StudyConfig, ExperimentConfig]:
    config = compose(["experiment=ablation", *overrides])
    assert config.experiment is not None
    return config, config.experiment


def grids(config: StudyConfig, experiment: ExperimentConfig) -> dict[str, list[float]]:
    overrides = arm_overrides(experiment)
    configs = {name: compose([*over]).run() for name, over in overrides.items()}
    return learning_rate_grids(config, experiment, configs)


def without_rate(experiment: ExperimentConfig, **changes: Any) -> ExperimentConfig:
    """The same ablation, each arm on a grid."""
    arms = {name: overrides[:2] for name, overrides in experiment.arms.items()}
    return replace(experiment, arms=arms, factors=experiment.factors[:2], **changes)


def test_a_rate_that_is_a_factor_is_each_arms_own() -> None:
    found = grids(*composed())
    assert len(found) == 8
    assert found["default"] == found["default.rank"] == [1e-4]
    assert found["tuned"] == found["default.learning_rate"] == [1e-3]


def test_a_grid_beside_a_rate_that_is_a_factor_is_refused() -> None:
    with pytest.raises(ValueError, match=r"space\.learning_rate is not read where"):
        grids(*composed("space=lab64"))


def test_both_ends_set_a_rate_that_is_a_factor() -> None:
    config, experiment = composed()
    arms = {**experiment.arms, "default": experiment.arms["default"][:2]}
    with pytest.raises(ValueError, match=r"so arm 'default' sets it"):
        grids(config, replace(experiment, arms=arms))


def test_otherwise_every_arm_has_the_grid_of_its_method() -> None:
    config, experiment = composed("space=lab64")
    found = grids(config, without_rate(experiment))
    assert list(found) == ["default", "tuned", "default.rank", "default.target_modules"]
    assert all(grid == config.space.learning_rate["lora"] for grid in found.values())


def test_a_grid_of_one_arm_alone_is_refused_in_an_ablation() -> None:
    config, experiment = composed("space=lab64", "+space.learning_rate.tuned=[1e-4,1e-3]")
    with pytest.raises(ValueError, match=r"grids by method .* got space.learning_rate.tuned"):
        grids(config, without_rate(experiment))
