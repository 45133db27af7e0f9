"""The parent of a sweep: plan, bill, launch workers, watch, summarise."""

from __future__ import annotations

import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from study.config import BudgetConfig, StudyConfig
from study.plan.budget import bill, mean_seconds
from study.plan.experiment import Plan, from_json, to_json
from study.plan.growth import merge
from study.plan.limits import Limits, ended_sentence
from study.plan.packs import EngineChoice, settle_engine
from study.plan.probing import probes_line
from study.plan.select import Selection
from study.records.store import ExperimentStore
from study.sweep.claims.claims import Claims
from study.sweep.claims.storage import Storage
from study.sweep.errors import StorageAwayError
from study.sweep.launch.assemble import Assembled, assemble, assemble_single
from study.sweep.launch.mirror import mirroring
from study.sweep.schedule import Board, State, published, read_state, write_plan
from study.sweep.view.allowance import print_budget
from study.sweep.view.path_table import print_path
from study.sweep.view.progress import ProgressView, print_bill, print_engine, print_summary
from study.sweep.view.winner import announce
from study.sweep.view.wording import plain
from study.sweep.work.devices import settle
from study.sweep.work.worker import Worker

Launch = Callable[[list[list[str]]], list[str]]
"""Starts one worker process for each list of overrides, waits, and says which failed and how."""


def sweep(arguments: Sequence[str], launch: Launch) -> int:
    """Carry out ``python -m study -m ARGUMENTS``.

    Returns:
        Number of planned runs without a record: given up, or left open by workers that died. Runs
        that a budget left open were asked for and do not count.

    Raises:
        ValueError: one sentence for anything wrong with the command line; nothing has run then.
    """
    console = Console()
    assembled = assemble(arguments)
    claims = prepare(assembled, console)
    if claims is None:
        return 0
    path = str(assembled.path).replace("\\", "\\\\").replace("'", "\\'")
    worker = [*assembled.fixed, f"worker_of='{path}'"]
    return _watch(
        console, claims, assembled.config, None, lambda: launch([worker] * assembled.config.workers)
    )


def run_single(config: StudyConfig) -> int:
    """Carry out ``python -m study ...``: a plan of one, drained by a worker in this process."""
    console = Console()
    assembled = assemble_single(config)
    claims = prepare(assembled, console)
    if claims is None:
        return 0
    wanted = assembled.run_ids

    def work() -> list[str]:
        serve(assembled.path, replace(config, workers=1), wanted)
        return []

    return _watch(console, claims, config, wanted, work)


def serve(path: Path, settings: StudyConfig, wanted: Collection[str] | None = None) -> None:
    """Be one of the workers of the experiment at ``path``; SIGTERM ends it as Ctrl-C does."""
    settle(os.environ, settings.workers)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _interrupt)
    Worker(
        ExperimentStore(path),
        settings.stall_timeout_s,
        wanted,
        storage=settings.storage,
        workers=settings.workers,
        pack_size=settings.engine.pack_size,
        budget=settings.budget,
    ).work()


def _interrupt(signum: int, frame: object) -> None:
    raise KeyboardInterrupt


def prepare(assembled: Assembled, console: Console) -> Claims | None:
    """Merge the plan with what is on disk, print the bill, write the plan unless it is a dry run.

    Returns:
        The experiment's claims; None after a dry run.

    Raises:
        ValueError: if the experiment on disk has another meaning.
    """
    store, settings = ExperimentStore(assembled.path), assembled.config
    claims = None
    if settings.dry_run:
        plan, engine = _merged(store, assembled)
        state = State(plan=plan, records=published(store, plan.runs))
    else:
        storage = Storage(store, settings.storage)
        claims = Claims(store, storage, assembled.plan.experiment.name)
        with store.lock():
            plan, engine = _merged(store, assembled)
            if plan.storage is not None:
                _take_name(store, claims, plan)
            write_plan(store, claims, plan)
        state = _opened(store, claims, retry=settings.retry)
    if assembled.plan.experiment.kind == "single":
        state = state.only(assembled.run_ids)
    measured = mean_seconds(state.records)
    costs = bill(state.plan, settings.workers, settings.price_per_hour, measured)
    print_bill(console, state, costs, store.path)
    print_engine(console, state.plan, engine, settings.engine.pack_size)
    print_budget(console, settings.budget, state.records)
    if line := probes_line([*state.plan.arms.values()]):
        console.print(plain(line), soft_wrap=True)
    if settings.dry_run:
        console.print("dry run: nothing was started")
    return claims


def _take_name(store: ExperimentStore, claims: Claims, plan: Plan) -> None:
    """Make the experiment's name in a database this plan's own.

    The plan is written first: a launch that dies in between has the same id when it comes again.
    """
    new = store.read_plan() is None
    store.write_plan(to_json(plan))
    try:
        claims.studies.adopt(plan, store.path)
    except ValueError:
        if new:
            store.plan_path.unlink()
        raise


def _opened(store: ExperimentStore, claims: Claims, *, retry: bool) -> State:
    """The sweep at its launch: runs reopened, storage in line with the records, plan grown."""
    state = read_state(store)
    if retry:
        for run_id in state.given_up:
            run = state.plan.run(run_id)
            store.reopen(run.arm, run_id)
            claims.reopen(run, state.plan.arms[run.arm])
    claims.settle(state.plan, state.records)
    Board(store, claims).refresh()
    return read_state(store)


def _merged(store: ExperimentStore, assembled: Assembled) -> tuple[Plan, EngineChoice]:
    data = store.read_plan()
    if data is None:
        return replace(assembled.plan, id=secrets.token_hex(8)), assembled.engine
    old = from_json(data)
    plan, engine = settle_engine(old, assembled.plan, assembled.engine)
    return merge(old, plan), engine


def _watch(
    console: Console,
    claims: Claims,
    settings: StudyConfig,
    wanted: Collection[str] | None,
    work: Callable[[], list[str]],
) -> int:
    store = claims.store
    interrupted, died, began = False, [], time.monotonic()
    try:
        with mirroring(store, settings.tracker), ProgressView(console, store, wanted):
            died = work()
    except KeyboardInterrupt:
        interrupted = True
    state = read_state(store).only(wanted)
    _end_claims_of_the_dead(claims, state.plan)
    print_summary(console, state, store.path)
    selections = {arm: Selection(**data) for arm, data in store.read_selections().items()}
    print_path(console, state.plan, state.records, selections)
    if interrupted:
        console.print("interrupted; the same command resumes")
        raise SystemExit(130)
    announce(console, state, store)
    for death in died:
        console.print(f"warning: {death}")
    left = len(state.open_runs)
    limit = "" if died else _budget_ended(state, settings.budget, time.monotonic() - began)
    if limit:
        console.print(ended_sentence(limit, left), soft_wrap=True)
    elif left:
        console.print(f"{left} runs are left; the same command resumes")
    console.print(f"report: python -m analysis report {_shown(store.path)}", soft_wrap=True)
    return len(state.given_up) + (0 if limit else left)


def _end_claims_of_the_dead(claims: Claims, plan: Plan) -> None:
    """What dead workers left running in the storage ends; the next launch does it as well, so a
    database that is away is not waited for.
    """
    claims.storage.patience_s = 0.0
    with suppress(StorageAwayError):
        claims.held(plan)


def _budget_ended(state: State, budget: BudgetConfig, elapsed_s: float) -> str:
    """The limit that ended the sweep, as in ``budget.runs=20``; empty if none did."""
    if not state.open_runs:
        return ""
    limits = Limits(budget)
    for record in state.records.values():
        limits.add(record)
    return limits.ended_by(state.open_runs[0], state.plan.arms, elapsed_s)


def _shown(path: Path) -> str:
    """The path as a person would type it from here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
