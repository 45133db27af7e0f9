"""What a sweep may spend, and which run is the first one too many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from study.config import BudgetConfig
from study.plan.arms import Arm
from study.plan.budget import run_flops
from study.plan.experiment import PlannedRun
from study.records.record import Record


class Limits:
    """A budget and what of it is spent; every question costs the same however long the sweep is.

    Runs are begun in the order of the plan: where one does not fit, none after it is begun, even
    if it is cheaper, or a sweep would end with more seeds for its cheap arms.
    """

    def __init__(self, budget: BudgetConfig) -> None:
        self._budget = budget
        self._flops_of: dict[str, float] = {}
        self._results = 0
        self._flops = 0.0

    def add(self, record: Record) -> None:
        """Count a published result; call once for each."""
        self._results += 1
        self._flops += record.train_flops + record.rollout_flops

    def affordable(
        self,
        chosen: Sequence[PlannedRun],
        under_way: Iterable[PlannedRun],
        arms: Mapping[str, Arm],
        elapsed_s: float,
    ) -> list[PlannedRun]:
        """Those of ``chosen`` that may begin: all before the first that does not fit.

        Args:
            chosen: Runs that a worker would begin, in the order of the plan.
            under_way: Runs of all workers that have begun and have no result yet.
            arms: Arms of the plan.
            elapsed_s: How long the worker has lived.
        """
        begun = list(under_way)
        fitting: list[PlannedRun] = []
        for run in chosen:
            if self._exceeded(run, [*begun, *fitting], arms, elapsed_s):
                break
            fitting.append(run)
        return fitting

    def time_is_up(self, elapsed_s: float) -> bool:
        """Whether a worker that has lived so long begins no run any more."""
        return self._budget.hours is not None and elapsed_s >= self._budget.hours * 3600

    def ended_by(self, next_run: PlannedRun, arms: Mapping[str, Arm], elapsed_s: float) -> str:
        """The limit that keeps ``next_run`` from beginning while nothing is under way.

        Returns:
            As in ``budget.runs=20``; empty if it may begin.
        """
        key = self._exceeded(next_run, [], arms, elapsed_s)
        return f"budget.{key}={getattr(self._budget, key):g}" if key else ""

    def _exceeded(
        self,
        run: PlannedRun,
        begun: Sequence[PlannedRun],
        arms: Mapping[str, Arm],
        elapsed_s: float,
    ) -> str:
        limits = self._budget
        if self.time_is_up(elapsed_s):
            return "hours"
        if limits.runs is not None and self._results + len(begun) + 1 > limits.runs:
            return "runs"
        if limits.flops is not None:
            committed = sum(self._estimate(r, arms) for r in (*begun, run))
            if self._flops + committed > limits.flops:
                return "flops"
        return ""

    def _estimate(self, run: PlannedRun, arms: Mapping[str, Arm]) -> float:
        if run.arm not in self._flops_of:
            self._flops_of[run.arm] = run_flops(arms[run.arm])
        return self._flops_of[run.arm]


def ended_sentence(limit: str, open_runs: int) -> str:
    """What a person reads where a budget ended the sweep."""
    runs = f"{open_runs} planned run{'s are' if open_runs > 1 else ' is'}"
    key = limit.partition("=")[0]
    again = "the same command goes on"
    if key != "budget.hours":
        again = f"the same command with a larger {key}, or none, goes on"
    return f"{limit} ended the sweep: {runs} open; {again}"
