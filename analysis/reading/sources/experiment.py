"""Our own experiments in an Optuna storage: plan, selections and every trial.

The study ``EXPERIMENT/plan`` holds plan and selections; the studies of arms and phases hold a trial
for each attempt at a run, and the whole record in those that ended with one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optuna.storages import BaseStorage
from optuna.study._frozen import FrozenStudy
from optuna.trial import FrozenTrial, TrialState

from analysis.reading.sources.storage import opened
from study.plan.portions import whole
from study.records.location import without_password

PLAN_STUDY = "/plan"
"""How the name of the study ends that makes an experiment of ours out of other studies."""


@dataclass(frozen=True)
class Attempt:
    """One try at a run, as its trial tells it."""

    arm: str
    attributes: dict[str, Any]
    """``run_id``, ``attempt``, ``status``, ``status_reason``, ``record`` and others, if set."""
    failed: bool
    """It ended without a value."""
    accuracy: dict[int, float]
    """Held-out accuracy by optimizer step."""


@dataclass(frozen=True)
class StoredExperiment:
    """One experiment as a storage has it; nothing of it is checked yet."""

    place: str
    """URL of the storage, without a password."""
    plan: Any
    selections: Any
    attempts: list[Attempt]
    """In the order in which they began, arm by arm and phase by phase."""


def read_experiment(url: str, name: str | None) -> StoredExperiment:
    """Read one experiment of a storage; nothing is written to it.

    Args:
        url: ``postgresql://USER@HOST/DATABASE``, ``sqlite:///FILE`` or ``journal:FILE``.
        name: The experiment; None: the storage's only one.

    Raises:
        ValueError: if the storage cannot be read, holds no experiment of ours, not the one that is
            named, or several and none is named.
    """
    place = without_password(url)
    with opened(url) as storage:
        planned = experiments(storage)
        name = _chosen(place, sorted(planned), name)
        # The plan last: a run joins it before it is tried, and a sweep may be going on.
        studies = storage.get_all_studies()
        attempts = [a for study in studies for a in _attempts(storage, study, name)]
        facts = storage.get_study_user_attrs(planned[name])
    try:
        plan = whole(facts)
    except KeyError as error:
        raise ValueError(f"the plan of {name} in {place} lacks its part {error}") from None
    return StoredExperiment(place, plan, facts.get("selections", {}), attempts)


def experiments(storage: BaseStorage) -> dict[str, int]:
    """Our own experiments in a storage: the id of the study that holds the plan, by name."""
    return {
        study.study_name.removesuffix(PLAN_STUDY): study._study_id
        for study in storage.get_all_studies()
        if study.study_name.endswith(PLAN_STUDY) and "plan" in study.user_attrs
    }


def _chosen(place: str, names: list[str], wanted: str | None) -> str:
    if not names:
        raise ValueError(
            f"{place} holds no experiment of this package; studies of others are read by "
            "`python -m analysis import`"
        )
    if wanted is None and len(names) > 1:
        raise ValueError(
            f"{place} holds several experiments, name one by --experiment: {', '.join(names)}"
        )
    if wanted is not None and wanted not in names:
        raise ValueError(f"{place} has no experiment {wanted!r}; it has {', '.join(names)}")
    return wanted or names[0]


def _attempts(storage: BaseStorage, study: FrozenStudy, experiment: str) -> list[Attempt]:
    facts = study.user_attrs
    if facts.get("experiment") != experiment or "arm" not in facts:
        return []
    trials = storage.get_all_trials(study._study_id, deepcopy=False)
    return [_attempt(str(facts["arm"]), trial) for trial in trials]


def _attempt(arm: str, trial: FrozenTrial) -> Attempt:
    failed = trial.state == TrialState.FAIL
    return Attempt(arm, trial.user_attrs, failed, trial.intermediate_values)
