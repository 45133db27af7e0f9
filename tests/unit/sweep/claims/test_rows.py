"""What is written into a database's tables is what Optuna's own calls would have left there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.storages import RDBStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from study.records.location import sqlalchemy_url
from study.sweep.claims import rows
from study.sweep.claims.trials import attributes, new_trial, outcome
from tests.cluster.postgres import private_server
from tests.unit.sweep.claims.claiming import PLAN, record

RUN = PLAN.runs[0]
ARM = PLAN.arms[RUN.arm]
RECORD = record(RUN, score_final=0.5)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.cluster)])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RDBStorage]:
    if request.param == "sqlite":
        yield RDBStorage(f"sqlite:///{tmp_path}/trials.db")
        return
    with private_server() as server:
        yield RDBStorage(sqlalchemy_url(server.url))


def study_of(backend: RDBStorage, name: str) -> int:
    return backend.create_new_study([StudyDirection.MAXIMIZE], name)


def by_optuna(backend: RDBStorage, study_id: int) -> None:
    trial = new_trial(RUN, ARM, TrialState.RUNNING, lease={"pid": 1})
    trial_id = backend.create_new_trial(study_id, template_trial=trial)
    backend.set_trial_intermediate_value(trial_id, 25, 0.25)
    backend.set_trial_intermediate_value(trial_id, 50, 0.5)
    for key, value in attributes(RECORD).items():
        backend.set_trial_user_attr(trial_id, key, value)
    backend.set_trial_state_values(trial_id, *outcome(RECORD))


def by_rows(backend: RDBStorage, study_id: int) -> int:
    trial = new_trial(RUN, ARM, TrialState.RUNNING, lease={"pid": 1})
    trial_id = rows.make(backend.engine, study_id, trial)
    rows.report(backend.engine, trial_id, 25, 0.25)
    rows.report(backend.engine, trial_id, 50, 0.5)
    rows.end(backend.engine, trial_id, outcome(RECORD)[0], attributes(RECORD), outcome(RECORD)[1])
    return trial_id


def facts(trial: FrozenTrial) -> dict[str, Any]:
    hidden = ("_trial_id", "_datetime_start", "datetime_complete")
    return {key: value for key, value in vars(trial).items() if key not in hidden}


def test_optuna_reads_what_it_would_have_written(backend: RDBStorage) -> None:
    names = "its own", "ours"
    its, ours = (study_of(backend, name) for name in names)
    for _ in range(2):  # trials are numbered in each study
        by_optuna(backend, its)
        by_rows(backend, ours)
    expected, found = backend.get_all_trials(its), backend.get_all_trials(ours)
    assert [facts(trial) for trial in found] == [facts(trial) for trial in expected]
    assert [trial.number for trial in found] == [0, 1]
    for trial, other in zip(found, expected, strict=True):
        for mine, theirs in (
            (trial.datetime_start, other.datetime_start),
            (trial.datetime_complete, other.datetime_complete),
        ):
            assert mine is not None and theirs is not None
            assert abs(mine - theirs) < timedelta(minutes=1) > abs(mine - datetime.now())
    best = optuna.load_study(study_name="ours", storage=backend).best_trial
    assert (best.value, best.last_step) == (0.5, 50)


def test_what_has_ended_stays_as_it_is(backend: RDBStorage) -> None:
    trial_id = by_rows(backend, study_of(backend, "ours"))
    before = backend.get_trial(trial_id)
    rows.report(backend.engine, trial_id, 75, 0.75)
    rows.end(backend.engine, trial_id, TrialState.FAIL, {"status": "killed"})
    assert backend.get_trial(trial_id) == before


def test_a_report_that_is_repeated_is_there_once(backend: RDBStorage) -> None:
    study_id = study_of(backend, "ours")
    trial_id = rows.make(backend.engine, study_id, new_trial(RUN, ARM, TrialState.RUNNING))
    for _ in range(2):  # the connection broke before the first was answered
        rows.report(backend.engine, trial_id, 25, 0.25)
    assert backend.get_trial(trial_id).intermediate_values == {25: 0.25}


def test_attributes_that_are_there_are_replaced(backend: RDBStorage) -> None:
    study_id = study_of(backend, "ours")
    trial = new_trial(RUN, ARM, TrialState.RUNNING, status="training", lease={"pid": 1})
    trial_id = rows.make(backend.engine, study_id, trial)
    rows.end(backend.engine, trial_id, TrialState.FAIL, {"status": "oom"})
    found = backend.get_trial(trial_id).user_attrs
    assert (found["status"], found["lease"]) == ("oom", {"pid": 1})


def test_a_score_that_is_no_number_is_kept(backend: RDBStorage) -> None:
    study_id = study_of(backend, "ours")
    trial_id = rows.make(backend.engine, study_id, new_trial(RUN, ARM, TrialState.RUNNING))
    worst = replace(RECORD, score_final=float("-inf"))
    rows.end(backend.engine, trial_id, outcome(worst)[0], {"status": "diverged"}, outcome(worst)[1])
    assert backend.get_trial(trial_id).value == float("-inf")
