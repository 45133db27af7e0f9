"""The Optuna studies of an experiment: one per arm and phase, and one that holds its plan."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import optuna
from optuna.study import StudyDirection

from study.plan.experiment import Plan, PlannedRun
from study.plan.portions import portions
from study.sweep.claims.storage import Storage, patiently


class Studies:
    """Studies by name, made when they are first asked for."""

    def __init__(self, storage: Storage, experiment: str) -> None:
        """Builds the view.

        Args:
            storage: Where they are.
            experiment: The experiment's name: studies are called ``EXPERIMENT/ARM/PHASE``.
        """
        self.storage = storage
        self._experiment = experiment
        self._ids: dict[str, int] = {}

    def name_of(self, run: PlannedRun) -> str:
        """The study that has the run's trials."""
        return f"{self._experiment}/{run.arm}/{run.phase}"

    def arm_of(self, name: str) -> str:
        """The arm whose runs the study of that name has."""
        return name.removeprefix(f"{self._experiment}/").rpartition("/")[0]

    def id_of(self, name: str) -> int:
        """Optuna's number of a study."""
        if name not in self._ids:
            try:
                found = self.storage.trials.get_study_id_from_name(name)
            except KeyError:
                found = self._new(name)
            self._ids[name] = found
        return self._ids[name]

    def _new(self, name: str) -> int:
        try:
            return self.storage.trials.create_new_study([StudyDirection.MAXIMIZE], name)
        except optuna.exceptions.DuplicatedStudyError:  # another launch was faster
            return self.storage.trials.get_study_id_from_name(name)

    @patiently
    def adopt(self, plan: Plan, directory: Path) -> None:
        """Make the name in this storage the plan's own, if no other sweep has it.

        Workers of two directories would train each other's runs and see none of each other's
        results.

        Args:
            plan: The plan.
            directory: Where it is.

        Raises:
            ValueError: if the name is that of a sweep in another directory.
        """
        with self.storage.lock(self._experiment):
            study_id = self.id_of(f"{self._experiment}/plan")
            owner = self.storage.trials.get_study_user_attrs(study_id).get("sweep")
            place = f"{socket.gethostname()}:{directory}"
            if owner is not None and owner["id"] != plan.id:
                raise ValueError(self._foreign(owner["directory"], place))
            self._set_attributes(study_id, {"sweep": {"id": plan.id, "directory": place}})

    def _foreign(self, owner: str, place: str) -> str:
        name, here = self._experiment, owner == place
        if here:
            told = f"what a sweep told that was here before; delete its studies {name}/... there"
        else:
            told = f"another sweep called {name}, launched in {owner}; launch it there"
        return f"storage {self.storage.place} holds {told}, or give this one a name=... of its own"

    @patiently
    def describe(self, plan: Plan, content: Mapping[str, Any], selections: Any) -> None:
        """Keep the plan in the storage, and with each study what its trials are about.

        Args:
            plan: The plan.
            content: What ``plan.json`` holds.
            selections: Content of the selections, by arm.
        """
        for arm, phase in plan.phases:
            study_id = self.id_of(f"{self._experiment}/{arm}/{phase}")
            rates = plan.arms[arm].learning_rates
            facts = {
                "experiment": self._experiment,
                "arm": arm,
                "phase": phase,
                "factors": plan.arms[arm].factors,
                "learning_rates": rates,
            }
            self._set_attributes(study_id, facts)
        study_id = self.id_of(f"{self._experiment}/plan")
        self._set_attributes(study_id, {"selections": selections, **portions(content)})

    def _set_attributes(self, study_id: int, facts: Mapping[str, Any]) -> None:
        known = self.storage.trials.get_study_user_attrs(study_id)
        for key, value in json.loads(json.dumps(facts)).items():  # tuples come back as lists
            if known.get(key) != value:
                self.storage.trials.set_study_user_attr(study_id, key, value)
