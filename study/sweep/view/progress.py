"""What a person sees of a sweep: the bill before, a live table during, statuses at the end."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table

from study.plan.budget import Bill
from study.plan.experiment import Plan
from study.plan.packs import EngineChoice, pack_share
from study.records.record import Record
from study.records.store import ExperimentStore
from study.sweep.modes.search import to_come
from study.sweep.schedule import State
from study.sweep.view.outlook import Outlook, Watch
from study.sweep.view.table import headline, outlook_table, worker_lines
from study.sweep.view.wording import duration, plain

LIVE_EVERY_S = 1.0
PLAIN_EVERY_S = 15.0
LOOKING_SHARE = 20


def print_bill(console: Console, state: State, bill: Bill, path: Path) -> None:
    """Arms x trials x seeds, tokens, parameters, FLOPs, disk and time, before anything runs."""
    title = f"plan of {path.name}: {bill.runs} runs, {len(state.records)} done"
    table = Table(title=plain(title), padding=(0, 1, 0, 0))
    table.add_column("arm", overflow="fold")
    headings = ("LRs", "search", "report", "trainable", "tokens", "FLOPs", "disk")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for arm in bill.arms:
        table.add_row(
            plain(arm.arm),
            str(arm.learning_rates),
            str(arm.search_runs),
            str(arm.report_runs),
            f"{arm.trainable_params:,}",
            f"{arm.tokens:.2g}",
            f"{arm.flops:.2g}",
            f"{arm.disk_bytes / 1e6:.1f} MB",
        )
    console.print(table)
    known = "unknown until a run of each arm was measured"
    time_text = known if bill.seconds is None else duration(bill.seconds)
    console.print(f"time for all runs with {bill.workers} worker(s): {time_text}")
    if bill.price is not None:
        console.print(f"price: {bill.price:.2f}")


def print_engine(console: Console, plan: Plan, engine: EngineChoice, pack_size: int | None) -> None:
    """What trains the runs and why, in a line; ``pack_size``: ``engine.pack_size``."""
    console.print(f"engine: {engine_line(plan, engine, pack_size)}", soft_wrap=True)


def engine_line(plan: Plan, engine: EngineChoice, asked: int | None) -> str:
    """For example ``packed (8 runs a process)`` or ``trl, since arm full sets ...``."""
    text = engine.name
    if engine.name == "packed" and plan.experiment.kind != "single":
        sizes = {pack_share(arm, asked).denominator for arm in plan.arms.values()}
        ends = sorted({min(sizes), max(sizes)})
        text += f" ({' to '.join(str(size) for size in ends)} runs a process)"
    return f"{text}, {engine.reason}" if engine.reason else text


def print_summary(console: Console, state: State, path: Path) -> None:
    """Statuses by arm, what was given up, and the next command."""
    planned = len(state.plan.runs) + to_come(state.plan, state.records)
    title = f"{path.name}: {len(state.records)} of {planned} runs done"
    table = Table(title=plain(title), padding=(0, 1, 0, 0))
    table.add_column("arm", overflow="fold")
    statuses = sorted({record.status for record in state.records.values()})
    table.add_column("phase", no_wrap=True)
    for heading in ("planned", *statuses, "given up", "open"):
        table.add_column(heading, justify="right", no_wrap=True)
    for arm in state.plan.arms:
        for phase in ("search", "report"):
            cells = {run.run_id for run in state.plan.cells(arm, phase)}
            if not cells:
                continue
            done = Counter(r.status for k, r in state.records.items() if k in cells)
            lost = len(cells & state.given_up)
            left = len(cells) - sum(done.values()) - lost
            counts = [str(done[status]) for status in statuses]
            table.add_row(plain(arm), phase, str(len(cells)), *counts, str(lost), str(left))
    console.print(table)
    if state.plan.experiment.kind == "single":
        for record in state.records.values():
            console.print(plain(result_line(record)), soft_wrap=True)
    for run in state.plan.runs:
        if run.run_id in state.given_up:
            where = f"given up: {path / run.arm / run.run_id} (see attempts.jsonl)"
            console.print(plain(where), soft_wrap=True)
    if state.given_up:
        console.print("the same command with retry=true tries these again")


def result_line(record: Record) -> str:
    """How one run ended, in a line."""
    text = f"{record.arm}: {record.status}"
    if record.status_reason:
        text += f" ({record.status_reason})"
    if record.score_final is not None:
        text += f", held-out accuracy {record.score_final:.3f}"
        text += f" (mean of the last {record.final_window} evaluations"
        text += f" of {record.eval_prompts} prompts; one run, no interval)"
    if record.score_base is not None:
        text += f", untrained {record.score_base:.3f}"
    return text


class ProgressView:
    """Draws a sweep from its store until told to stop; plain lines where there is no terminal."""

    def __init__(
        self, console: Console, store: ExperimentStore, wanted: Collection[str] | None = None
    ) -> None:
        self.console = console
        self._watch = Watch(store, wanted)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._draw, daemon=True)

    def __enter__(self) -> ProgressView:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _draw(self) -> None:
        if self.console.is_terminal:
            draw_live(self.console, self._watch, self._stop.wait)
            return
        while not self._stop.wait(rest_s(self._watch, PLAIN_EVERY_S)):
            outlook = self._watch.look()
            text = "; ".join([headline(outlook), *worker_lines(outlook)])
            self.console.print(plain(text), soft_wrap=True)


def draw_live(
    console: Console,
    watch: Watch,
    wait: Callable[[float], bool],
    ended: Callable[[Outlook], bool] = lambda outlook: False,
) -> None:
    """Keep a table on the terminal up to date.

    Args:
        console: The terminal.
        watch: What is read.
        wait: Waits so many seconds; True: draw once more and leave.
        ended: Whether to leave by itself.
    """
    outlook = watch.look()
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        live.update(outlook_table(outlook, console.width, console.height), refresh=True)
        while not ended(outlook):
            last = wait(rest_s(watch, LIVE_EVERY_S))
            outlook = watch.look()
            live.update(outlook_table(outlook, console.width, console.height), refresh=True)
            if last:
                return


def rest_s(watch: Watch, least: float) -> float:
    """Seconds until the next look: looking takes at most a twentieth of the time."""
    return max(least, LOOKING_SHARE * watch.update_s)
