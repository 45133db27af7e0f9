"""Where a joint search looks next: Optuna's TPE over the choices and the learning rate.

The study lives in memory and is made anew from plan and records each time, so that choices may
grow, a killed worker leaves no trial behind, and equal results lead to equal suggestions.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Collection, Mapping
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import TPESampler
from optuna.trial import FrozenTrial, TrialState, create_trial

from study.plan import best
from study.plan.best import Point, Trial
from study.plan.experiment import Plan
from study.records.record import Record

optuna.logging.set_verbosity(optuna.logging.WARNING)

POSITION = "learning_rate"
"""Name of the parameter: the share of an arm's range, on a log scale, since ranges may differ."""
WORST = 0.0
"""What a trial counts that has no score: out of memory, no signal."""
DIGIT = 1.002
"""Factor by which a rate moves on that was tried already."""


def suggest(
    plan: Plan, records: Mapping[str, Record], count: int, given_up: Collection[str] = ()
) -> list[Point]:
    """The next ``count`` trials, none of which has been asked for yet.

    Open trials count as bad ones until their results are there (Optuna's constant liar), so that
    suggestions made meanwhile lie elsewhere.
    """
    space = _Space(plan)
    tried = best.trials(plan)
    study = optuna.create_study(sampler=_sampler(plan, len(tried)), direction="maximize")
    for trial in tried:
        study.add_trial(space.known(trial, records, given_up))
    taken = {trial.point for trial in tried}
    found: list[Point] = []
    for _ in range(count):
        point = space.free(study.ask(space.distributions).params, taken)
        taken.add(point)
        found.append(point)
    return found


def _sampler(plan: Plan, tried: int) -> TPESampler:
    """The sampler, every argument stated that Optuna is not removing: its defaults change."""
    return TPESampler(
        n_startup_trials=0,  # the first trials are planned, see study.plan.best.begin
        n_ei_candidates=24,
        seed=zlib.crc32(f"{plan.experiment.name}/{tried}".encode()),
        multivariate=True,
        group=False,
        constant_liar=True,
    )


class _Space:
    """The choices and the learning rate as parameters of an Optuna study."""

    def __init__(self, plan: Plan) -> None:
        self._arms = best.arms_of(plan)
        self._axes = best.axes(plan.experiment)
        keys = next(iter(self._axes.values()))
        self._values = {key: _in_order({axes[key] for axes in self._axes.values()}) for key in keys}
        choices = {key: _distribution(values) for key, values in self._values.items()}
        self.distributions: dict[str, BaseDistribution] = {
            **choices,
            POSITION: FloatDistribution(0.0, 1.0),
        }

    def known(
        self, trial: Trial, records: Mapping[str, Record], given_up: Collection[str]
    ) -> FrozenTrial:
        """A trial that was asked for before, with its score if it has one."""
        axes = self._axes[trial.arm]
        places = {key: values.index(axes[key]) for key, values in self._values.items()}
        low, high = self._arms[trial.arm].learning_rates
        position = math.log(trial.learning_rate / low) / math.log(high / low)
        params = {**places, POSITION: min(1.0, max(0.0, position))}
        if best.is_open(trial, records, given_up):
            return create_trial(
                state=TrialState.RUNNING, params=params, distributions=self.distributions
            )
        score = best.mean_score(trial, records)
        return create_trial(
            params=params,
            distributions=self.distributions,
            value=_reached(trial, records) if score is None else score,
        )

    def free(self, params: Mapping[str, Any], taken: Collection[Point]) -> Point:
        """The arm and learning rate of these parameters, or the nearest rate not taken there."""
        chosen = {key: values[params[key]] for key, values in self._values.items()}
        arm = next(name for name, axes in self._axes.items() if axes == chosen)
        low, high = self._arms[arm].learning_rates
        rate = best.rate_at(self._arms[arm], params[POSITION])
        for step in itertools.count():
            for moved in (rate * DIGIT**step, rate / DIGIT**step):
                point = (arm, float(f"{moved:.3g}"))
                if low <= point[1] <= high and point not in taken:
                    return point
        raise AssertionError("unreachable")


def _in_order(values: Collection[str]) -> list[str]:
    """Numbers by size, so that neighbours are alike; words by the alphabet."""
    return sorted(values, key=float) if _numeric(values) else sorted(values)


def _numeric(values: Collection[str]) -> bool:
    try:
        return all(math.isfinite(float(value)) for value in values)
    except ValueError:
        return False


def _distribution(values: list[str]) -> BaseDistribution:
    """Places in the list of values: a scale where they are numbers, else without an order."""
    if _numeric(values):
        return IntDistribution(0, len(values) - 1)
    return CategoricalDistribution(range(len(values)))


def _reached(trial: Trial, records: Mapping[str, Record]) -> float:
    """What a trial without a score counts: that of a run stopped early, its best evaluation."""
    found = [records[run_id] for run_id in trial.run_ids if run_id in records]
    reached = [r.score_best for r in found if r.status == "pruned" and r.score_best is not None]
    return min(reached, default=WORST)
