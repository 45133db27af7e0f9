"""What a person sees of a sweep: the bill before, a live table during, statuses at the end."""

from __future__ import annotations

import dataclasses
import threading
import time
from io import StringIO

import pytest
from rich.console import Console

from study.plan.budget import ArmBill, Bill
from study.records.store import ExperimentStore
from study.sweep.schedule import read_state
from study.sweep.view.outlook import Watch
from study.sweep.view.progress import ProgressView, draw_live, print_bill, print_summary, rest_s
from study.sweep.view.wording import duration


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


def test_reasons_are_shown_and_never_obeyed(finished: ExperimentStore) -> None:
    hostile = "[red]x[/red]\x1b[2J"
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
