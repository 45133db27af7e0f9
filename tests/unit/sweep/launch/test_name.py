"""Whose a name in a database is when a launch is refused, or dies while it takes it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from study.plan.experiment import Plan
from study.records.store import ExperimentStore
from study.sweep.claims.claims import Claims
from study.sweep.claims.storage import Storage
from study.sweep.claims.studies import Studies
from study.sweep.driver import _take_name
from study.sweep.schedule import read_plan
from tests.plans import toy_plan


def take_name(path: Path, plan: Plan) -> None:
    store = ExperimentStore(path)
    path.mkdir(exist_ok=True)
    storage = Storage(store, f"sqlite:///{path.parent}/claims.db")
    _take_name(store, Claims(store, storage, plan.experiment.name), plan)


def test_a_launch_that_died_before_it_had_the_name_comes_again_as_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = replace(toy_plan(), id="1")

    def die(self: Studies, plan: Plan, directory: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Studies, "adopt", die)
        take_name(tmp_path / "mine", plan)
    assert read_plan(ExperimentStore(tmp_path / "mine")).id == "1"
    take_name(tmp_path / "mine", plan)


def test_a_refused_launch_leaves_no_plan_where_there_was_none(tmp_path: Path) -> None:
    take_name(tmp_path / "mine", replace(toy_plan(), id="1"))
    with pytest.raises(ValueError, match=r"another sweep called toy, launched in .*mine"):
        take_name(tmp_path / "theirs", replace(toy_plan(), id="2"))
    assert not ExperimentStore(tmp_path / "theirs").plan_path.exists()
    assert read_plan(ExperimentStore(tmp_path / "mine")).id == "1"


def test_a_directory_that_was_removed_is_told_what_is_left_of_it(tmp_path: Path) -> None:
    take_name(tmp_path / "mine", replace(toy_plan(), id="1"))
    ExperimentStore(tmp_path / "mine").plan_path.unlink()
    with pytest.raises(ValueError, match=r"that was here before; delete its studies toy/\.\.\."):
        take_name(tmp_path / "mine", replace(toy_plan(), id="2"))
