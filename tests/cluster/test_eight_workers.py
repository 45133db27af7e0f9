"""Many workers on one storage: real processes, a torch-free engine, 500 runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from study.config import SeedsConfig
from study.plan.experiment import PlannedRun, from_json, to_json
from study.plan.portions import whole
from study.records.store import ExperimentStore
from study.sweep.claims.claims import Claims
from study.sweep.claims.storage import Storage
from study.sweep.schedule import read_state, write_plan
from tests.cluster.postgres import Server, private_server
from tests.plans import toy_plan
from tests.unit.sweep.workers import start_worker

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]
RUNS, WORKERS = 500, 8


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with private_server() as running:
        yield running


def prepared(path: Path, url: str | None) -> ExperimentStore:
    store = ExperimentStore(path)
    seeds = SeedsConfig(search=list(range(1000, 1084)), report=[])
    plan = toy_plan(engine="packed", seeds=seeds)
    claims = Claims(store, Storage(store, url), "toy")
    with store.lock():
        write_plan(store, claims, replace(plan, runs=plan.runs[:RUNS], storage=url))
    return store


@pytest.mark.parametrize("place", ["journal", "postgresql"])
def test_eight_workers_drain_500_runs_none_lost_none_doubled(
    tmp_path: Path, server: Server, place: str
) -> None:
    url = server.url if place == "postgresql" else None
    store = prepared(tmp_path / "toy", url)
    workers = [
        start_worker(store, tmp_path / f"work{i}.py", step_s=0, workers=WORKERS)
        for i in range(WORKERS)
    ]
    assert [worker.wait(timeout=280) for worker in workers] == [0] * WORKERS
    state = read_state(store)
    assert len(state.records) == RUNS and not state.given_up
    trained = (tmp_path / "trained.txt").read_text().split()
    assert sorted(trained) == sorted(state.records)  # each once
    trials = Storage(store, url).trials
    told = Counter(
        trial.user_attrs["run_id"]
        for optuna_study in trials.get_all_studies()
        for trial in trials.get_all_trials(optuna_study._study_id, deepcopy=False)
    )
    assert told == dict.fromkeys(state.records, 1)  # no attempt failed, none was made twice
    pids = Counter(record.probes["pid"] for record in state.records.values())
    assert len(pids) == WORKERS  # nobody was left without work


def test_a_plan_in_postgresql_is_read_back_whole(tmp_path: Path, server: Server) -> None:
    store = ExperimentStore(tmp_path)
    plan = toy_plan()
    claims = Claims(store, Storage(store, server.url), "read-back")
    claims.studies.describe(plan, to_json(plan), {})
    trials = Storage(store, server.url).trials
    study_id = trials.get_study_id_from_name("read-back/plan")
    assert from_json(whole(trials.get_study_user_attrs(study_id))) == plan


def test_the_server_keeps_claims_apart_and_not_a_lock_in_a_directory(
    tmp_path: Path, server: Server
) -> None:
    """Two directories stand for two machines whose file locks do not see each other."""
    plan = toy_plan()
    held: list[PlannedRun] = []
    for name in ("a", "b"):
        store = ExperimentStore(tmp_path / name)
        claims = Claims(store, Storage(store, server.url), "shared")
        held += [claim.run for claim in claims.take(plan.arms, plan.runs)]
    assert held == plan.runs[:2]


def test_two_directories_are_two_sweeps_even_on_one_server(tmp_path: Path, server: Server) -> None:
    mine, theirs = (replace(toy_plan(), id=name) for name in ("1", "2"))
    for plan in (mine, mine):
        store = ExperimentStore(tmp_path / "mine")
        Claims(store, Storage(store, server.url), "named").studies.adopt(plan, store.path)
    store = ExperimentStore(tmp_path / "theirs")
    claims = Claims(store, Storage(store, server.url), "named")
    with pytest.raises(ValueError, match=r"holds another sweep called named, launched in .*mine"):
        claims.studies.adopt(theirs, store.path)
