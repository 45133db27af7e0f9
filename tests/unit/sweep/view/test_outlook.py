"""How far a sweep is, in numbers worked out by hand."""

from __future__ import annotations

import dataclasses
import os
import socket
import time
from pathlib import Path

import psutil
import pytest

from study.config import SeedsConfig
from study.plan.budget import run_flops
from study.records.record import Record
from study.records.store import ExperimentStore
from study.sweep.schedule import read_state
from study.sweep.view.outlook import Best, Watch, best_so_far, seconds_by_arm
from study.sweep.view.table import headline, worker_lines
from study.sweep.work.badge import badges
from tests.plans import toy_plan
from tests.unit.sweep.view.sweeps import row, show, unfinished
from tests.unit.sweep.workers import drain, prepared


def scored(record: Record, rate: float, seed: int, score: float | None) -> Record:
    return dataclasses.replace(
        record, phase="search", learning_rate=rate, seed=seed, score_final=score
    )


def test_the_best_so_far_is_the_best_of_means_and_says_of_how_many(
    finished: ExperimentStore,
) -> None:
    record = next(iter(read_state(finished).records.values()))
    found = [
        scored(record, 1e-3, 0, 0.5), scored(record, 1e-3, 1, 0.7), scored(record, 1e-2, 0, 0.5),
        scored(record, 1e-1, 0, None), scored(record, 1e-2, 1, 0.7),
    ]  # fmt: skip
    assert best_so_far(found) == Best(score=0.6, learning_rate=1e-3, seeds=2, rates=2)
    assert best_so_far(found[3:4]) is None
    assert best_so_far([dataclasses.replace(found[0], phase="report")]) is None


def test_time_left_follows_from_each_arm_s_own_time(
    finished: ExperimentStore, tmp_path: Path
) -> None:
    store = unfinished(tmp_path / "half", finished, done=4)
    assert [run.arm for run in toy_plan().runs[:4]] == ["full", "lora-r1", "full", "lora-r1"]
    show(store, [row(store, 4, step=0), row(store, 5, step=1)])
    outlook = Watch(store).look()
    # Open: 4 x full of 10 s, 4 x lora-r1 of 30 s, one of which has done a third; then 4 report
    # runs, 2 an arm, at the mean of 20 s; one worker.
    assert outlook.seconds_left == pytest.approx(4 * 10 + 4 * 30 - 10 + 4 * 20)
    assert (outlook.done, outlook.planned, outlook.open, outlook.to_come) == (4, 16, 8, 4)
    assert [arm.running for arm in outlook.arms] == [1, 1]
    show(store, [], host="elsewhere", expires=time.time() + 60)
    assert Watch(store).look().seconds_left == pytest.approx((4 * 10 + 4 * 30 - 10 + 4 * 20) / 2)


def test_an_arm_that_was_not_measured_is_scaled_by_its_flops(finished: ExperimentStore) -> None:
    state = read_state(finished)
    full = {k: r for k, r in state.records.items() if r.arm == "full"}
    known = {k: dataclasses.replace(r, wall_time_s=10.0) for k, r in full.items()}
    arms = state.plan.arms
    ratio = run_flops(arms["lora-r1"]) / run_flops(arms["full"])
    assert seconds_by_arm(state.plan, known) == pytest.approx({"full": 10, "lora-r1": 10 * ratio})
    assert seconds_by_arm(state.plan, {}) == {}


def test_without_a_worker_or_a_measured_run_nothing_is_promised(
    finished: ExperimentStore, tmp_path: Path
) -> None:
    idle = Watch(unfinished(tmp_path / "idle", finished, done=4)).look()
    assert idle.seconds_left is None and idle.runs_per_hour is None
    assert headline(idle) == "toy: 4/16 runs done, no worker at work"
    store = unfinished(tmp_path / "new", finished, done=0)
    show(store, [row(store, 0)])
    assert headline(Watch(store).look()) == "toy: 0/16 runs done, time left unknown"


def test_runs_per_hour_count_from_the_first_living_worker(
    finished: ExperimentStore, tmp_path: Path
) -> None:
    store = unfinished(tmp_path / "rate", finished, done=4)
    first, *others = store.path.glob("*/*/record.json")
    os.utime(first, (0, time.time() - 1000))  # before the worker began
    assert len(others) == 3
    there = {"host": "elsewhere", "expires": time.time() + 60}
    show(store, [], started=time.time() - 360, **there)
    rate = Watch(store).look().runs_per_hour
    assert rate == pytest.approx(30, rel=0.01)


def test_a_worker_whose_clock_is_ahead_promises_no_rate(
    finished: ExperimentStore, tmp_path: Path
) -> None:
    store = unfinished(tmp_path / "ahead", finished, done=4)
    later = time.time() + 100
    for path in store.path.glob("*/*/record.json"):
        os.utime(path, (later, later))  # the disk's clock is ahead as well
    show(store, [], host="elsewhere", expires=later, started=later - 10)
    assert Watch(store).look().runs_per_hour is None


def test_a_watch_sees_what_is_published_after_it_began(
    finished: ExperimentStore, tmp_path: Path
) -> None:
    store = unfinished(tmp_path / "on", finished, done=4)
    watch = Watch(store)
    assert watch.look().done == 4
    unfinished(tmp_path / "on", finished, done=6)
    assert watch.look().done == 6
    store.write_plan(finished.read_plan() or {})
    assert watch.look().planned == 16 and watch.look().to_come == 0


def test_failed_attempts_and_runs_given_up_are_counted(tmp_path: Path) -> None:
    store = prepared(tmp_path / "toy", seeds=SeedsConfig(search=[0, 13], report=[100]))
    drain(store)
    outlook = Watch(store).look()
    assert [(arm.failed_attempts, arm.given_up) for arm in outlook.arms] == [(3, 3), (3, 3)]
    assert outlook.over  # report runs wait for cells that will not come
    assert headline(outlook) == "toy: 6/14 runs done, 6 given up"


def test_workers_elsewhere_live_while_they_show_themselves(tmp_path: Path) -> None:
    store = prepared(tmp_path / "toy")
    show(store, [], host="elsewhere", pid=1, expires=time.time() + 10)
    show(store, [], host="gone", pid=2, expires=time.time() - 1)
    show(
        store, [], host=socket.gethostname(), pid=os.getpid(), started=1.0, after_boot=1.0
    )  # pid used again
    assert [badge["host"] for badge in badges(store)] == ["elsewhere"]
    lines = worker_lines(Watch(store).look())
    assert lines == []
    show(store, [row(store, 0)], started=psutil.Process().create_time())
    assert worker_lines(Watch(store).look()) == [
        f"{socket.gethostname()} worker {os.getpid()}: full lr=2e-05 seed=0 step 1/3"
    ]
