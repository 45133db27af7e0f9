"""A sweep's outlook as a table that fits its terminal."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table

from study.sweep.badge import describe_badge
from study.sweep.outlook import ArmOutlook, Outlook
from study.sweep.wording import duration, plain, printable

WORKER_LINES = 6
"""Workers that are described one by one; of more, the rest is summed up."""
OTHER_LINES = 5
"""Heading, column names and rule of the table, the folded row, and the cursor's line."""


def outlook_table(outlook: Outlook, height: int | None = None) -> RenderableType:
    """The table, a row per arm, and below it what is running.

    Args:
        outlook: The sweep.
        height: Lines that there are; arms beyond are folded into one row. None: no limit.
    """
    lines = worker_lines(outlook)
    room = len(outlook.arms) if height is None else max(1, height - OTHER_LINES - len(lines))
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
    table.add_column("arm", no_wrap=True, overflow="ellipsis", max_width=24)
    table.add_column("done", justify="right", no_wrap=True)
    table.add_column("now", justify="right", no_wrap=True)
    table.add_column("best mean score so far", no_wrap=True, overflow="ellipsis")
    table.add_column("failed", justify="right", no_wrap=True)
    shown, folded = fold(outlook.arms, room)
    for arm in shown:
        table.add_row(*(plain(cell) for cell in arm_cells(arm)))
    if folded:
        table.add_row(*(plain(cell) for cell in folded_cells(folded)))
    return Group(plain(headline(outlook)), table, *(plain(line) for line in lines))


def headline(outlook: Outlook) -> str:
    """The whole sweep in a line."""
    done, left = outlook.done, outlook.left
    parts = [f"{printable(outlook.name)}: {done}/{done + left} runs done"]
    given_up = sum(arm.given_up for arm in outlook.arms)
    if given_up:
        parts.append(f"{given_up} given up")
    if outlook.runs_per_hour is not None and left:
        parts.append(f"{outlook.runs_per_hour:.3g} runs/h")
    if left:
        known = outlook.seconds_left is not None
        unknown = "time left unknown" if outlook.workers else "no worker at work"
        parts.append(f"about {duration(outlook.seconds_left or 0)} left" if known else unknown)
    return ", ".join(parts)


def arm_cells(arm: ArmOutlook) -> tuple[str, str, str, str, str]:
    """Name, done, running now, best so far, failures.

    The best is labelled as what it is: the best of several means, each over n seeds.
    """
    best = "-"
    if arm.best is not None:
        rates = "1 rate" if arm.best.rates == 1 else f"{arm.best.rates} rates"
        best = f"{arm.best.score:.3f} at {arm.best.learning_rate:.3g}"
        best += f" (best of {rates}, n={arm.best.seeds})"
    failed = str(arm.failed_attempts or "-")
    if arm.given_up:
        failed += f", {arm.given_up} lost"
    return arm.arm, f"{arm.done}/{arm.planned}", str(arm.running or "-"), best, failed


def fold(arms: list[ArmOutlook], room: int) -> tuple[list[ArmOutlook], list[ArmOutlook]]:
    """The arms that get a row, in plan order, and those that share one.

    Where there is no room for all: first those at work, then those that wait.
    """

    def idleness(arm: ArmOutlook) -> tuple[bool, bool]:
        return not arm.running, arm.done + arm.given_up == arm.planned

    chosen = {arm.arm for arm in sorted(arms, key=idleness)[:room]}
    return [a for a in arms if a.arm in chosen], [a for a in arms if a.arm not in chosen]


def folded_cells(arms: list[ArmOutlook]) -> tuple[str, str, str, str, str]:
    """One row for several arms."""
    done, planned = sum(arm.done for arm in arms), sum(arm.planned for arm in arms)
    failed = sum(arm.failed_attempts for arm in arms)
    return f"... {len(arms)} more arms", f"{done}/{planned}", "", "", str(failed or "-")


def worker_lines(outlook: Outlook) -> list[str]:
    """What the workers are doing, a line each, the last ones summed up."""
    busy = [badge for badge in outlook.workers if badge["runs"]]
    several = len({badge["host"] for badge in outlook.workers}) > 1
    lines = [
        (f"{badge['host']} " if several else "") + f"worker {badge['pid']}: {describe_badge(badge)}"
        for badge in busy[:WORKER_LINES]
    ]
    rest = busy[WORKER_LINES:]
    if rest:
        lines.append(f"... {len(rest)} more workers, {sum(len(b['runs']) for b in rest)} runs")
    idle = len(outlook.workers) - len(busy)
    return [*lines, f"{idle} workers wait for a run"] if idle > 1 else lines
