"""A joint search over arms and learning rates: what is tried first, who is scored again, who wins.

What is tried after the first trials is suggested by :mod:`study.sweep.modes.sampling`.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from scipy.stats import t as student_t

from study.config import BestConfig, ExperimentConfig
from study.plan.arms import Arm
from study.plan.experiment import Plan, with_cells
from study.records.record import Record

CONFIDENCE = 0.9
"""Of the interval of the winner's score."""
FIRST_TRIALS = 10
"""Trials that are spread over the space before results suggest others; at least one for each arm,
but never more than half of all."""
GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, modulo 1, fill an interval evenly however many there are."""

Point = tuple[str, float]
"""An arm and a learning rate."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One arm at one learning rate."""

    arm: str
    learning_rate: float
    run_ids: tuple[str, ...]
    """Its search runs, a seed each."""

    @property
    def point(self) -> Point:
        """Where it is."""
        return self.arm, self.learning_rate


def settings(plan: Plan) -> BestConfig:
    """What ``experiment.best`` says."""
    assert plan.experiment.best is not None
    return plan.experiment.best


def combinations(best: BestConfig) -> Iterable[list[str]]:
    """The overrides of each arm: every combination of the choices."""
    keys = best.choices
    for values in itertools.product(*(map(_as_override, keys[key]) for key in keys)):
        yield [f"{key}={value}" for key, value in zip(keys, values, strict=True)]


def _as_override(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def axes(experiment: ExperimentConfig) -> dict[str, dict[str, str]]:
    """The choices of each arm, as written: value by key. Arms of their own are a choice each."""
    assert experiment.best is not None
    if not experiment.best.choices:
        return {name: {"arm": name} for name in experiment.arms}
    pairs = {name: [o.split("=", 1) for o in over] for name, over in experiment.arms.items()}
    return {name: dict(chosen) for name, chosen in pairs.items()}


def arms_of(plan: Plan) -> dict[str, Arm]:
    """Every arm that may be tried, in the order of the choices."""
    known = {**plan.reserve, **plan.arms}
    return {name: known[name] for name in plan.experiment.arms}


def rate_at(arm: Arm, position: float) -> float:
    """The learning rate at a share of the arm's range, on a log scale, to 3 significant digits."""
    low, high = arm.learning_rates[0], arm.learning_rates[-1]
    return float(f"{low * (high / low) ** position:.3g}")


def trials(plan: Plan) -> list[Trial]:
    """What has been asked for so far, in that order."""
    found: dict[Point, list[str]] = {}
    for run in plan.runs:
        if run.phase == "search":
            found.setdefault((run.arm, run.learning_rate), []).append(run.run_id)
    return [
        Trial(arm=arm, learning_rate=rate, run_ids=tuple(ids)) for (arm, rate), ids in found.items()
    ]


def begin(plan: Plan) -> Plan:
    """The plan with its first trials: the arms in turn, learning rates evenly over their range."""
    arms = arms_of(plan)
    names = sorted(arms)
    random.Random(plan.experiment.name).shuffle(names)
    count = min(settings(plan).trials // 2, max(FIRST_TRIALS, len(names)))
    points = [
        (names[i % len(names)], rate_at(arms[names[i % len(names)]], (0.5 + i * GOLDEN) % 1))
        for i in range(len(trials(plan)), count)
    ]
    return with_trials(plan, points)


def with_trials(plan: Plan, points: Sequence[Point]) -> Plan:
    """The plan with further trials; arms without one are called up from the reserve."""
    known = arms_of(plan)
    called = {name: known[name] for name, _ in points}
    plan = dataclasses.replace(
        plan,
        arms={**plan.arms, **called},
        reserve={name: arm for name, arm in plan.reserve.items() if name not in called},
    )
    return with_cells(plan, "search", _rates(points))


def _rates(points: Iterable[Point]) -> dict[str, list[float]]:
    rates: dict[str, list[float]] = {}
    for arm, rate in points:
        rates.setdefault(arm, []).append(rate)
    return rates


def wanted(
    plan: Plan, records: Mapping[str, Record], room: int, given_up: Collection[str] = ()
) -> int:
    """How many trials to ask for where a worker has ``room`` for runs; one if none is open."""
    tried = trials(plan)
    stalled = not any(is_open(trial, records, given_up) for trial in tried)
    fitting = -(-room // len(plan.experiment.seeds.search))
    return min(max(fitting, int(stalled)), settings(plan).trials - len(tried))


def is_open(trial: Trial, records: Mapping[str, Record], given_up: Collection[str] = ()) -> bool:
    """Whether results of the trial are to come."""
    return any(run_id not in records and run_id not in given_up for run_id in trial.run_ids)


def mean_score(trial: Trial, records: Mapping[str, Record]) -> float | None:
    """Mean search score; None unless every seed has one."""
    scores = [records[r].score_final for r in trial.run_ids if r in records]
    known = [score for score in scores if score is not None]
    return statistics.fmean(known) if known and len(known) == len(trial.run_ids) else None


def finalists(
    plan: Plan, records: Mapping[str, Record], given_up: Collection[str] = ()
) -> list[Trial]:
    """The trials of best mean search score (ties: the earlier); none while any result is open."""
    tried = trials(plan)
    if len(tried) < settings(plan).trials or any(is_open(t, records, given_up) for t in tried):
        return []
    means = [(mean, trial) for trial in tried if (mean := mean_score(trial, records)) is not None]
    ranked = sorted(means, key=lambda pair: -pair[0])
    return [trial for _, trial in ranked[: settings(plan).finalists]]


def reporting(plan: Plan, records: Mapping[str, Record], given_up: Collection[str] = ()) -> Plan:
    """The plan with the report runs of the finalists; those of earlier finalists stay."""
    before = [(run.arm, run.learning_rate) for run in plan.runs if run.phase == "report"]
    points = [*before, *(trial.point for trial in finalists(plan, records, given_up))]
    return with_cells(plan, "report", _rates(dict.fromkeys(points)))


def to_come(plan: Plan, records: Collection[str] | None = None) -> tuple[int, int]:
    """Search and report runs that are not planned yet, at most.

    Args:
        plan: The plan.
        records: Ids of runs that have a result; None: of every planned one. While a trial has none,
            every finalist may be one without report runs yet, whatever an earlier launch reported.
    """
    seeds, best = plan.experiment.seeds, settings(plan)
    search = (best.trials - len(trials(plan))) * len(seeds.search)
    done = {run.run_id for run in plan.runs} if records is None else records
    undecided = search or any(r.phase == "search" and r.run_id not in done for r in plan.runs)
    report = 0 if undecided else sum(run.phase == "report" for run in plan.runs)
    return search, max(0, best.finalists * len(seeds.report) - report)


@dataclass(frozen=True, kw_only=True)
class Winner:
    """The setting that a joint search ends with."""

    arm: str
    learning_rate: float
    scores: dict[str, float]
    """Report score by run id."""
    search_score: float | None
    """Mean over the search seeds that chose it: optimistic, being the best of many."""
    trials: int
    finalists: int
    """Settings with report runs: the winner is the best of so many."""

    @property
    def mean(self) -> float:
        """Mean report score."""
        return statistics.fmean(self.scores.values())


def winner(
    plan: Plan, records: Mapping[str, Record], given_up: Collection[str] = ()
) -> Winner | None:
    """The finalist of best mean report score; None while the search or any report run is open."""
    if not finalists(plan, records, given_up):
        return None
    report: dict[Point, list[str]] = {}
    for run in plan.runs:
        if run.phase == "report":
            if run.run_id not in records and run.run_id not in given_up:
                return None
            report.setdefault((run.arm, run.learning_rate), []).append(run.run_id)
    known = {r: record.score_final for r, record in records.items()}
    leading = leader(report, {r: score for r, score in known.items() if score is not None})
    if leading is None:
        return None
    (arm, rate), scores = leading
    tried = trials(plan)
    own = next(trial for trial in tried if trial.point == (arm, rate))
    return Winner(
        arm=arm,
        learning_rate=rate,
        scores=scores,
        search_score=mean_score(own, records),
        trials=len(tried),
        finalists=len(report),
    )


def leader(
    finalists: Mapping[Point, Sequence[str]], scores: Mapping[str, float]
) -> tuple[Point, dict[str, float]] | None:
    """The finalist of best mean report score (ties: the earlier), with its score by run.

    Args:
        finalists: The ids of the report runs of each; one that lacks a score does not compete.
        scores: Report score by run id.

    Returns:
        None if no finalist has all its scores.
    """
    complete = {
        point: {run_id: scores[run_id] for run_id in run_ids}
        for point, run_ids in finalists.items()
        if all(run_id in scores for run_id in run_ids)
    }
    if not complete:
        return None
    best = max(complete, key=lambda point: statistics.fmean(complete[point].values()))
    return best, complete[best]


@dataclass(frozen=True, kw_only=True)
class Interval:
    """Ends of a confidence interval."""

    low: float
    high: float


def simultaneous(scores: Sequence[float], candidates: int) -> Interval | None:
    """t interval of a mean that holds whichever of ``candidates`` it is of (Bonferroni).

    None from fewer than two scores.
    """
    if len(scores) < 2:
        return None
    tail = (1 - CONFIDENCE) / (2 * candidates)
    quantile = float(student_t.ppf(1 - tail, len(scores) - 1))
    half = quantile * statistics.stdev(scores) / len(scores) ** 0.5
    mean = statistics.fmean(scores)
    return Interval(low=mean - half, high=mean + half)
