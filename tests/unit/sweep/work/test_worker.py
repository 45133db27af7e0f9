"""Workers with a torch-free engine: real processes, real storage, real kills."""

from __future__ import annotations

import json
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from study.config import SeedsConfig
from study.plan.experiment import to_json
from study.plan.portions import whole
from study.records.store import ExperimentStore
from study.sweep.claims.storage import Storage
from study.sweep.schedule import read_state
from study.sweep.work.worker import Worker
from tests.plans import toy_plan
from tests.unit.sweep.workers import (
    ENGINES,
    assert_every_planned_run_once,
    drain,
    prepared,
    start_worker,
    wait_for_records,
)


def test_a_worker_drains_search_and_report(tmp_path: Path) -> None:
    store = prepared(tmp_path)
    drain(store)
    assert_every_planned_run_once(store)
    selections = store.read_selections()
    assert {a: s["learning_rate"] for a, s in selections.items()} == {"full": 2e-4, "lora-r1": 2e-3}
    assert list(store.workers_dir.iterdir()) == []
    lora = next(r for r in read_state(store).records.values() if r.method == "lora")
    assert (lora.lora_rank, lora.lora_alpha, lora.trainable_params) == (1, 32.0, 272)
    # Per token 4 x 1280 + 6 x 272 FLOPs, less 432 that the first block saves; the double says
    # 100 tokens and no logits.
    assert lora.train_flops == 100 * (4 * 1280 + 6 * 272 - 432)


def test_a_worker_drains_a_plan_whose_claims_are_in_sqlite(tmp_path: Path) -> None:
    store = ExperimentStore(tmp_path / "toy")
    url = f"sqlite:///{tmp_path}/claims.db"
    store.write_plan(to_json(replace(toy_plan(), storage=url)))
    drain(store)
    assert_every_planned_run_once(store)
    assert not store.journal_path.exists()
    trials = Storage(store, url).trials
    (plan_study,) = (s for s in trials.get_all_studies() if s.study_name == "toy/plan")
    assert whole(plan_study.user_attrs) == store.read_plan()


def test_a_second_worker_repeats_nothing(tmp_path: Path) -> None:
    store = prepared(tmp_path)
    drain(store)
    before = {p: p.stat().st_mtime_ns for p in store.path.glob("*/*/record.json")}
    drain(store)
    assert before == {p: p.stat().st_mtime_ns for p in store.path.glob("*/*/record.json")}


@pytest.mark.parametrize(
    ("seed", "status", "reason"),
    [
        (13, "failed", "RuntimeError: seed 13 always fails"),
        (14, "failed", "left with exit code 7"),
        (15, "stalled", "no progress for 1 s"),
        (16, "oom", "MemoryError"),
    ],
)
def test_failed_attempts_are_noted_retried_and_given_up(
    tmp_path: Path, seed: int, status: str, reason: str
) -> None:
    store = ExperimentStore(tmp_path)
    one = toy_plan(seeds=SeedsConfig(search=[seed], report=[]))
    store.write_plan(to_json(replace(one, runs=one.runs[:1], max_retries=1)))
    drain(store, stall_timeout_s=1 if seed == 15 else 60)
    run = one.runs[0]
    attempts = store.attempts(run.arm, run.run_id)
    assert [a["status"] for a in attempts] == [status, status]
    assert reason in attempts[0]["reason"]
    assert store.record(run.arm, run.run_id) is None
    assert read_state(store).given_up == {run.run_id}
    if status == "failed" and seed == 13:
        traceback = store.run_dir(run.arm, run.run_id) / "attempts" / "1" / "traceback.txt"
        assert "seed 13 always fails" in traceback.read_text()


def test_diverged_runs_are_results(tmp_path: Path) -> None:
    store = prepared(tmp_path, full_rates=[0.5, 5.0, 50.0])
    drain(store)
    records = read_state(store).records.values()
    diverged = [r for r in records if r.status == "diverged"]
    assert {(r.arm, r.phase, r.score_final) for r in diverged} == {
        ("full", "search", 0.0),
        ("full", "report", 0.0),
    }
    assert len(diverged) == 8  # 3 rates x 2 search seeds, and 2 report seeds at the lowest rate
    assert store.read_selections()["full"]["edge"] == "low"


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("engine", "kills"), [("trl", 3), ("packed", 1)])
def test_killed_workers_lose_and_double_nothing(tmp_path: Path, engine: str, kills: int) -> None:
    store = prepared(tmp_path / "runs", engine=engine)
    for _ in range(kills):
        done = len(list(store.path.glob("*/*/record.json")))
        worker = start_worker(store, tmp_path / "work.py")
        wait_for_records(store, worker, done + 2)
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    last = start_worker(store, tmp_path / "work.py")
    assert last.wait(timeout=60) == 0
    assert_every_planned_run_once(store)
    noted = [json.loads(x) for p in store.path.glob("*/*/attempts.jsonl") for x in p.open()]
    assert all(a["status"] == "killed" and not a["spent"] for a in noted)


@pytest.mark.timeout(120)
def test_two_workers_train_each_run_once(tmp_path: Path) -> None:
    store = prepared(tmp_path / "runs")
    workers = [start_worker(store, tmp_path / "work.py") for _ in range(2)]
    assert [worker.wait(timeout=100) for worker in workers] == [0, 0]
    assert_every_planned_run_once(store)
    trained = (tmp_path / "trained.txt").read_text().split()
    assert sorted(trained) == sorted(read_state(store).records)


def test_a_worker_leaves_although_runs_were_given_up_before_it_came(tmp_path: Path) -> None:
    store = ExperimentStore(tmp_path)
    one = toy_plan(seeds=SeedsConfig(search=[13], report=[]))
    run = one.runs[0]
    store.write_plan(to_json(replace(one, runs=one.runs[:1], max_retries=0)))
    store.append_attempt(run.arm, run.run_id, 1, "failed", "boom")
    drain(store)
    assert read_state(store).given_up == {run.run_id}


def test_a_result_whose_worker_died_is_published_not_trained_again(tmp_path: Path) -> None:
    store = prepared(tmp_path / "runs")
    dying = "import os; from study.records.store import ExperimentStore as S\n"
    dying += "S.publish = lambda *_: os._exit(9)\n"
    assert start_worker(store, tmp_path / "work.py", dying).wait(timeout=60) == 9
    run = toy_plan().runs[0]
    result = store.run_dir(run.arm, run.run_id) / "attempts" / "1" / "result.json"
    left = json.loads(result.read_text())
    result.write_text(json.dumps({**left, "status_reason": "left by the dead"}))
    drain(store)
    assert_every_planned_run_once(store)
    record = store.record(run.arm, run.run_id)
    assert record is not None
    assert record.status_reason == "left by the dead"


def test_a_worker_can_be_asked_for_some_runs_only(tmp_path: Path) -> None:
    store = prepared(tmp_path)
    wanted = {run.run_id for run in toy_plan().runs[:2]}
    Worker(store, 60, wanted, ENGINES).work()
    assert read_state(store).records.keys() == wanted


@pytest.mark.timeout(60)
@pytest.mark.parametrize("engine", ["trl", "packed"])
def test_interrupt_leaves_everything_resumable(tmp_path: Path, engine: str) -> None:
    store = prepared(tmp_path / "runs", engine=engine)
    worker = start_worker(store, tmp_path / "work.py")
    wait_for_records(store, worker, 1)
    worker.send_signal(signal.SIGINT)
    worker.wait(timeout=20)
    assert len(read_state(store).records) < 16
    attempts = store.path.glob("*/*/attempts/*")
    assert all((path / "result.json").exists() for path in attempts)  # the others left no trace
    assert not list(store.path.glob("*/*/attempts.jsonl"))
    drain(store)
    assert_every_planned_run_once(store)


@pytest.mark.timeout(60)
def test_children_die_with_their_worker(tmp_path: Path) -> None:
    import psutil

    store = prepared(tmp_path / "runs", seeds=SeedsConfig(search=[15], report=[]))
    worker = start_worker(store, tmp_path / "work.py")
    process = psutil.Process(worker.pid)
    deadline = time.monotonic() + 30
    while not list(store.path.glob("*/*/attempts/1/config.yaml")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    family = process.children(recursive=True)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    _, alive = psutil.wait_procs(family, timeout=10)
    assert alive == []
