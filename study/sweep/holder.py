"""What a worker does to runs: claims them, opens attempts, publishes results, notes failures."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from study.plan.experiment import Plan
from study.plan.packs import Packer
from study.records.record import Record
from study.records.store import ExperimentStore
from study.sweep.badge import badges
from study.sweep.claims import Claim, Claims
from study.sweep.lane import Lane, assign
from study.sweep.schedule import State, refresh

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
    started: float = field(default_factory=time.monotonic)

    def state(self) -> State:
        """The sweep as it is now, every open run up for claim."""
        return refresh(self.store, self.claims).only(self.wanted)

    def claim(self, state: State, inside: Collection[Lane], packer: Packer) -> list[Claim]:
        """Claim runs that may join the pack ``inside``, up to this worker's fair share."""
        members = [lane.run for lane in inside]
        fair = math.ceil(len(state.open_runs) / self._sharers()) - len(members)
        return self.claims.take(
            state.open_runs, lambda waiting: packer.joining(waiting, members, fair)
        )

    def packer(self, state: State, key: str | None = None) -> Packer:
        """Chooses who joins a pack; ``key``: that of a pack that is under way."""
        return Packer(
            arms=state.plan.arms, asked=self.pack_size, alone=frozenset(state.alone), key=key
        )

    def _sharers(self) -> int:
        """Workers that the open runs are for, those included that are about to start."""
        starting = time.monotonic() - self.started < START_TOGETHER_S
        return max(1, len(badges(self.store)), self.workers if starting else 1)

    def admit(self, plan: Plan, claim: Claim) -> Lane | None:
        """Open an attempt at a claimed run; None if a result of it is there already."""
        arm, run_id = claim.run.arm, claim.run.run_id
        finished = self.store.finished_attempt(arm, run_id)  # its worker died before it published
        if finished is not None or self.store.record(arm, run_id) is not None:
            self.publish(claim, finished)
            return None
        directory = self.store.new_attempt(arm, run_id)
        return Lane(claim=claim, assignment=assign(plan, claim.run, directory))

    def publish(self, claim: Claim, directory: Path | None) -> None:
        """Make an attempt's result the run's record, and tell the score of whatever record won."""
        if directory is not None:
            record = Record(**json.loads((directory / "result.json").read_text()))
            self.store.publish(record, directory)
        published = self.store.record(claim.run.arm, claim.run.run_id)
        assert published is not None
        self.claims.finish(claim, published)

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
        self.claims.give_back(lane.claim, status)
