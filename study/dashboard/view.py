"""An experiment's Optuna storage as the dashboard sees it: nothing can be written through it.

It adds a study that the storage lacks: the search of all arms together, with the factors as
parameters, since inside an arm the learning rate alone is varied and its importance is always 1.
"""

from __future__ import annotations

import copy
from collections.abc import Container, Sequence
from typing import Any, NoReturn

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.study._frozen import FrozenStudy
from optuna.trial import FrozenTrial, TrialState

JOINT_ID = 1_000_000_000
"""Study and first trial of the joint search; no storage counts so far."""
SHOWN = ("flags", "score_best", "score_greedy", "score_base", "steps_done", "wall_time_s")
"""What a trial shows of its record, beside its own attributes."""
HIDDEN = ("record", "lease")
METRIC_NAMES = {"study:metric_names": ["held-out accuracy"]}
READ_ONLY = (
    "the dashboard shows a sweep and changes nothing in it; delete or rename with Optuna's own "
    "tools once no worker runs"
)


class ReadOnlyView(BaseStorage):
    """Reads through to an experiment's storage."""

    def __init__(self, source: BaseStorage, experiment: str) -> None:
        """Builds the view.

        Args:
            source: The storage.
            experiment: Only studies called ``EXPERIMENT/ARM/PHASE`` are shown.
        """
        self._source, self._experiment = source, experiment

    def get_all_studies(self) -> list[FrozenStudy]:
        """The arms' studies by phase, the joint search last: the dashboard lists it first."""
        arms = self._arm_studies()
        searches = [s for s in arms if s.user_attrs["phase"] == "search"]
        if len(searches) < 2:
            return arms
        joint = FrozenStudy(
            study_name=f"{self._experiment} (search of all arms)",
            direction=StudyDirection.MAXIMIZE,
            user_attrs={"experiment": self._experiment, "arms": len(searches)},
            system_attrs=METRIC_NAMES,
            study_id=JOINT_ID,
        )
        return [*arms, joint]

    def _arm_studies(self) -> list[FrozenStudy]:
        found = self._source.get_all_studies()
        ours = [copy.copy(s) for s in found if s.user_attrs.get("experiment") == self._experiment]
        for optuna_study in ours:
            optuna_study.system_attrs = METRIC_NAMES
        return ours

    def get_all_trials(
        self,
        study_id: int,
        deepcopy: bool = True,
        states: Container[TrialState] | None = None,
    ) -> list[FrozenTrial]:
        """Trials with the attributes that people read."""
        if study_id == JOINT_ID:
            trials = self._joint_trials()
        else:
            found = self._source.get_all_trials(study_id, deepcopy=False)
            trials = [_shown(trial, {}) for trial in found]
        return [t for t in trials if states is None or t.state in states]

    def _joint_trials(self) -> list[FrozenTrial]:
        pairs = [
            (study, trial)
            for study in self._arm_studies()
            if study.user_attrs["phase"] == "search"
            for trial in self._source.get_all_trials(study._study_id, deepcopy=False)
        ]
        pairs.sort(key=lambda pair: str(pair[1].datetime_start))
        spaces = _distributions([(s.user_attrs["factors"], t) for s, t in pairs])
        joint = []
        for number, (study, trial) in enumerate(pairs):
            shown = _shown(trial, {"arm": study.user_attrs["arm"]})
            values = {**study.user_attrs["factors"], **trial.params}
            params = {name: _choice(values.get(name)) for name in spaces}
            shown.number, shown._trial_id = number, JOINT_ID + number
            # Distributions first: a trial checks its parameters against them.
            shown.distributions, shown.params = spaces, params
            joint.append(shown)
        return joint

    def get_trial(self, trial_id: int) -> FrozenTrial:
        """One trial."""
        if trial_id >= JOINT_ID:
            return self._joint_trials()[trial_id - JOINT_ID]
        return _shown(self._source.get_trial(trial_id), {})

    def get_study_id_from_name(self, study_name: str) -> int:
        """The id of a study that is shown."""
        return next(s._study_id for s in self.get_all_studies() if s.study_name == study_name)

    def get_study_name_from_id(self, study_id: int) -> str:
        """The name of a study that is shown."""
        return self._study(study_id).study_name

    def get_study_directions(self, study_id: int) -> list[StudyDirection]:
        """What is better: more."""
        return list(self._study(study_id).directions)

    def get_study_user_attrs(self, study_id: int) -> dict[str, Any]:
        """Arm, phase, factors and grid."""
        return dict(self._study(study_id).user_attrs)

    def get_study_system_attrs(self, study_id: int) -> dict[str, Any]:
        """Optuna's own attributes."""
        return dict(self._study(study_id).system_attrs)

    def _study(self, study_id: int) -> FrozenStudy:
        found = [s for s in self.get_all_studies() if s._study_id == study_id]
        if not found:
            raise KeyError(f"no study {study_id} of {self._experiment}")
        return found[0]

    def _refuse(self, *arguments: object, **named: object) -> NoReturn:
        raise PermissionError(READ_ONLY)

    def create_new_study(
        self, directions: Sequence[StudyDirection], study_name: str | None = None
    ) -> int:
        """Refused, as are all that follow."""
        self._refuse()

    def create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> int:
        """Refused."""
        self._refuse()

    delete_study = _refuse
    set_study_user_attr = _refuse
    set_study_system_attr = _refuse
    set_trial_param = _refuse
    set_trial_intermediate_value = _refuse
    set_trial_user_attr = _refuse
    set_trial_system_attr = _refuse

    def set_trial_state_values(
        self, trial_id: int, state: TrialState, values: Sequence[float] | None = None
    ) -> bool:
        """Refused."""
        self._refuse()


def _shown(trial: FrozenTrial, further: dict[str, Any]) -> FrozenTrial:
    """A copy with the attributes that people read: no whole record, but what stands out of it."""
    shown = copy.copy(trial)
    attributes = {k: v for k, v in trial.user_attrs.items() if k not in HIDDEN}
    record = trial.user_attrs.get("record") or {}
    attributes |= {key: record[key] for key in SHOWN if record.get(key) not in (None, [])}
    lease = trial.user_attrs.get("lease")
    if lease is not None and trial.state == TrialState.RUNNING:
        attributes["worker"] = f"{lease['host']}:{lease['pid']}"
    shown.user_attrs = {**further, **attributes}
    return shown


def _distributions(found: list[tuple[dict[str, Any], FrozenTrial]]) -> dict[str, BaseDistribution]:
    """One space for all arms: the learning rate on a log scale, the factors that vary."""
    rates = [trial.params["learning_rate"] for _, trial in found]
    if not rates:
        return {}
    names = sorted({name for factors, _ in found for name in factors})
    spaces: dict[str, BaseDistribution] = {
        "learning_rate": FloatDistribution(min(rates), max(rates), log=True)
    }
    for name in names:
        choices = {_choice(factors.get(name)) for factors, _ in found}
        if len({_choice(factors[name]) for factors, _ in found if name in factors}) > 1:
            spaces[name] = CategoricalDistribution(sorted(choices, key=_in_order))
    return spaces


def _choice(value: Any) -> Any:
    """A value that Optuna takes as a category."""
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _in_order(choice: Any) -> tuple[bool, bool, Any]:
    """None first, then numbers, then texts."""
    return choice is not None, isinstance(choice, str), choice if choice is not None else 0
