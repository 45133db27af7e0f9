"""One pack, from its first run to its last, seen from the worker's side of the pipe.

A result is published the moment its run ends, while the pack goes on. If the child dies, stalls or
raises with several runs unfinished, nobody knows whose fault it was: none is charged, and each is
tried again alone, where a failure counts. A run that another worker took over (its lease had run
out: this machine slept) trains on, and whoever ends first publishes; the child is ended once
nothing that it trains is held any more.
"""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from study.plan.packs import pack_key
from study.sweep.claims.claims import Claim
from study.sweep.errors import DiskFullError
from study.sweep.modes import culling
from study.sweep.modes.pruning import RatePruner
from study.sweep.work.badge import Badge
from study.sweep.work.child import DISK_FULL
from study.sweep.work.holder import Holder
from study.sweep.work.lane import Lane
from study.sweep.work.messages import (
    AsksToStop,
    Ended,
    Failed,
    Message,
    News,
    PackAssignment,
    WantsRuns,
)
from study.sweep.work.process import Nursery, exit_reason, noted_error

POLL_S = 0.5
TAKEN_OVER = "another worker took the run over"


class Pack:
    """The runs that one child trains."""

    def __init__(self, holder: Holder, badge: Badge) -> None:
        self.holder, self.badge = holder, badge
        self.lanes: dict[str, Lane] = {}
        """Unfinished runs by id."""
        self._key = ""

    def open(self) -> bool:
        """Claim the first runs; False if there was nothing to claim."""
        claims = self.holder.claim([])
        self._admit(claims)
        return bool(claims)

    def _admit(self, claims: list[Claim]) -> list[Lane]:
        """Lanes for claimed runs, those left out that have a result already."""
        admitted: list[Lane] = []
        for claim in claims:
            lane = self.holder.admit(claim)
            if lane is not None:
                self.lanes[lane.run.run_id] = lane
                admitted.append(lane)
        return admitted

    def train(self, nursery: Nursery, engine_module: str, stall_timeout_s: float) -> None:
        """Have a child train the pack and what refills it; returns when the child has ended."""
        plan = self.holder.plan
        self._key = pack_key(plan.arms[next(iter(self.lanes.values())).run.arm])
        assignment = PackAssignment(
            runs=[lane.assignment for lane in self.lanes.values()],
            engine_module=engine_module,
            stops_early=plan.experiment.early_stopping is not None,
            origin=self.holder.origin,
        )
        with nursery.child(assignment) as (child, line):
            ended = self._follow(child, line, stall_timeout_s)
        if child.exitcode == DISK_FULL:
            raise DiskFullError(self.holder.store.path)
        self._close(*(ended or exit_reason(child.exitcode)))

    def take_back(self) -> None:
        """The worker leaves: complete attempts are kept, the others leave no trace."""
        for lane in self.lanes.values():
            if not lane.has_result:
                shutil.rmtree(lane.directory, ignore_errors=True)
        for lane in self.lanes.values():
            with suppress(OSError):  # a full disk: the claim ends with this process
                self.holder.leave(lane.claim)

    def _follow(
        self, child: BaseProcess, line: Connection, stall_timeout_s: float
    ) -> tuple[str, str] | None:
        """Follow the child to its end; status and reason if this worker ended it."""
        alive_at = time.monotonic()
        while True:
            if line.poll(POLL_S):
                try:
                    message: Message = line.recv()
                except (EOFError, OSError):
                    child.join()
                    return None
                self._handle(message, line)
                alive_at = time.monotonic()
            elif time.monotonic() - alive_at > stall_timeout_s:
                _end(child)
                return "stalled", f"no progress for {stall_timeout_s:g} s"
            self.badge.show(self.lanes.values())
            # Every claim is renewed, whichever of them was lost.
            held = [self.holder.claims.renew(lane.claim) for lane in self.lanes.values()]
            if held and not any(held):
                _end(child)
                return "killed", TAKEN_OVER

    def _handle(self, message: Message, line: Connection) -> None:
        match message:
            case News():
                self._take_in(message)
            case Ended(run_id=run_id):
                self.holder.publish(self.lanes[run_id].claim, self.lanes[run_id].directory)
                del self.lanes[run_id]
            case Failed(run_id=run_id):
                self._note_failed(self.lanes.pop(run_id))
            case WantsRuns():
                _answer(line, [lane.assignment for lane in self._refill()])
            case AsksToStop(run_id=run_id):
                _answer(line, self._stops_early(self.lanes[run_id]))

    def _take_in(self, news: News) -> None:
        for progress in news.progress:
            lane = self.lanes[progress.run_id]
            lane.advance(progress)
            if progress.accuracy is not None:
                self.holder.claims.report(lane.claim, progress.step, progress.accuracy)

    def _stops_early(self, lane: Lane) -> str | None:
        plan = self.holder.plan
        settings = plan.experiment.early_stopping
        assert settings is not None, "a child asks only where early stopping is on"
        if plan.experiment.best is not None:
            records = self.holder.board.records.items()
            stopped = {run_id for run_id, record in records if record.status == "pruned"}
            return culling.reason(plan, lane.run, self.holder.claims.curves(plan), stopped)
        pruner = RatePruner(settings, plan.arms[lane.run.arm].learning_rates)
        return self.holder.claims.stops_early(lane.claim, pruner)

    def _refill(self) -> list[Lane]:
        """As many runs as fit, claimed and with an attempt of their own each."""
        while claims := self.holder.claim(self.lanes.values(), self._key):
            if admitted := self._admit(claims):
                return admitted
        return []

    def _note_failed(self, lane: Lane) -> None:
        error = noted_error(lane.directory)
        assert error is not None, "a child says that a run failed after it wrote why"
        self.holder.note(lane, *error)

    def _close(self, status: str, reason: str) -> None:
        """The child is gone: publish what it did not get to announce, note the rest."""
        for lane in list(self.lanes.values()):
            if lane.has_result:
                self.holder.publish(lane.claim, lane.directory)
                del self.lanes[lane.run.run_id]
        together = len(self.lanes)
        for lane in self.lanes.values():
            lane_status, why = noted_error(lane.directory) or (status, reason)
            if why == TAKEN_OVER:
                self.holder.note(lane, lane_status, why, spent=False)
            elif together > 1:
                why = f"{why} (in a pack of {together})"
                self.holder.note(lane, lane_status, why, spent=False, pack=together)
            else:
                self.holder.note(lane, lane_status, why)


def _end(child: BaseProcess) -> None:
    child.kill()
    child.join()


def _answer(line: Connection, answer: Any) -> None:
    with suppress(OSError):  # it died while we thought: the end of the pipe is read next
        line.send(answer)
