"""The bill of a plan, before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from study.plan import best, refine
from study.plan.ablate import runs_in_all
from study.plan.arms import Arm
from study.plan.experiment import Plan
from study.plan.flops import forward_flops_per_token, train_flops_per_token
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
    train_tokens, sampled_tokens = _tokens(arm)
    forward = forward_flops_per_token(arm.model)
    train = train_flops_per_token(arm.config.method, arm.target_modules, arm.model)
    kept = 0 if arm.config.save == "none" else arm.trainable_params * BYTES_PER_PARAM
    return ArmBill(
        arm=name,
        learning_rates=len(arm.learning_rates),
        search_runs=search,
        report_runs=report,
        trainable_params=arm.trainable_params,
        tokens=runs * (train_tokens + sampled_tokens),
        flops=runs * (train_tokens * (train + forward) + sampled_tokens * forward),
        disk_bytes=float(runs * (kept + BYTES_PER_RUN)),
        seconds=None if seconds is None else runs * seconds,
    )


def run_flops(arm: Arm) -> float:
    """FLOPs of one run's training and rollouts at most (completions counted at full length)."""
    tokens, _ = _tokens(arm)
    forward = forward_flops_per_token(arm.model)
    train = train_flops_per_token(arm.config.method, arm.target_modules, arm.model)
    return tokens * (train + forward / arm.config.objective.num_iterations)


def _tokens(arm: Arm) -> tuple[float, float]:
    """Tokens of one run: trained on (and sampled for it), and sampled in evaluation."""
    config = arm.config
    length = arm.model.max_prompt_tokens + config.task.max_completion_length
    trained = config.objective.steps * config.objective.completions_per_step * length
    evaluations = len(config.evaluation.steps(config.objective.steps))
    return float(trained), float(evaluations * config.evaluation.eval_prompts * 2 * length)
