"""What a person sees of a sweep: the bill before, a live table during, statuses at the end."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

from study.plan.budget import Bill
from study.plan.experiment import Plan
from study.plan.packs import EngineChoice, pack_share
from study.records.record import Record
from study.records.store import ExperimentStore
from study.sweep.badge import badges, describe_badge
from study.sweep.schedule import State, read_state

LIVE_EVERY_S = 1.0
PLAIN_EVERY_S = 15.0


def print_bill(console: Console, state: State, bill: Bill, path: Path) -> None:
    """Arms x trials x seeds, tokens, parameters, FLOPs, disk and time, before anything runs."""
    table = Table(title=f"plan of {path.name}: {bill.runs} runs, {len(state.records)} done")
    table.add_column("arm", no_wrap=True)
    headings = ("LRs", "search", "report", "trainable", "tokens", "FLOPs", "disk")
    for heading in headings:
        table.add_column(heading, justify="right")
    for arm in bill.arms:
        table.add_row(
            arm.arm,
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
    table = Table(title=f"{path.name}: {len(state.records)} of {len(state.plan.runs)} runs done")
    statuses = sorted({record.status for record in state.records.values()})
    for heading in ("arm", "phase", "planned", *statuses, "given up", "open"):
        table.add_column(heading, justify="left" if heading in ("arm", "phase") else "right")
    for arm in state.plan.arms:
        for phase in ("search", "report"):
            cells = {run.run_id for run in state.plan.cells(arm, phase)}
            if not cells:
                continue
            done = Counter(r.status for k, r in state.records.items() if k in cells)
            lost = len(cells & state.given_up)
            left = len(cells) - sum(done.values()) - lost
            counts = [str(done[status]) for status in statuses]
            table.add_row(arm, phase, str(len(cells)), *counts, str(lost), str(left))
    console.print(table)
    if state.plan.experiment.kind == "single":
        for record in state.records.values():
            console.print(result_line(record), soft_wrap=True)
    for run in state.plan.runs:
        if run.run_id in state.given_up:
            console.print(f"given up: {path / run.arm / run.run_id} (see attempts.jsonl)")
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


def duration(seconds: float) -> str:
    """Seconds as ``1 h 03 min``, ``4 min 10 s`` or ``12 s``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


class ProgressView:
    """Draws a sweep from its store until told to stop; plain lines where there is no terminal."""

    def __init__(
        self, console: Console, store: ExperimentStore, wanted: Collection[str] | None = None
    ) -> None:
        self.console, self.store = console, store
        self.started = time.monotonic()
        self.wanted = wanted
        self.done_before = len(self._state().records)
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
            with Live(self.table(), console=self.console, refresh_per_second=4) as live:
                while not self._stop.wait(LIVE_EVERY_S):
                    live.update(self.table())
                live.update(self.table())
        else:
            while not self._stop.wait(PLAIN_EVERY_S):
                self.console.print(self.line(), soft_wrap=True)

    def _state(self) -> State:
        return read_state(self.store).only(self.wanted)

    def line(self) -> str:
        """The sweep in one line."""
        state = self._state()
        running = "; ".join(describe_badge(b) for b in badges(self.store) if b["runs"])
        text = f"{len(state.records)}/{len(state.plan.runs)} runs, {self._time_left(state)}"
        return f"{text}; {running}" if running else text

    def table(self) -> Group:
        """The sweep as a table, a row per arm, and below it what is running."""
        state = self._state()
        table = Table(title=f"{state.plan.experiment.name}: {self._time_left(state)}")
        for heading in ("arm", "done", "best so far", "statuses"):
            table.add_column(heading)
        for arm in state.plan.arms:
            table.add_row(arm, *_arm_cells(state, arm))
        return Group(table, *(describe_badge(b) for b in badges(self.store) if b["runs"]))

    def _time_left(self, state: State) -> str:
        fresh = len(state.records) - self.done_before
        later = _report_runs_to_come(state)
        open_runs = len(state.open_runs) + later
        if not fresh:
            return f"{open_runs} runs left"
        left = (time.monotonic() - self.started) / fresh * open_runs
        return f"{open_runs} runs left, about {duration(left)}"


def _report_runs_to_come(state: State) -> int:
    """Report runs that will join the plan once their arm has chosen its learning rate."""
    if state.plan.experiment.kind != "experiment":
        return 0
    waiting = [arm for arm in state.plan.arms if not state.plan.cells(arm, "report")]
    return len(waiting) * len(state.plan.experiment.seeds.report)


def _arm_cells(state: State, arm: str) -> tuple[str, str, str]:
    planned = [run for run in state.plan.runs if run.arm == arm]
    records = [state.records[r.run_id] for r in planned if r.run_id in state.records]
    scores: dict[float, list[float]] = {}
    for record in records:
        if record.phase == "search" and record.score_final is not None:
            scores.setdefault(record.learning_rate, []).append(record.score_final)
    means = {rate: sum(values) / len(values) for rate, values in scores.items()}
    best = "-"
    if means:
        rate = max(means, key=lambda r: means[r])
        best = f"{means[rate]:.3f} at {rate:g} (n={len(scores[rate])})"
    counts = Counter(record.status for record in records)
    return f"{len(records)}/{len(planned)}", best, ", ".join(f"{v} {k}" for k, v in counts.items())
