"""What a worker does to runs: claims them, opens attempts, publishes results, notes failures."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from study.config import BudgetConfig
from study.plan.experiment import Plan, PlannedRun
from study.plan.limits import Limits
from study.plan.packs import Packer
from study.records.files import read_text
from study.records.provenance import provenance
from study.records.record import Record
from study.records.store import ExperimentStore
from study.sweep.claims.claims import Claim, Claims
from study.sweep.schedule import Board
from study.sweep.work.badge import badges
from study.sweep.work.lane import Lane, assign

START_TOGETHER_S = 30.0
"""Workers of one launch arrive within this time; the first leaves the others their share."""


@dataclass(kw_only=True)
class Holder:
    """One worker's hand in the experiment's store and claims."""

    store: ExperimentStore
    claims: Claims
    wanted: Collection[str] | None = None
    """The only runs that concern the worker; None: all."""
    workers: int = 1
    """Workers that were started together."""
    pack_size: int | None = None
    """``engine.pack_size``."""
    budget: BudgetConfig = field(default_factory=BudgetConfig)
    """What the experiment may spend."""
    started: float = field(default_factory=time.monotonic)
    out_of_budget: bool = False
    """Whether there was a free run that the budget kept from beginning."""

    def __post_init__(self) -> None:
        self.limits = Limits(self.budget)
        self.board = Board(self.store, self.claims, self.wanted, self.limits)
        self.origin = provenance()

    @property
    def plan(self) -> Plan:
        """The plan as far as it is known."""
        return self.board.plan

    def claim(self, inside: Collection[Lane], key: str | None = None) -> list[Claim]:
        """Claim runs that may join the pack ``inside``, up to this worker's fair share.

        Args:
            inside: Lanes of the pack.
            key: The pack's key if it is under way.
        """
        self.board.refresh()
        claimed = self._take(inside, key)
        further = self.plan.experiment.best is not None and not self.out_of_budget
        if not claimed and further:
            self.board.grow(self._packer(key).places([lane.run for lane in inside]))
            claimed = self._take(inside, key)
        return claimed

    def _take(self, inside: Collection[Lane], key: str | None) -> list[Claim]:
        members, board = [lane.run for lane in inside], self.board
        fair = math.ceil(board.open_count / self._sharers()) - len(members)

        def pick(unheld: Iterable[PlannedRun]) -> list[PlannedRun]:
            chosen = self._packer(key).joining(unheld, members, fair, board.is_open)
            return self._affordable(chosen)

        return self.claims.take(self.plan.arms, board.open_runs, pick)

    def _affordable(self, chosen: list[PlannedRun]) -> list[PlannedRun]:
        if self.budget == BudgetConfig():
            return chosen
        # Claims before records: a run that ends in between counts once, as under way.
        held = self.claims.held(self.plan)
        self.board.take_stock(held)
        under_way = self.board.still_open(held)
        elapsed_s = time.monotonic() - self.started
        begun = self.limits.affordable(chosen, under_way, self.plan.arms, elapsed_s)
        self.out_of_budget = len(begun) < len(chosen) or self.limits.time_is_up(elapsed_s)
        return begun

    def _packer(self, key: str | None) -> Packer:
        return Packer(arms=self.plan.arms, asked=self.pack_size, alone=self.board.alone, key=key)

    def _sharers(self) -> int:
        """Workers that the open runs are for, those included that are about to start."""
        starting = time.monotonic() - self.started < START_TOGETHER_S
        return max(1, len(badges(self.store)), self.workers if starting else 1)

    def admit(self, claim: Claim) -> Lane | None:
        """Open an attempt at a claimed run; None if a result of it is there already."""
        arm, run_id = claim.run.arm, claim.run.run_id
        finished = self.store.finished_attempt(arm, run_id)  # its worker died before it published
        if finished is not None or self.store.record(arm, run_id) is not None:
            self.publish(claim, finished)
            return None
        directory = self.store.new_attempt(arm, run_id)
        return Lane(claim=claim, assignment=assign(self.plan, claim.run, directory))

    def publish(self, claim: Claim, directory: Path | None) -> None:
        """Make an attempt's result the run's record, and tell the score if it is.

        Args:
            claim: The claim on the run.
            directory: The attempt; None: others have published the run, and tell it themselves.
        """
        # No text: whoever took the run over has published this very attempt.
        text = None if directory is None else read_text(directory / "result.json")
        first = False
        if directory is not None and text is not None:
            first = self.store.publish(Record(**json.loads(text)), directory)
        published = self.store.record(claim.run.arm, claim.run.run_id)
        assert published is not None
        self.claims.finish(claim, published, first=first)
        self.board.ended(claim.run, published)

    def leave(self, claim: Claim) -> None:
        """Give a run back because the worker leaves; one that has its record is told."""
        record = self.store.record(claim.run.arm, claim.run.run_id)
        if record is None:
            self.claims.give_back(claim, "interrupted")
        else:  # the interrupt came between record and tell
            self.claims.finish(claim, record, first=False)

    def note(
        self, lane: Lane, status: str, reason: str, *, spent: bool = True, pack: int = 1
    ) -> None:
        """Note an attempt without a result and give the run back.

        Args:
            lane: The run.
            status: Status of the attempt.
            reason: Why it failed, in a sentence.
            spent: Whether it counts against the run's retries.
            pack: Runs that failed together, for a reason that may be any one's.
        """
        run, number = lane.run, int(lane.directory.name)
        self.store.append_attempt(run.arm, run.run_id, number, status, reason, spent, pack)
        self.claims.give_back(lane.claim, status, reason, spent=spent)
