"""The bill of a plan, before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
    arms = [_arm_bill(plan, arm, measured.get(arm.name)) for arm in plan.arms.values()]
    return Bill(arms=arms, workers=workers, price_per_hour=price_per_hour)


def mean_seconds(records: Mapping[str, Record]) -> dict[str, float]:
    """Mean wall time of a run in seconds, by arm, over the records at hand."""
    times: dict[str, list[float]] = {}
    for record in records.values():
        times.setdefault(record.arm, []).append(record.wall_time_s)
    return {arm: sum(values) / len(values) for arm, values in times.items()}


def _arm_bill(plan: Plan, arm: Arm, seconds: float | None) -> ArmBill:
    search = len(plan.cells(arm.name, "search"))
    seeds = plan.experiment.seeds.report if plan.experiment.kind == "experiment" else []
    runs = search + len(seeds)
    train_tokens, sampled_tokens = _tokens(arm)
    forward = forward_flops_per_token(arm.model)
    train = train_flops_per_token(arm.config.method, arm.target_modules, arm.model)
    kept = 0 if arm.config.save == "none" else arm.trainable_params * BYTES_PER_PARAM
    return ArmBill(
        arm=arm.name,
        learning_rates=len(arm.learning_rates),
        search_runs=search,
        report_runs=len(seeds),
        trainable_params=arm.trainable_params,
        tokens=runs * (train_tokens + sampled_tokens),
        flops=runs * (train_tokens * (train + forward) + sampled_tokens * forward),
        disk_bytes=float(runs * (kept + BYTES_PER_RUN)),
        seconds=None if seconds is None else runs * seconds,
    )


def _tokens(arm: Arm) -> tuple[float, float]:
    """Tokens of one run: trained on (and sampled for it), and sampled in evaluation."""
    config = arm.config
    length = arm.model.max_prompt_tokens + config.task.max_completion_length
    trained = config.objective.steps * config.objective.completions_per_step * length
    evaluations = len(config.evaluation.steps(config.objective.steps))
    return float(trained), float(evaluations * config.evaluation.eval_prompts * 2 * length)
