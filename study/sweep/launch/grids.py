"""The learning-rate grid of each arm, from ``space`` or, in an ablation of the rate, the arm."""

from __future__ import annotations

from collections.abc import Mapping

from study.compose import override_key
from study.config import BestConfig, ExperimentConfig, RunConfig, StudyConfig
from study.config.method import METHODS
from study.config.modes import check_span
from study.plan.arms import RATE_KEY, check_rates


def learning_rate_grids(
    config: StudyConfig, experiment: ExperimentConfig, configs: Mapping[str, RunConfig]
) -> dict[str, list[float]]:
    """Grids by arm, ascending.

    Raises:
        ValueError: for a grid of nobody, a missing one, or one that would not be read.
    """
    if rate_is_factor(experiment):
        _check_own_rates(config, experiment)
        return {name: [run.objective.learning_rate] for name, run in configs.items()}
    _check_space(config, experiment, configs)
    if experiment.best is not None:
        return {name: _range(config, experiment.best, name, run) for name, run in configs.items()}
    return {name: _grid(config, name, run) for name, run in configs.items()}


def rate_is_factor(experiment: ExperimentConfig) -> bool:
    """Whether an ablation changes the learning rate like any other factor."""
    return experiment.ablate is not None and RATE_KEY in experiment.factors


def _check_own_rates(config: StudyConfig, experiment: ExperimentConfig) -> None:
    if config.space.learning_rate:
        raise ValueError(
            f"space.learning_rate is not read where {RATE_KEY} is one of experiment.factors: "
            "leave out one of the two"
        )
    for name, overrides in experiment.arms.items():
        if RATE_KEY not in map(override_key, overrides):
            raise ValueError(f"{RATE_KEY} is one of experiment.factors, so arm {name!r} sets it")


def _check_space(
    config: StudyConfig, experiment: ExperimentConfig, configs: Mapping[str, RunConfig]
) -> None:
    """A grid for an arm that is not there is a typo."""
    known = [*configs, *(run.method.name for run in configs.values())]
    for name in config.space.learning_rate:
        if name not in known and name not in METHODS:
            raise ValueError(
                f"space.learning_rate.{name} names neither an arm ({', '.join(configs)}) nor a "
                f"method ({', '.join(METHODS)})"
            )
        if experiment.ablate is not None and name not in METHODS:
            raise ValueError(
                "the arms of an ablation have their grids by method "
                f"({', '.join(METHODS)}), got space.learning_rate.{name}"
            )


def _grid(config: StudyConfig, arm: str, run: RunConfig) -> list[float]:
    grids = config.space.learning_rate
    return check_rates(arm, list(grids.get(arm, grids.get(run.method.name, []))))


def _range(config: StudyConfig, best: BestConfig, arm: str, run: RunConfig) -> list[float]:
    """The ends of the range that a joint search looks in."""
    if best.low is None or best.high is None:
        rates = _grid(config, arm, run)
        check_span(f"arm {arm!r}", rates[0], rates[-1])
        return [rates[0], rates[-1]]
    if config.space.learning_rate:
        raise ValueError(
            "experiment.best.low and high are the range of every arm, so space.learning_rate is "
            "not read: leave out one of the two"
        )
    return [best.low, best.high]
