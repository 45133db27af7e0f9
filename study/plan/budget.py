"""The bill of a plan, before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from study.config import GrpoObjective
from study.plan import best, refine
from study.plan.ablate import runs_in_all
from study.plan.arms import Arm
from study.plan.experiment import Plan
from study.plan.flops import Sequences, forward_flops, scoring_passes, train_flops
from study.records.record import Record

BYTES_PER_PARAM = 4
BYTES_PER_RUN = 300_000
"""Metrics, evaluations and completions of a run; measured on the quickstart."""


@dataclass(frozen=True, kw_only=True)
class ArmBill:
    """What one arm costs at most (completions counted at full length)."""

    arm: str
    learning_rates: int
    search_runs: int
    report_runs: int
    trainable_params: int
    tokens: float
    """Prompt and completion tokens over all runs, training and evaluation."""
    flops: float
    disk_bytes: float
    seconds: float | None
    """Time of all its runs on one worker with full packs; None until one of them was measured."""


@dataclass(frozen=True, kw_only=True)
class Bill:
    """The whole plan."""

    arms: list[ArmBill]
    workers: int
    price_per_hour: float | None

    @property
    def runs(self) -> int:
        """Planned runs, the report phase included."""
        return sum(arm.search_runs + arm.report_runs for arm in self.arms)

    @property
    def seconds(self) -> float | None:
        """Wall time with ``workers`` workers; None until every arm was measured."""
        times = [arm.seconds for arm in self.arms]
        if any(t is None for t in times):
            return None
        return sum(t for t in times if t is not None) / self.workers

    @property
    def price(self) -> float | None:
        """Price of the worker hours; None without a price or a measured time."""
        if self.price_per_hour is None or self.seconds is None:
            return None
        return self.price_per_hour * self.seconds * self.workers / 3600


def bill(
    plan: Plan, workers: int, price_per_hour: float | None, measured: Mapping[str, float]
) -> Bill:
    """The bill of ``plan``.

    Args:
        plan: The plan.
        workers: Worker processes that share its runs.
        price_per_hour: Price of one worker for an hour.
        measured: Mean seconds of a run by arm, where known: its own part of a pack's time.
    """
    lines = [
        _arm_bill(arm, arm.name, *_runs(plan, arm.name), measured.get(arm.name))
        for arm in plan.arms.values()
    ]
    if plan.experiment.ablate is not None:
        lines += _later_rounds(plan, lines, measured)
    if plan.experiment.best is not None:
        lines += _later(plan, "later trials, at most", *best.to_come(plan), measured)
    if plan.experiment.best is not None or plan.experiment.refine is not None:
        seeds = len(plan.experiment.seeds.search)
        lines = [replace(line, learning_rates=line.search_runs // seeds) for line in lines]
    return Bill(arms=lines, workers=workers, price_per_hour=price_per_hour)


def mean_seconds(records: Mapping[str, Record]) -> dict[str, float]:
    """Mean wall time of a run in seconds, by arm, over the records at hand."""
    times: dict[str, list[float]] = {}
    for record in records.values():
        times.setdefault(record.arm, []).append(record.wall_time_s)
    return {arm: sum(values) / len(values) for arm, values in times.items()}


def _runs(plan: Plan, arm: str) -> tuple[int, int]:
    """Runs of an arm by the end of the sweep: search, report."""
    search, seeds = len(plan.cells(arm, "search")), plan.experiment.seeds.report
    if plan.experiment.kind != "experiment":
        return search, 0
    if plan.experiment.best is not None:
        return search, len(plan.cells(arm, "report"))
    search += refine.to_come(plan).get(arm, 0) * len(plan.experiment.seeds.search)
    ablate = plan.experiment.ablate
    if ablate is not None and ablate.path and arm not in (ablate.source, ablate.target):
        return search, len(plan.cells(arm, "report"))  # who else reports is not known yet
    return search, len(seeds)


def _later_rounds(plan: Plan, lines: list[ArmBill], measured: Mapping[str, float]) -> list[ArmBill]:
    """What an ablation's path will add."""
    search, report = runs_in_all(plan)
    search -= sum(line.search_runs for line in lines)
    report -= sum(line.report_runs for line in lines)
    return _later(plan, "later rounds, at most", search, report, measured)


def _later(
    plan: Plan, name: str, search: int, report: int, measured: Mapping[str, float]
) -> list[ArmBill]:
    """A line for runs of arms that results will choose, priced by the dearest of them."""
    if search + report <= 0:
        return []
    dearest = max({**plan.arms, **plan.reserve}.values(), key=run_flops)
    times = [measured[name] for name in plan.arms if name in measured]
    seconds = max(times) if len(times) == len(plan.arms) else None
    return [_arm_bill(dearest, name, search, report, seconds)]


def _arm_bill(arm: Arm, name: str, search: int, report: int, seconds: float | None) -> ArmBill:
    runs = search + report
    kept = 0 if arm.config.save == "none" else arm.trainable_params * BYTES_PER_PARAM
    return ArmBill(
        arm=name,
        learning_rates=len(arm.learning_rates),
        search_runs=search,
        report_runs=report,
        trainable_params=arm.trainable_params,
        tokens=float(runs * (_trained(arm) + _evaluated(arm)) * sum(_longest(arm))),
        flops=runs * (run_flops(arm) + evaluation_flops(arm)),
        disk_bytes=float(runs * (kept + BYTES_PER_RUN)),
        seconds=None if seconds is None else runs * seconds,
    )


def run_flops(arm: Arm) -> float:
    """FLOPs of one run's training and rollouts at most (completions counted at full length)."""
    objective, longest = arm.config.objective, _longest(arm)
    trained = Sequences.trained([longest]) * _trained(arm)
    flops = train_flops(arm.config.method, arm.target_modules, arm.model, trained)
    if isinstance(objective, GrpoObjective):
        flops += _rollout_flops(arm, objective)
    return flops


def _rollout_flops(arm: Arm, objective: GrpoObjective) -> float:
    """FLOPs of drawing a run's completions, and of passes that only score them."""
    batches = math.ceil(objective.steps / objective.num_iterations)
    drawn = batches * objective.rows_per_step
    scored = drawn * scoring_passes(objective.beta, objective.num_iterations)
    one_drawn, one_read = Sequences.sampled([_longest(arm)]), Sequences.trained([_longest(arm)])
    return forward_flops(arm.model, one_drawn * drawn + one_read * scored)


def evaluation_flops(arm: Arm) -> float:
    """FLOPs of one run's held-out evaluations at most; no part of ``budget.flops``."""
    return forward_flops(arm.model, Sequences.sampled([_longest(arm)]) * _evaluated(arm))


def _longest(arm: Arm) -> tuple[int, int]:
    """Most tokens of a prompt and of a completion."""
    return arm.model.max_prompt_tokens, arm.config.task.max_completion_length


def _trained(arm: Arm) -> int:
    """Sequences that one run trains on, each time counted."""
    return arm.config.objective.steps * arm.config.objective.rows_per_step


def _evaluated(arm: Arm) -> int:
    """Completions that one run samples for its evaluations, greedy ones included."""
    evaluation = arm.config.evaluation
    return 2 * evaluation.eval_prompts * len(evaluation.steps(arm.config.objective.steps))
