"""What a person sees of a sweep: numbers worked out by hand, and tables that fit."""

from __future__ import annotations

import dataclasses
import os
import socket
import threading
import time
from io import StringIO
from pathlib import Path
from typing import Any

import psutil
import pytest
from rich.console import Console

from study.config import SeedsConfig
from study.plan.budget import ArmBill, Bill, run_flops
from study.plan.experiment import to_json
from study.records.record import Record
from study.records.store import ExperimentStore, write_json
from study.status import main as status
from study.sweep.claims.leases import new_lease
from study.sweep.schedule import read_state
from study.sweep.view.outlook import ArmOutlook, Best, Outlook, Watch, best_so_far, seconds_by_arm
from study.sweep.view.progress import ProgressView, draw_live, print_bill, print_summary, rest_s
from study.sweep.view.table import fold, headline, outlook_table, shortened, worker_lines
from study.sweep.view.wording import duration, printable
from study.sweep.work.badge import badges
from tests.plans import toy_plan
from tests.unit.sweep.workers import drain, prepared


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> ExperimentStore:
    """16 runs of the torch-free engine, done."""
    store = prepared(tmp_path_factory.mktemp("progress") / "toy")
    drain(store)
    return store


def unfinished(path: Path, source: ExperimentStore, done: int) -> ExperimentStore:
    """The first ``done`` search runs of a finished sweep, the plan without report runs."""
    store = ExperimentStore(path)
    plan = toy_plan()
    store.write_plan(to_json(plan))
    for run in plan.runs[:done]:
        record = source.record(run.arm, run.run_id)
        assert record is not None
        seconds = 10.0 if run.arm == "full" else 30.0
        content = dataclasses.asdict(dataclasses.replace(record, wall_time_s=seconds))
        write_json(store.run_dir(run.arm, run.run_id) / "record.json", content)
    return store


def show(store: ExperimentStore, rows: list[dict[str, Any]], **lease: Any) -> None:
    """A worker's badge; of this process unless ``lease`` says otherwise."""
    badge = {**new_lease(), **lease, "runs": rows}
    write_json(store.workers_dir / f"{badge['host']}-{badge['pid']}.json", badge)


def row(store: ExperimentStore, index: int, step: int = 1) -> dict[str, Any]:
    run = read_state(store).plan.runs[index]
    return {
        "run_id": run.run_id, "arm": run.arm, "phase": run.phase, "seed": run.seed,
        "learning_rate": run.learning_rate, "step": step, "steps": 3, "accuracy": None,
    }  # fmt: skip


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


def many(arms: int, running: int) -> Outlook:
    """Arms with long names, the last ``running`` of them at work, the first ten done."""
    found = [
        ArmOutlook(
            arm=f"lora-r{i}-attention-batch-512-constant", planned=120,
            done=120 if i < 10 else 0, running=2 if i >= arms - running else 0,
            best=Best(score=0.1234567, learning_rate=0.000177828, seeds=10, rates=12),
            failed_attempts=100, given_up=10 if i >= 10 else 0,
        )
        for i in range(arms)
    ]  # fmt: skip
    shown = {"step": 100, "steps": 500, "accuracy": 0.5, "arm": found[0].arm}
    shown |= {"learning_rate": 0.000177828, "seed": 7}
    workers = [{"host": f"node{i}", "pid": i, "runs": [shown] * 2} for i in range(12)]
    return Outlook(
        name="e07", arms=found, to_come=60, workers=workers, runs_per_hour=1234.5,
        seconds_left=100_000,
    )  # fmt: skip


def drawn(outlook: Outlook, width: int, height: int | None = None) -> list[str]:
    console = Console(width=width, file=StringIO(), force_terminal=False)
    with console.capture() as captured:
        console.print(outlook_table(outlook, width, height))
    return captured.get().rstrip("\n").split("\n")


def test_thirty_arms_fit_eighty_columns() -> None:
    lines = drawn(many(30, 4), 80, height=100)
    assert all(len(line) <= 80 for line in lines)
    assert lines[0] == "e07: 1200/3660 runs done, 200 given up, 1234 runs/h, about 27 h 46 min left"
    (line,) = [line for line in lines if line.startswith("lora-r7")]
    assert line.split() == [
        "lora-r7-attent…", "120/120", "-", "0.123", "at", "0.000178,", "best", "of", "12,", "n=10",
        "100", "-",
    ]  # fmt: skip


def test_names_that_must_be_cut_stay_apart() -> None:
    joint = [f"rank-{rank}_prompts_per_step-{n}" for rank in (1, 8) for n in (4, 16)]
    assert shortened(joint, 13) == [
        "rank-1…step-4",
        "rank-1…tep-16",
        "rank-8…step-4",
        "rank-8…tep-16",
    ]
    assert shortened(["lora-r1-attention", "lora-r8-attention"], 12) == [
        "lora-r1-att…",
        "lora-r8-att…",
    ]
    assert shortened(["full", "lora"], 12) == ["full", "lora"]


def test_long_names_are_whole_where_lines_are_not_counted() -> None:
    lines = drawn(many(1, 0), 80)
    assert all(len(line) <= 80 for line in lines)
    name = "".join(line.split()[0] for line in lines[3:] if not line.startswith(("node", "...")))
    assert name == "lora-r0-attention-batch-512-constant"


def test_numbers_of_bill_and_summary_are_whole_at_eighty_columns(
    finished: ExperimentStore,
) -> None:
    state, name = read_state(finished), "rank-8_prompts_per_step-16"
    bill = Bill(
        arms=[
            ArmBill(
                arm=name, learning_rates=12, search_runs=120, report_runs=10,
                trainable_params=2_131_712, tokens=1.3e9, flops=2.5e15, disk_bytes=123.4e6,
                seconds=10.0,
            )
        ],
        workers=1, price_per_hour=None,
    )  # fmt: skip
    console = Console(file=StringIO(), width=80)
    print_bill(console, state, bill, finished.path)
    assert isinstance(console.file, StringIO)
    text = console.file.getvalue()
    for number in ("12", "120", "10", "2,131,712", "1.3e+09", "2.5e+15", "123.4 MB"):
        assert number in text


def test_arms_that_do_not_fit_the_height_share_a_row() -> None:
    lines = drawn(many(30, 4), 80, height=24)
    assert len(lines) < 24
    shown = [line.split("-")[1] for line in lines if line.startswith("lora-r")]
    assert shown[-4:] == ["r26", "r27", "r28", "r29"]  # at work
    (rest,) = [line for line in lines if line.startswith("...") and "/" in line]
    assert f"... {30 - len(shown)} more " in rest
    assert "... 6 more workers, 12 runs" in lines


def test_folded_arms_are_the_finished_ones_first() -> None:
    kept, folded = fold(many(30, 4).arms, 20)
    assert [arm.arm.split("-")[1] for arm in kept] == [f"r{i}" for i in range(10, 30)]
    assert [arm.done for arm in folded] == [120] * 10


def test_names_and_reasons_are_shown_and_never_obeyed(finished: ExperimentStore) -> None:
    hostile = "[red]x[/red]\x1b[2J"
    assert printable(hostile) == "[red]x[/red]\\x1b[2J"
    outlook = many(1, 0)
    arm = dataclasses.replace(outlook.arms[0], arm=hostile)
    text = "\n".join(drawn(dataclasses.replace(outlook, arms=[arm], name=hostile), 100))
    assert text.count("[red]x[/red]\\x1b[2J") == 2 and "\x1b" not in text
    state = read_state(finished)
    first = next(iter(state.records))
    state.records[first] = dataclasses.replace(state.records[first], status_reason=hostile)
    alone = dataclasses.replace(state.plan.experiment, kind="single")
    console = Console(file=StringIO(), width=200)
    plan = dataclasses.replace(state.plan, experiment=alone)
    print_summary(console, dataclasses.replace(state, plan=plan), finished.path)
    assert isinstance(console.file, StringIO)
    assert "([red]x[/red]\\x1b[2J)" in console.file.getvalue()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3.4, "3 s"), (59.6, "1 min 00 s"), (250, "4 min 10 s"), (3780, "1 h 03 min")],
)
def test_durations_are_read_at_a_glance(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_looking_takes_at_most_a_twentieth_of_the_time(finished: ExperimentStore) -> None:
    watch = Watch(finished)
    watch.look()
    assert 0 < watch.update_s < 1
    watch.update_s = 0.5
    assert rest_s(watch, 1.0) == 10.0
    watch.update_s = 0.01
    assert rest_s(watch, 1.0) == 1.0


def test_the_live_table_is_drawn_until_told_to_stop(finished: ExperimentStore) -> None:
    console = Console(file=StringIO(), width=90, height=30, force_terminal=True)
    with ProgressView(console, finished):
        time.sleep(0.2)
    assert isinstance(console.file, StringIO)
    assert "toy: 16/16 runs done" in console.file.getvalue()


def test_drawing_ends_by_itself_when_the_sweep_is_over(finished: ExperimentStore) -> None:
    console = Console(file=StringIO(), width=90, height=30, force_terminal=True)
    never = threading.Event().wait
    draw_live(console, Watch(finished), never, ended=lambda outlook: outlook.over)


def test_status_reads_and_writes_nothing(
    finished: ExperimentStore, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {p: p.stat().st_mtime_ns for p in finished.path.rglob("*")}
    status([str(finished.path)])
    status([str(finished.path), "--watch"])
    assert {p: p.stat().st_mtime_ns for p in finished.path.rglob("*")} == before
    text = capsys.readouterr().out
    assert text.count("toy: 16 of 16 runs done") == 2
    assert "0.700 at 0.0002, best of 3, n=2" in text


def test_status_of_another_directory_is_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        status([str(tmp_path)])
    assert left.value.code == 2
    assert capsys.readouterr().err == (
        f"error: {tmp_path} is not an experiment: it has no plan.json\n"
    )
