"""The line that says what a sweep may spend."""

from __future__ import annotations

from rich.console import Console

from study.config import BudgetConfig
from study.sweep.view.allowance import budget_line, print_budget
from tests.plans import record_of, toy_plan

RECORDS = {
    run.run_id: record_of(run, 0.5, train_flops=2e14, rollout_flops=1e13)
    for run in toy_plan().runs[:4]
}


def test_each_limit_stands_beside_what_is_spent_of_it() -> None:
    everything = BudgetConfig(runs=20, flops=1e15, hours=3.5)
    assert budget_line(everything, RECORDS) == (
        "at most 20 runs, 1e+15 FLOPs, 3.5 h of each worker's life; "
        "spent so far 4 runs, 8.4e+14 FLOPs"
    )
    assert budget_line(BudgetConfig(runs=1), {}) == "at most 1 run; spent so far 0 runs"
    assert budget_line(BudgetConfig(hours=8), RECORDS) == "at most 8 h of each worker's life"


def test_without_a_budget_nothing_is_said() -> None:
    console = Console(width=200)
    with console.capture() as printed:
        print_budget(console, BudgetConfig(), RECORDS)
        print_budget(console, BudgetConfig(runs=2), {})
    assert printed.get() == "budget: at most 2 runs; spent so far 0 runs\n"
