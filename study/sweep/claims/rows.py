"""A claim's trial in a database: made, reported to and ended by one transaction each.

Optuna's own calls take a transaction for every field and look for the trial and the field first:
three times as many statements in all, and whoever dies between two of them leaves a trial half
told. The tables are Optuna's, and it reads them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from optuna.distributions import distribution_to_json
from optuna.storages._rdb import models
from optuna.trial import FrozenTrial, TrialState

STUDIES = models.StudyModel.__table__
TRIALS = models.TrialModel.__table__
PARAMS = models.TrialParamModel.__table__
ATTRIBUTES = models.TrialUserAttributeModel.__table__
VALUES = models.TrialValueModel.__table__
REPORTS = models.TrialIntermediateValueModel.__table__


def alone(engine: sa.Engine) -> sa.Engine:
    """Of the same connections, for statements that are a transaction each: no BEGIN, no COMMIT."""
    return engine.execution_options(isolation_level="AUTOCOMMIT")


def make(engine: sa.Engine, study_id: int, trial: FrozenTrial) -> int:
    """Make a running trial.

    Args:
        engine: The database.
        study_id: Optuna's number of the study.
        trial: Its parameters and user attributes.

    Returns:
        Optuna's number of the trial.
    """
    with engine.begin() as connection:
        # Trials are numbered in each study, by one at a time.
        connection.execute(
            sa.select(STUDIES.c.study_id).where(STUDIES.c.study_id == study_id).with_for_update()
        )
        number = sa.select(sa.func.count()).where(TRIALS.c.study_id == study_id).scalar_subquery()
        row = {"study_id": study_id, "state": TrialState.RUNNING, "datetime_start": _now()}
        made = sa.insert(TRIALS).values(number=number, **row).returning(TRIALS.c.trial_id)
        trial_id: int = connection.execute(made).scalar_one()
        connection.execute(sa.insert(PARAMS), _parameters(trial_id, trial))
        connection.execute(sa.insert(ATTRIBUTES), _attributes(trial_id, trial.user_attrs))
    return trial_id


def report(engine: sa.Engine, trial_id: int, step: int, value: float) -> None:
    """Keep a value of a step unless there is one; nothing if the trial has ended."""
    stored, kind = models.TrialIntermediateValueModel.intermediate_value_to_stored_repr(value)
    columns = REPORTS.c.trial_id, REPORTS.c.step
    known = sa.exists().where(columns[0] == trial_id, columns[1] == step)
    row = sa.select(
        TRIALS.c.trial_id,
        sa.literal(step),
        sa.literal(stored, REPORTS.c.intermediate_value.type),
        sa.literal(kind, REPORTS.c.intermediate_value_type.type),
    ).where(TRIALS.c.trial_id == trial_id, TRIALS.c.state == TrialState.RUNNING, ~known)
    names = [column.name for column in columns]
    names += ["intermediate_value", "intermediate_value_type"]
    with alone(engine).connect() as connection:
        connection.execute(sa.insert(REPORTS).from_select(names, row))


def end(
    engine: sa.Engine,
    trial_id: int,
    state: TrialState,
    attributes: Mapping[str, Any],
    values: Sequence[float] | None = None,
) -> None:
    """End a trial with attributes and values; nothing if it has ended.

    Args:
        engine: The database.
        trial_id: Optuna's number of the trial.
        state: The state in which it ends.
        attributes: User attributes, which replace those of these names.
        values: One for each objective.
    """
    ends = sa.update(TRIALS).values(state=state, datetime_complete=_now())
    mine = ATTRIBUTES.c.trial_id == trial_id, ATTRIBUTES.c.key.in_(list(attributes))
    with engine.begin() as connection:
        ended = connection.execute(
            ends.where(TRIALS.c.trial_id == trial_id, TRIALS.c.state == TrialState.RUNNING)
        )
        if ended.rowcount == 0:
            return
        connection.execute(sa.delete(ATTRIBUTES).where(*mine))
        connection.execute(sa.insert(ATTRIBUTES), _attributes(trial_id, attributes))
        if values:
            connection.execute(sa.insert(VALUES), _values(trial_id, values))


def _now() -> datetime:
    """As Optuna keeps it: UTC, without saying so."""
    return datetime.now(UTC).replace(tzinfo=None)


def _parameters(trial_id: int, trial: FrozenTrial) -> list[dict[str, Any]]:
    return [
        {
            "trial_id": trial_id,
            "param_name": name,
            "param_value": trial.distributions[name].to_internal_repr(value),
            "distribution_json": distribution_to_json(trial.distributions[name]),
        }
        for name, value in trial.params.items()
    ]


def _attributes(trial_id: int, attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"trial_id": trial_id, "key": key, "value_json": json.dumps(value)}
        for key, value in attributes.items()
    ]


def _values(trial_id: int, values: Sequence[float]) -> list[dict[str, Any]]:
    rows = []
    for objective, value in enumerate(values):
        stored, kind = models.TrialValueModel.value_to_stored_repr(value)
        row = {"trial_id": trial_id, "objective": objective, "value": stored, "value_type": kind}
        rows.append(row)
    return rows
