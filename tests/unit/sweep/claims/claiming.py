"""A toy plan's claims, and what of them can be seen."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable
from typing import Any

from study.plan.experiment import PlannedRun
from study.records.record import Record
from study.records.store import ExperimentStore
from study.sweep.claims.claims import Claim, Claims, Pick, first_of
from study.sweep.claims.storage import Storage
from tests.plans import toy_plan

PLAN = toy_plan()


def claims_of(store: ExperimentStore) -> Claims:
    return Claims(store, Storage(store), "toy")


def take(claims: Claims, runs: list[PlannedRun] = PLAN.runs, pick: Pick = first_of) -> list[Claim]:
    return claims.take(PLAN.arms, runs, pick)


def three(free: Iterable[PlannedRun]) -> list[PlannedRun]:
    return list(itertools.islice(free, 3))


def free(claims: Claims) -> set[str]:
    """What could be claimed, nothing claimed."""
    offered: list[PlannedRun] = []

    def none(runs: Iterable[PlannedRun]) -> list[PlannedRun]:
        offered.extend(runs)
        return []

    take(claims, pick=none)
    return {run.run_id for run in offered}


def record(run: PlannedRun, **changes: Any) -> Record:
    facts: dict[str, Any] = {f.name: None for f in dataclasses.fields(Record)}
    facts |= {"schema_version": 1, "run_id": run.run_id, "arm": run.arm, "status": "completed"}
    return Record(**{**facts, "status_reason": "", **changes})


def publish(store: ExperimentStore, found: Record) -> None:
    attempt = store.new_attempt(found.arm, found.run_id)
    assert store.publish(found, attempt)


def trials(claims: Claims) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for optuna_study in claims.storage.trials.get_all_studies():
        for trial in claims.storage.trials.get_all_trials(optuna_study._study_id):
            found.setdefault(trial.user_attrs["run_id"], []).append(trial)
    return found
