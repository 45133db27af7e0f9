"""An Optuna storage of others: one trial a run, over one study or several.

Our own experiments need no import: :mod:`analysis.reading.stored` reads them as they are.
"""

from __future__ import annotations

from typing import Any

import optuna
import pandas as pd
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from analysis.reading.sources.experiment import experiments
from analysis.reading.sources.raw import RawSweep, rows_sha256
from analysis.reading.sources.storage import opened
from study.records.location import without_password

MAP = {"score_final": "value", "learning_rate": "params_learning_rate", "seed": "user_attrs_seed"}


def read_optuna(url: str, study_name: str | None) -> RawSweep:
    """Read the trials of an Optuna storage; nothing is written to it.

    Args:
        url: ``sqlite:///FILE``, ``postgresql://...`` or ``journal:FILE``.
        study_name: The study; None: all of them.

    Returns:
        Columns ``study_name``, ``number``, ``run_id``, ``status`` (the attribute of that name, else
        the state), ``direction``, ``value``, ``params_NAME`` and ``user_attrs_NAME``; as history,
        the intermediate values.

    Raises:
        ValueError: if the storage cannot be opened, lacks the study, has no trial, or is one of our
            own; if a study has several objectives.
    """
    place = without_password(url)
    with opened(url) as storage:
        rows = _read(storage, place, study_name)
    if not rows:
        raise ValueError(f"{place} holds no trial{f' of {study_name}' if study_name else ''}")
    return _raw(place, pd.DataFrame(rows, dtype=object))


def _read(storage: BaseStorage, place: str, study_name: str | None) -> list[dict[str, Any]]:
    if study_name is None and (ours := sorted(experiments(storage))):
        raise ValueError(
            f"{place} holds experiments of this package ({', '.join(ours)}): they need no import, "
            f"`python -m analysis report {place}` reads them as they are"
        )
    studies = optuna.get_all_study_summaries(storage, include_best_trial=False)
    names = sorted(summary.study_name for summary in studies)
    if study_name is not None and study_name not in names:
        raise ValueError(f"{place} has no study {study_name!r}; it has {', '.join(names)}")
    wanted = names if study_name is None else [study_name]
    loaded = [optuna.load_study(study_name=name, storage=storage) for name in wanted]
    return [row for optuna_study in loaded for row in _rows(optuna_study)]


def _rows(optuna_study: optuna.Study) -> list[dict[str, Any]]:
    name = optuna_study.study_name
    if len(optuna_study.directions) > 1:
        raise ValueError(f"study {name!r} has several objectives; a sweep has one score")
    direction = optuna_study.direction.name.lower()
    return [_row(name, direction, t) for t in optuna_study.get_trials(deepcopy=False)]


def _row(study_name: str, direction: str, trial: FrozenTrial) -> dict[str, Any]:
    done = trial.state in (TrialState.COMPLETE, TrialState.PRUNED)
    return {
        "study_name": study_name,
        "number": trial.number,
        "run_id": str(trial.user_attrs.get("run_id", f"{study_name}-{trial.number}")),
        "status": trial.user_attrs.get("status", trial.state.name.lower()),
        "direction": direction,
        "value": trial.value if done else None,
        **{f"params_{key}": value for key, value in trial.params.items()},
        **{f"user_attrs_{key}": value for key, value in trial.user_attrs.items()},
        "intermediate": trial.intermediate_values,
    }


def _raw(place: str, frame: pd.DataFrame) -> RawSweep:
    frame, history = frame.drop(columns="intermediate"), _history(frame)
    return RawSweep(
        origin=place,
        runs=frame,
        sha256=rows_sha256(frame, history),
        column_map={column: source for column, source in MAP.items() if source in frame},
        history=history,
        history_map={"run_id": "run_id", "step": "step"},
    )


def _history(frame: pd.DataFrame) -> pd.DataFrame:
    rows = [
        {"run_id": run_id, "step": step, "value": value}
        for run_id, values in zip(frame["run_id"], frame["intermediate"], strict=True)
        for step, value in values.items()
    ]
    return pd.DataFrame(rows, columns=["run_id", "step", "value"])
