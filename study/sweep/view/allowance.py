"""What a sweep may spend and has spent, in a line beside the bill."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from study.config import BudgetConfig
from study.records.record import Record


def print_budget(console: Console, budget: BudgetConfig, records: Mapping[str, Record]) -> None:
    """Print the budget; nothing where none is set."""
    if budget != BudgetConfig():
        console.print(f"budget: {budget_line(budget, records)}", soft_wrap=True, highlight=False)


def budget_line(budget: BudgetConfig, records: Mapping[str, Record]) -> str:
    """For example ``at most 20 runs, 1e+15 FLOPs; spent so far 4 runs, 2.1e+14 FLOPs``.

    Args:
        budget: At least one limit.
        records: All results of the experiment. Hours are counted anew in each worker.
    """
    limits: list[str] = []
    spent: list[str] = []
    if budget.runs is not None:
        limits.append(_runs(budget.runs))
        spent.append(_runs(len(records)))
    if budget.flops is not None:
        limits.append(f"{budget.flops:.3g} FLOPs")
        flops = sum(r.train_flops + r.rollout_flops for r in records.values())
        spent.append(f"{flops:.3g} FLOPs")
    if budget.hours is not None:
        limits.append(f"{budget.hours:g} h of each worker's life")
    text = f"at most {', '.join(limits)}"
    return f"{text}; spent so far {', '.join(spent)}" if spent else text


def _runs(count: int) -> str:
    return f"{count} run{'' if count == 1 else 's'}"
