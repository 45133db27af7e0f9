"""An Optuna storage: one trial a run, over one study or several.

The studies of our own sweeps are called ``ARM/PHASE`` and say nothing else of an arm, so its method
and rank are read off its name (``full``, ``lora-r8``, ``lora-r8-attention``), which is how this
project names arms; the rest of the name becomes the factor ``variant``. Other storages need a map.
"""

from __future__ import annotations

import json
import re
import sqlite3
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import optuna
import pandas as pd
import sqlalchemy.exc
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from analysis.reading.sources.raw import RawSweep, existing_file, rows_sha256, without_password

ARM_NAME = re.compile(r"(?:full|lora-r(?P<rank>\d+))(?:-(?P<variant>.+))?")
OUR_ATTRIBUTES = {"run_id", "seed", "phase"}
OUR_MAP = {
    "learning_rate": "params_learning_rate",
    "seed": "user_attrs_seed",
    "phase": "user_attrs_phase",
    "status_reason": "user_attrs_status_reason",
}
MAP = {"score_final": "value", "learning_rate": "params_learning_rate", "seed": "user_attrs_seed"}
OUR_METRIC = "eval/accuracy"
"""What our sweeps report while a run goes on, and score it by."""
UNREADABLE = (
    sqlalchemy.exc.SQLAlchemyError,
    ImportError,  # no driver for that database
    RuntimeError,  # written by another version of Optuna
    KeyError,
    json.JSONDecodeError,
    UnicodeDecodeError,
)
"""What a storage raises that is none, or not one that can be read here."""


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
        ValueError: if the storage cannot be opened, lacks the study, or has no trial; if a study
            has several objectives.
    """
    place = without_password(url)
    try:
        storage = _storage(url)
        studies = optuna.get_all_study_summaries(storage, include_best_trial=False)
        names = sorted(summary.study_name for summary in studies)
        if study_name is not None and study_name not in names:
            raise ValueError(f"{place} has no study {study_name!r}; it has {', '.join(names)}")
        wanted = names if study_name is None else [study_name]
        loaded = [optuna.load_study(study_name=name, storage=storage) for name in wanted]
        rows = [row for optuna_study in loaded for row in _rows(optuna_study)]
    except UNREADABLE as error:
        why = str(error).strip().splitlines()[0]
        raise ValueError(f"{place} cannot be read as an Optuna storage: {why}") from error
    if not rows:
        raise ValueError(f"{place} holds no trial{f' of {study_name}' if study_name else ''}")
    return _raw(place, pd.DataFrame(rows, dtype=object))


def _storage(url: str) -> BaseStorage:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if url.startswith("journal:"):
        path = existing_file(Path(url.removeprefix("journal:")))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            return JournalStorage(JournalFileBackend(str(path)))
    if url.startswith("sqlite:///"):
        _check_sqlite(Path(url.removeprefix("sqlite:///")))
    return RDBStorage(url, skip_table_creation=True)


def _check_sqlite(path: Path) -> None:
    """Refuse what Optuna would otherwise create, or add its tables to."""
    existing_file(path)
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            tables = {str(name) for (name,) in database.execute("SELECT name FROM sqlite_master")}
    except sqlite3.DatabaseError as error:
        raise ValueError(f"{path} is not a SQLite file that can be read: {error}") from error
    if not {"studies", "trials"} <= tables:
        raise ValueError(
            f"{path} is no Optuna storage: import a table of it as {path} --table NAME"
        )


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
    ours = {f"user_attrs_{name}" for name in OUR_ATTRIBUTES} <= set(frame)
    column_map = {k: v for k, v in {**MAP, **(OUR_MAP if ours else {})}.items() if v in frame}
    arm_names = [str(name).rpartition("/")[0] or str(name) for name in frame["study_name"]]
    matches = [ARM_NAME.fullmatch(name) for name in arm_names]
    notes: tuple[str, ...] = ()
    if ours:
        frame = frame.assign(score_metric=OUR_METRIC)
    if all(matches):
        found = [match for match in matches if match]
        frame = frame.assign(
            arm=arm_names,
            method=["full" if match["rank"] is None else "lora" for match in found],
            lora_rank=pd.Series([match["rank"] for match in found], frame.index, object),
            variant=pd.Series([match["variant"] for match in found], frame.index, object),
        )
        if frame["variant"].notna().any():
            column_map["factors.variant"] = "variant"
        notes = (f"arm, method and lora_rank: read off the names of studies, as in {arm_names[0]}",)
    return RawSweep(
        origin=place,
        runs=frame,
        sha256=rows_sha256(frame, history),
        column_map=column_map,
        history=history,
        history_map={"run_id": "run_id", "step": "step", **({OUR_METRIC: "value"} if ours else {})},
        notes=notes,
    )


def _history(frame: pd.DataFrame) -> pd.DataFrame:
    rows = [
        {"run_id": run_id, "step": step, "value": value}
        for run_id, values in zip(frame["run_id"], frame["intermediate"], strict=True)
        for step, value in values.items()
    ]
    return pd.DataFrame(rows, columns=["run_id", "step", "value"])
