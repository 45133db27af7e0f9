"""A plan that a later launch adds to: what may grow, and what an experiment means."""

from __future__ import annotations

import dataclasses
from typing import Any

from study.config import ExperimentConfig, SeedsConfig
from study.plan.arms import RATE_KEY, Arm, extended, flatten
from study.plan.experiment import Plan, check_arms, searching
from study.plan.identity import arm_identity

FIXED = (
    "kind",
    "hypothesis",
    "decision_metric",
    "criterion",
    "factors",
    "margin",
    "extend",
    "early_stopping",
    "ablate",
    "refine",
)
"""What an experiment means; it may grow, but these never change."""


def merge(old: Plan, new: Plan) -> Plan:
    """The grown plan: old runs first, then what ``new`` adds; engine and retries are ``new``'s.

    Raises:
        ValueError: if ``new`` changes the meaning of the experiment instead of growing it.
    """
    _check_same_meaning(old, new)
    _check_storage(old, new)
    before = {**old.arms, **old.reserve}
    arms = dict(before)
    for name, arm in {**new.arms, **new.reserve}.items():
        if name not in before:
            arm = extended(arm, old.extended, new.experiment.extend)
        known = arms.get(name, arm)
        grid = sorted({*known.learning_rates, *arm.learning_rates})
        arms[name] = dataclasses.replace(arm, learning_rates=grid)
    seeds = SeedsConfig(
        search=_union(old.experiment.seeds.search, new.experiment.seeds.search),
        report=_union(old.experiment.seeds.report, new.experiment.seeds.report),
    )
    overrides = {**old.experiment.arms, **new.experiment.arms}
    experiment = dataclasses.replace(new.experiment, arms=overrides, seeds=seeds)
    started = [name for name in arms if name in old.arms or name in new.arms]
    if experiment.best is not None:
        started = list(old.arms)  # further arms join with the trials that try them
    grown = dataclasses.replace(
        old,
        experiment=experiment,
        engine=new.engine,
        arms={name: arms[name] for name in started},
        reserve={name: arm for name, arm in arms.items() if name not in started},
        max_retries=new.max_retries,
        storage=new.storage,
    )
    check_arms(experiment, arms)
    if experiment.kind == "experiment":
        grown = searching(grown, started)
    else:
        known_ids = {run.run_id for run in old.runs}
        further = [run for run in new.runs if run.run_id not in known_ids]
        grown = dataclasses.replace(grown, runs=[*old.runs, *further])
    return dataclasses.replace(grown, looks=old.looks + _asks_for_more(old, grown))


def _asks_for_more(old: Plan, grown: Plan) -> bool:
    """Whether there are more runs, or seeds or trials whose runs join later."""
    before, after = old.experiment, grown.experiment
    asked = (before.seeds, before.best) != (after.seeds, after.best)
    return asked or len(grown.runs) > len(old.runs)


def _check_storage(old: Plan, new: Plan) -> None:
    """Workers that claim in two storages would train runs twice; single runs are claimed alone."""
    if old.storage != new.storage and old.experiment.kind != "single":
        raise ValueError(
            f"an experiment keeps its storage: {old.experiment.name} has storage="
            f"{old.storage or 'null'}, got storage={new.storage or 'null'}; to move it, stop its "
            "workers and change 'storage' in its plan.json"
        )


def _union(old: list[int], new: list[int]) -> list[int]:
    return [*old, *(seed for seed in new if seed not in old)]


def _check_same_meaning(old: Plan, new: Plan) -> None:
    for key in FIXED:
        before, after = getattr(old.experiment, key), getattr(new.experiment, key)
        if before != after:
            raise ValueError(_needs_new_name(old, f"experiment.{key}", before, after))
    best, later = old.experiment.best, new.experiment.best
    if best != later and (best is None or later is None or not best.grows(later)):
        raise ValueError(_needs_new_name(old, "experiment.best", best, later))
    old_arms, new_arms = ({**plan.arms, **plan.reserve} for plan in (old, new))
    for name in sorted(old_arms.keys() & new_arms.keys()):
        before_arm, after_arm = (
            flatten(_meaning(arms[name], old.experiment)) for arms in (old_arms, new_arms)
        )
        for key in sorted(before_arm.keys() | after_arm.keys()):
            if before_arm.get(key) != after_arm.get(key):
                where = f"arm {name}: {key}"
                raise ValueError(
                    _needs_new_name(old, where, before_arm.get(key), after_arm.get(key))
                )


def _meaning(arm: Arm, experiment: ExperimentConfig) -> dict[str, Any]:
    """What an arm stays: all but its grid, and that too if it is a range or the rate a factor."""
    fixed = RATE_KEY in experiment.factors or experiment.best is not None
    rate = {RATE_KEY: arm.learning_rates} if fixed else {}
    return arm_identity(arm.config, arm.model, arm.target_modules) | rate


def _needs_new_name(old: Plan, key: str, before: object, after: object) -> str:
    return (
        f"an experiment may grow but not change: {key} was {before!r} in {old.experiment.name} "
        f"and is {after!r} now; give the changed experiment a new name=..."
    )
