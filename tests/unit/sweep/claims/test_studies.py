"""The studies of an experiment: its plan, its name, and others beside it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import optuna
import pytest

from study.plan.experiment import from_json, to_json
from study.plan.portions import whole
from study.records.store import ExperimentStore
from study.sweep.claims.claims import Claims
from study.sweep.claims.storage import Storage
from tests.unit.sweep.claims.claiming import (
    PLAN,
    claims_of,
    record,
    take,
)


def test_the_plan_travels_in_the_storage(store: ExperimentStore) -> None:
    claims = claims_of(store)
    content = to_json(PLAN)
    claims.studies.describe(PLAN, content, {"full": {"learning_rate": 2e-4}})
    named = {s.study_name: s.user_attrs for s in claims.storage.trials.get_all_studies()}
    assert named.keys() == {"toy/full/search", "toy/lora-r1/search", "toy/plan"}
    assert from_json(whole(named["toy/plan"])) == PLAN
    assert named["toy/plan"]["selections"] == {"full": {"learning_rate": 2e-4}}
    assert named["toy/full/search"] == {
        "experiment": "toy",
        "arm": "full",
        "phase": "search",
        "factors": PLAN.arms["full"].factors,
        "learning_rates": PLAN.arms["full"].learning_rates,
    }


def test_two_experiments_share_a_storage(store: ExperimentStore) -> None:
    storage = Storage(store)
    one, other = Claims(store, storage, "toy"), Claims(store, storage, "toy-2")
    assert take(one)[0].run == take(other)[0].run == PLAN.runs[0]


def test_claims_of_one_study_are_found_in_optuna_s_own_words(store: ExperimentStore) -> None:
    claims = claims_of(store)
    (claim,) = take(claims)
    claims.finish(claim, record(claim.run, score_final=0.7))
    optuna_study = optuna.load_study(
        study_name=f"toy/{claim.run.arm}/search", storage=claims.storage.trials
    )
    assert optuna_study.best_value == 0.7
    assert optuna_study.best_params == {"learning_rate": claim.run.learning_rate}


def test_a_name_in_a_database_belongs_to_one_sweep(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/claims.db"

    def adopt(plan_id: str, directory: str) -> None:
        store = ExperimentStore(tmp_path / directory)
        store.path.mkdir(exist_ok=True)
        studies = Claims(store, Storage(store, url), "toy").studies
        studies.adopt(dataclasses.replace(PLAN, id=plan_id), store.path)

    adopt("1", "mine")
    adopt("1", "moved")
    with pytest.raises(ValueError, match=r"another sweep called toy, launched in .*:.*/moved;"):
        adopt("2", "theirs")
