"""Tables fit their terminal, and what others wrote does not steer it."""

from __future__ import annotations

import dataclasses
from io import StringIO

from rich.console import Console

from study.sweep.view.outlook import ArmOutlook, Best, Outlook
from study.sweep.view.table import fold, outlook_table, shortened


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


def test_names_are_shown_and_never_obeyed() -> None:
    hostile = "[red]x[/red]\x1b[2J"
    outlook = many(1, 0)
    arm = dataclasses.replace(outlook.arms[0], arm=hostile)
    text = "\n".join(drawn(dataclasses.replace(outlook, arms=[arm], name=hostile), 100))
    assert text.count("[red]x[/red]\\x1b[2J") == 2 and "\x1b" not in text
