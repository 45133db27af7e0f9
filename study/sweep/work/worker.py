"""A worker: drains a plan pack by pack, and leaves when none of its runs is open."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from study.config import BudgetConfig
from study.records.files import is_disk_full
from study.records.store import ExperimentStore
from study.sweep.claims.claims import Claims
from study.sweep.claims.storage import opened_patiently
from study.sweep.errors import DiskFullError
from study.sweep.schedule import read_plan
from study.sweep.work.badge import Badge
from study.sweep.work.child import ENGINES
from study.sweep.work.holder import Holder
from study.sweep.work.pack import Pack
from study.sweep.work.process import Nursery

POLL_S = 0.2
MOST_IDLE_S = 2.0
"""A worker that finds nothing to do looks again after 0.2 s, then ever less often."""


class Worker:
    """One claimant of an experiment's runs."""

    def __init__(
        self,
        store: ExperimentStore,
        stall_timeout_s: float,
        wanted: Collection[str] | None = None,
        engines: Mapping[str, str] = ENGINES,
        *,
        storage: str | None = None,
        workers: int = 1,
        pack_size: int | None = None,
        budget: BudgetConfig | None = None,
    ) -> None:
        """Builds the worker.

        Args:
            store: The experiment.
            stall_timeout_s: Seconds without a sign of life after which a child is killed.
            wanted: The only runs that concern this worker; None: all.
            engines: Engine name -> module with its ``train``.
            storage: URL of the Optuna storage; None: a journal beside the plan.
            workers: Workers that were started together.
            pack_size: ``engine.pack_size``.
            budget: What the experiment may spend; None: no limit.

        Raises:
            StorageAwayError: if the storage's server stayed away.
        """
        self.stall_timeout_s = stall_timeout_s
        self.engines = engines
        self.nursery = Nursery()
        self.badge = Badge(store)
        self.holder = Holder(
            store=store,
            claims=Claims(
                store, opened_patiently(store, storage), read_plan(store).experiment.name
            ),
            wanted=wanted,
            workers=workers,
            pack_size=pack_size,
            budget=budget or BudgetConfig(),
        )

    def work(self) -> None:
        """Drain the plan, or the wanted part of it.

        Returns when none of its runs is open, or when the budget lets no free one begin.

        Raises:
            DiskFullError: if there is no room left; the runs under way are given back.
            StorageAwayError: if the storage stayed away.
        """
        try:
            self._drain()
        except OSError as error:
            if not is_disk_full(error):
                raise
            raise DiskFullError(self.holder.store.path) from error
        finally:
            self.badge.remove()

    def _drain(self) -> None:
        board, idle_s = self.holder.board, POLL_S
        self.badge.show([])
        board.refresh()
        while board.open_count:
            if self._carry_out():
                idle_s = POLL_S
            elif self.holder.out_of_budget:
                return
            else:  # others hold what is left, and may leave it
                self.badge.show([])
                time.sleep(idle_s)
                idle_s = min(MOST_IDLE_S, 1.5 * idle_s)
            board.refresh()

    def _carry_out(self) -> bool:
        """Train one pack from its first run to its last; False if there was nothing to claim."""
        pack = Pack(self.holder, self.badge)
        try:
            claimed = pack.open()
            if pack.lanes:
                pack.train(self.nursery, self._engine(pack), self.stall_timeout_s)
        except (KeyboardInterrupt, DiskFullError):
            pack.take_back()
            raise
        except OSError as error:
            if is_disk_full(error):
                pack.take_back()
            raise
        return claimed

    def _engine(self, pack: Pack) -> str:
        """The module that trains a pack, whose runs share their engine."""
        first = next(iter(pack.lanes.values()))
        return self.engines[self.holder.plan.arms[first.run.arm].config.engine.name]
