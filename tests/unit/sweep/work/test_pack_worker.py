"""Packs with a torch-free engine that trains in lockstep: real processes, real kills."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from optuna.trial import TrialState

from study.config import EarlyStoppingConfig, SeedsConfig
from study.plan.experiment import PlannedRun, to_json
from study.records.files import write_json
from study.records.record import Record
from study.records.store import ExperimentStore
from study.sweep.claims.claims import Claim, Claims
from study.sweep.claims.storage import Storage
from study.sweep.schedule import read_state
from study.sweep.work.badge import Badge, badges, describe_badge
from study.sweep.work.holder import Holder
from study.sweep.work.pack import Pack
from tests.engine_double import KILLER
from tests.plans import record_of, toy_plan
from tests.unit.sweep.workers import (
    assert_every_planned_run_once,
    drain,
    prepared,
    start_worker,
)


def records(store: ExperimentStore) -> dict[str, Record]:
    return read_state(store).records


def prepared_runs(
    path: Path, odd_seed: int, neighbours: int, max_retries: int = 0
) -> tuple[ExperimentStore, PlannedRun, list[PlannedRun]]:
    """A packed plan of one run with a fault, first in line, and some without."""
    plan = toy_plan(engine="packed", seeds=SeedsConfig(search=[odd_seed, 0], report=[]))
    odd = plan.runs[0]
    fine = [run for run in plan.runs if run.seed == 0][:neighbours]
    store = ExperimentStore(path)
    store.write_plan(to_json(replace(plan, runs=[odd, *fine], max_retries=max_retries)))
    return store, odd, fine


def attempts(store: ExperimentStore, run: PlannedRun) -> list[dict[str, Any]]:
    return store.attempts(run.arm, run.run_id)


def test_arms_of_other_methods_and_phases_share_one_process(tmp_path: Path) -> None:
    store = prepared(tmp_path, engine="packed")
    drain(store)
    assert_every_planned_run_once(store)
    found = records(store).values()
    assert {record.engine for record in found} == {"packed"}
    assert len({record.probes["pid"] for record in found}) == 1
    assert max(record.probes["lanes"] for record in found if record.phase == "search") == 12
    report = [record for record in found if record.phase == "report"]
    assert all(record.probes["place"] >= 12 for record in report)  # they refilled the same pack
    assert list(store.workers_dir.iterdir()) == []


def test_places_that_become_free_are_filled_again(tmp_path: Path) -> None:
    store = prepared(tmp_path, engine="packed")
    drain(store, pack_size=4)
    assert_every_planned_run_once(store)
    found = records(store).values()
    assert len({record.probes["pid"] for record in found}) == 1
    assert sorted(record.probes["place"] for record in found) == list(range(16))
    assert max(record.probes["lanes"] for record in found) == 4


def test_every_run_of_a_pack_has_its_own_directory(tmp_path: Path) -> None:
    store = prepared(tmp_path, engine="packed", seeds=SeedsConfig(search=[0], report=[]))
    drain(store)
    for run in read_state(store).plan.runs:
        directory = store.run_dir(run.arm, run.run_id)
        lines = (directory / "metrics.jsonl").read_text().splitlines()
        assert [json.loads(x)["step"] for x in lines if "train/loss" in x] == [1, 2, 3]
        assert (directory / "evaluations.parquet").exists()
        config = OmegaConf.load(directory / "config.yaml")
        assert (config.objective.learning_rate, config.seed) == (run.learning_rate, run.seed)
        assert "git_commit" in json.loads((directory / "provenance.json").read_text())


def test_a_death_costs_neighbours_no_retry_and_earlier_results_stay(tmp_path: Path) -> None:
    store, killer, (a, b, c, d) = prepared_runs(tmp_path, KILLER, neighbours=4)
    drain(store, pack_size=3)
    found = records(store)
    assert found.keys() == {run.run_id for run in (a, b, c, d)}
    # a and b began beside the killer and ended before it struck; c and d had taken their places.
    assert [found[r.run_id].probes["lanes"] for r in (a, b)] == [3, 3]
    assert attempts(store, a) == attempts(store, b) == []
    for run in (c, d):
        (attempt,) = attempts(store, run)
        assert (attempt["status"], attempt["spent"], attempt["pack"]) == ("killed", False, 3)
        assert attempt["reason"].endswith("was ended by SIGKILL (in a pack of 3)")
        assert (found[run.run_id].probes["lanes"], found[run.run_id].probes["place"]) == (1, 0)
    assert len({found[run.run_id].probes["pid"] for run in (a, c, d)}) == 3
    together, alone = attempts(store, killer)
    assert (together["spent"], alone["spent"], alone["status"]) == (False, True, "killed")
    assert read_state(store).given_up == {killer.run_id}
    logs = [store.run_dir(r.arm, r.run_id) / "attempts/1/log.txt" for r in (killer, c, d)]
    assert len({log.stat().st_ino for log in logs}) == 1  # one log, found beside each


@pytest.mark.parametrize(
    ("seed", "status", "reason"),
    [
        (14, "failed", "left with exit code 7 and no result (in a pack of 3)"),
        (15, "stalled", "no progress for 2 s (in a pack of 3)"),
        (16, "oom", "MemoryError: seed 16 wants too much (in a pack of 3)"),
    ],
)
def test_whatever_ends_a_pack_its_runs_are_tried_alone(
    tmp_path: Path, seed: int, status: str, reason: str
) -> None:
    store, odd, fine = prepared_runs(tmp_path, seed, neighbours=2)
    drain(store, stall_timeout_s=2 if seed == 15 else 60)
    assert records(store).keys() == {run.run_id for run in fine}
    for run in fine:
        (attempt,) = attempts(store, run)
        assert (attempt["status"], attempt["spent"]) == (status, False)
        assert attempt["reason"].endswith(reason)
        assert records(store)[run.run_id].probes["lanes"] == 1
    assert [a["spent"] for a in attempts(store, odd)] == [False, True]


def test_a_run_that_fails_by_itself_leaves_the_others_alone(tmp_path: Path) -> None:
    store, odd, fine = prepared_runs(tmp_path, 13, neighbours=3, max_retries=1)
    drain(store)
    found = records(store)
    assert found.keys() == {run.run_id for run in fine}
    assert len({record.probes["pid"] for record in found.values()}) == 1
    assert all(attempts(store, run) == [] for run in fine)
    tries = attempts(store, odd)
    assert [(a["status"], a["spent"]) for a in tries] == [("failed", True)] * 2
    assert "RuntimeError: seed 13 always fails" in tries[0]["reason"]
    trace = store.run_dir(odd.arm, odd.run_id) / "attempts" / "1" / "traceback.txt"
    assert "seed 13 always fails" in trace.read_text()


@pytest.mark.timeout(120)
def test_two_workers_share_the_runs(tmp_path: Path) -> None:
    seeds = SeedsConfig(search=[0, 1], report=[])
    store = prepared(tmp_path / "runs", engine="packed", seeds=seeds)
    workers = [start_worker(store, tmp_path / "work.py", step_s=1, workers=2) for _ in range(2)]
    assert [worker.wait(timeout=100) for worker in workers] == [0, 0]
    pids = [record.probes["pid"] for record in records(store).values()]
    assert sorted(pids.count(pid) for pid in set(pids)) == [6, 6]


@pytest.mark.timeout(120)
def test_a_killed_worker_s_pack_is_trained_again_together(tmp_path: Path) -> None:
    seeds = SeedsConfig(search=[0, 1], report=[])
    store = prepared(tmp_path / "runs", engine="packed", seeds=seeds)
    worker = start_worker(store, tmp_path / "work.py", step_s=1)
    while not any(badge["runs"] for badge in badges(store)):
        assert worker.poll() is None
    worker.kill()
    worker.wait()
    drain(store)
    found = records(store)
    assert len(found) == 12
    assert {record.probes["lanes"] for record in found.values()} == set(range(1, 13))
    noted = [attempt for run in toy_plan().runs for attempt in attempts(store, run)]
    assert all(not attempt["spent"] for attempt in noted)


@pytest.mark.timeout(120)
def test_status_shows_a_pack_in_a_line(tmp_path: Path) -> None:
    store = prepared(tmp_path / "runs", engine="packed", seeds=SeedsConfig(search=[0], report=[]))
    worker = start_worker(store, tmp_path / "work.py", step_s=1)
    seen = {""}
    while worker.poll() is None:
        seen |= {describe_badge(badge) for badge in badges(store)}
    assert "6 runs at step 0/3 (3 full, 3 lora-r1)" in seen
    assert any("step 1/3, best accuracy 0.700 (" in line for line in seen)


def test_early_stopping_ends_runs_inside_the_pack(tmp_path: Path) -> None:
    rule = EarlyStoppingConfig(grace_steps=1, keep=0.5, window=1)
    store = ExperimentStore(tmp_path)
    plan = toy_plan(engine="packed", seeds=SeedsConfig(search=[0, 1], report=[]))
    question = replace(plan.experiment, early_stopping=rule)
    store.write_plan(to_json(replace(plan, experiment=question)))
    drain(store)
    found = records(store)
    assert len(found) == 12
    pruned = [record for record in found.values() if record.status == "pruned"]
    assert pruned and all(record.score_final is None for record in pruned)
    assert all("is number" in record.status_reason for record in pruned)
    best = {"full": 2e-4, "lora-r1": 2e-3}
    assert all(record.learning_rate != best[record.arm] for record in pruned)
    storage = Storage(store).trials
    for optuna_study in storage.get_all_studies():
        for trial in storage.get_all_trials(optuna_study._study_id):
            is_pruned = found[trial.user_attrs["run_id"]].status == "pruned"
            assert trial.state is (TrialState.PRUNED if is_pruned else TrialState.COMPLETE)
            assert trial.intermediate_values


def losing(monkeypatch: pytest.MonkeyPatch, *, first: int) -> None:
    """The claims on the ``first`` trials are lost once they are held."""
    renew = Claims.renew

    def renew_unless_lost(self: Claims, claim: Claim) -> bool:
        claim.lost = claim.renewed_at > 0 and claim.trial_id < first
        return renew(self, claim)

    monkeypatch.setattr(Claims, "renew", renew_unless_lost)


def test_a_pack_goes_on_when_one_run_was_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = prepared(tmp_path, engine="packed")
    losing(monkeypatch, first=1)
    drain(store)
    assert_every_planned_run_once(store)
    assert len({record.probes["pid"] for record in records(store).values()}) == 1


def test_a_pack_is_ended_when_every_run_was_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _, fine = prepared_runs(tmp_path, 15, neighbours=2)
    plan = read_state(store).plan
    store.write_plan(to_json(replace(plan, runs=fine)))
    losing(monkeypatch, first=2)
    drain(store)
    found = records(store)
    assert found.keys() == {run.run_id for run in fine}
    for run in fine:
        (attempt,) = attempts(store, run)
        assert attempt["reason"] == "another worker took the run over"
        assert (attempt["spent"], attempt.get("pack")) == (False, None)
    assert {record.probes["lanes"] for record in found.values()} == {1, 2}  # together again


def test_an_interrupt_between_record_and_tell_leaves_the_result_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = prepared(tmp_path, engine="trl")
    claims = Claims(store, Storage(store), "toy")
    pack = Pack(Holder(store=store, claims=claims), Badge(store))
    assert pack.open()
    (lane,) = pack.lanes.values()
    found = record_of(lane.run, 0.5, schema_version=1)
    write_json(lane.directory / "result.json", asdict(found))

    def strike(*arguments: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(claims.storage.trials, "set_trial_state_values", strike)
        with pytest.raises(KeyboardInterrupt):
            pack.holder.publish(lane.claim, lane.directory)
    pack.take_back()
    trial = claims.storage.trials.get_trial(lane.claim.trial_id)
    assert (trial.state, trial.value) == (TrialState.COMPLETE, 0.5)
    assert trial.user_attrs["status"] == "completed"
