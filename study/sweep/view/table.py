"""A sweep's outlook as a table that fits its terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from study.sweep.view.outlook import ArmOutlook, Outlook
from study.sweep.view.wording import duration, plain
from study.sweep.work.badge import describe_badge

WORKER_LINES = 6
"""Workers that are described one by one; of more, the rest is summed up."""
OTHER_LINES = 6
"""Headline of up to two lines, column names, rule, folded row, and the cursor's line."""
SHORTEST_NAME = 12
COLUMN_GAP = 2
HEADINGS = ("arm", "done", "now", "best mean score so far", "failed", "lost")


def outlook_table(outlook: Outlook, width: int, height: int | None = None) -> RenderableType:
    """The table, a row per arm, and below it what is running.

    Args:
        outlook: The sweep.
        width: Columns that there are; names give way, never numbers.
        height: Lines that there are: long names are cut, and arms beyond share one row. None: no
            limit.
    """
    lines = worker_lines(outlook)
    room = len(outlook.arms) if height is None else max(1, height - OTHER_LINES - len(lines))
    shown, folded = fold(outlook.arms, room)
    rows = [arm_cells(arm) for arm in shown] + ([folded_cells(folded)] if folded else [])
    others = zip(*(row[1:] for row in (HEADINGS, *rows)), strict=True)
    taken = sum(COLUMN_GAP + max(map(len, column)) for column in others)
    name_width = max(SHORTEST_NAME, width - taken)
    cut = height is not None
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("arm", no_wrap=cut, overflow="fold", max_width=name_width)
    table.add_column("done", justify="right", no_wrap=True)
    table.add_column("now", justify="right", no_wrap=True)
    table.add_column("best mean score so far", no_wrap=True, overflow="ellipsis")
    table.add_column("failed", justify="right", no_wrap=True)
    table.add_column("lost", justify="right", no_wrap=True)
    names = [row[0] for row in rows]
    for name, row in zip(shortened(names, name_width) if cut else names, rows, strict=True):
        table.add_row(*(plain(cell) for cell in (name, *row[1:])))
    return Group(plain(headline(outlook)), table, *(_cut(line) for line in lines))


def shortened(names: Sequence[str], width: int) -> list[str]:
    """Names that fit: cut at the end, in the middle or at the start, where most stay distinct."""
    head = width - 1 - (width - 1) // 2
    cuts = ((width - 1, 0), (head, width - 1 - head), (0, width - 1))
    options = [[_without_middle(name, width, *cut) for name in names] for cut in cuts]
    return max(options, key=lambda option: len(set(option)))


def _without_middle(name: str, width: int, head: int, tail: int) -> str:
    return name if len(name) <= width else f"{name[:head]}…{name[len(name) - tail :]}"


def _cut(line: str) -> Text:
    text = plain(line)
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def headline(outlook: Outlook) -> str:
    """The whole sweep in a line."""
    parts = [f"{outlook.name}: {outlook.done}/{outlook.planned} runs done"]
    given_up = sum(arm.given_up for arm in outlook.arms)
    if given_up:
        parts.append(f"{given_up} given up")
    if outlook.over:
        return ", ".join(parts)
    if outlook.runs_per_hour is not None:
        digits = 0 if outlook.runs_per_hour >= 10 else 1
        parts.append(f"{outlook.runs_per_hour:.{digits}f} runs/h")
    known = outlook.seconds_left is not None
    unknown = "time left unknown" if outlook.workers else "no worker at work"
    parts.append(f"about {duration(outlook.seconds_left or 0)} left" if known else unknown)
    return ", ".join(parts)


def arm_cells(arm: ArmOutlook) -> tuple[str, ...]:
    """Name, done, running now, best so far, failed attempts, runs given up.

    The best is labelled as what it is: the best of several means, each over n seeds.
    """
    best = "-"
    if arm.best is not None:
        best = f"{arm.best.score:.3f} at {arm.best.learning_rate:.3g}"
        best += f", best of {arm.best.rates}, n={arm.best.seeds}"
    counts = (str(count or "-") for count in (arm.failed_attempts, arm.given_up))
    return arm.arm, f"{arm.done}/{arm.planned}", str(arm.running or "-"), best, *counts


def fold(arms: list[ArmOutlook], room: int) -> tuple[list[ArmOutlook], list[ArmOutlook]]:
    """The arms that get a row, in plan order, and those that share one.

    Where there is no room for all: first those at work, then those that wait.
    """

    def idleness(arm: ArmOutlook) -> tuple[bool, bool]:
        return not arm.running, arm.done + arm.given_up == arm.planned

    chosen = {arm.arm for arm in sorted(arms, key=idleness)[:room]}
    return [a for a in arms if a.arm in chosen], [a for a in arms if a.arm not in chosen]


def folded_cells(arms: list[ArmOutlook]) -> tuple[str, ...]:
    """One row for several arms."""
    done, planned = sum(arm.done for arm in arms), sum(arm.planned for arm in arms)
    counts = sum(arm.failed_attempts for arm in arms), sum(arm.given_up for arm in arms)
    return f"... {len(arms)} more", f"{done}/{planned}", "", "", *(str(n or "-") for n in counts)


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
