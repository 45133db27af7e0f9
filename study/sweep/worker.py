"""A worker: drains a plan pack by pack, and leaves when none of its runs is open."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from study.plan.experiment import Plan
from study.records.store import ExperimentStore
from study.sweep.badge import Badge
from study.sweep.child import ENGINES
from study.sweep.claims import LEASE_GRACE_S, Claims
from study.sweep.holder import Holder
from study.sweep.pack import Pack
from study.sweep.process import Nursery
from study.sweep.schedule import State

POLL_S = 0.5


class Worker:
    """One claimant of an experiment's runs."""

    def __init__(
        self,
        store: ExperimentStore,
        stall_timeout_s: float,
        wanted: Collection[str] | None = None,
        engines: Mapping[str, str] = ENGINES,
        *,
        workers: int = 1,
        pack_size: int | None = None,
    ) -> None:
        """Builds the worker.

        Args:
            store: The experiment.
            stall_timeout_s: Seconds without a sign of life after which a child is killed.
            wanted: The only runs that concern this worker; None: all.
            engines: Engine name -> module with its ``train``.
            workers: Workers that were started together.
            pack_size: ``engine.pack_size``.
        """
        self.stall_timeout_s = stall_timeout_s
        self.engines = engines
        self.nursery = Nursery()
        self.badge = Badge(store)
        self.holder = Holder(
            store=store,
            claims=Claims(store, lease_s=stall_timeout_s + LEASE_GRACE_S),
            wanted=wanted,
            workers=workers,
            pack_size=pack_size,
        )

    def work(self) -> None:
        """Drain the plan, or the wanted part of it; returns when none of its runs is open."""
        try:
            self.badge.show([])
            while (state := self.holder.state()).open_runs:
                if not self._carry_out(state):
                    self.badge.show([])
                    time.sleep(POLL_S)  # others hold what is left, and may leave it
        finally:
            self.badge.remove()

    def _carry_out(self, state: State) -> bool:
        """Train one pack from its first run to its last; False if there was nothing to claim."""
        pack = Pack(self.holder, self.badge)
        try:
            claimed = pack.open(state)
            if pack.lanes:
                engine = self._engine(state.plan, pack)
                pack.train(state.plan, self.nursery, engine, self.stall_timeout_s)
        except KeyboardInterrupt:
            pack.take_back()
            raise
        return claimed

    def _engine(self, plan: Plan, pack: Pack) -> str:
        """The module that trains a pack, whose runs share their engine."""
        first = next(iter(pack.lanes.values()))
        return self.engines[plan.arms[first.run.arm].config.engine.name]
