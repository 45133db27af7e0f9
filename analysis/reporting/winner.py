"""The winner of a joint search, from its records, by the rule of :mod:`study.plan.best`."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from analysis.reading.sweep import Sweep
from analysis.reporting.numbers import plural
from study.plan.best import CONFIDENCE, Point, leader, simultaneous

UNFINISHED = "Unfinished: no winner yet."
NONE_COMPLETE = "No winner: no finalist has a score on every report seed."


@dataclass(frozen=True, kw_only=True)
class Winner:
    """The setting that a joint search ends with."""

    arm: str
    overrides: tuple[str, ...]
    """What distinguishes the arm, as Hydra overrides."""
    learning_rate: float
    report_mean: float
    report_scores: dict[str, float]
    """By run id."""
    interval: tuple[float, float] | None
    """Holds whichever finalist won; None from one seed."""
    confidence: float
    finalists: int
    """Settings with report runs: the winner is the best of so many."""
    trials: int


def winner(sweep: Sweep) -> Winner | None:
    """The finalist of best mean report score among those with every report seed scored.

    None while a search or report run is to come, and where no finalist is complete.
    """
    finalists, trials = _points(sweep, "report"), _points(sweep, "search")
    if not _over(sweep):
        return None
    leading = leader(finalists, _scores(sweep))
    if leading is None:
        return None
    (arm, rate), found = leading
    interval = simultaneous(list(found.values()), len(finalists))
    return Winner(
        arm=arm,
        overrides=tuple(map(str, sweep.experiment.get("arms", {}).get(arm, ()))),
        learning_rate=rate,
        report_mean=statistics.fmean(found.values()),
        report_scores=found,
        interval=None if interval is None else (interval.low, interval.high),
        confidence=CONFIDENCE,
        finalists=len(finalists),
        trials=len(trials),
    )


def winner_lines(sweep: Sweep, found: Winner | None) -> list[str]:
    """The winner and its score, or why there is none."""
    if found is None:
        return [NONE_COMPLETE if _over(sweep) else UNFINISHED]
    settings = f" ({', '.join(found.overrides)})" if found.overrides else ""
    score = f"{sweep.score_metric} {found.report_mean:.3f}"
    score += f", mean over {plural(len(found.report_scores), 'report seed')}"
    if found.interval is None:
        why = "no interval from one seed, and the best of several is optimistic"
    else:
        low, high = found.interval
        score += f", {found.confidence:.0%} interval [{low:.3f}, {high:.3f}]"
        why = "the interval allows for the choice among finalists, the mean does not"
    chosen = f"the best of {plural(found.finalists, 'finalist')} of {plural(found.trials, 'trial')}"
    return [
        f"Best setting: {found.arm}{settings} at learning rate {found.learning_rate:g}.",
        f"{score}: {chosen}; {why}.",
    ]


def _over(sweep: Sweep) -> bool:
    """Whether every trial was made, finalists report, and no run is to come."""
    enough = len(_points(sweep, "search")) >= int(sweep.experiment["best"]["trials"])
    open_runs = bool((sweep.planned["status"] == "missing").any())
    return enough and not open_runs and bool(_points(sweep, "report"))


def _points(sweep: Sweep, phase: str) -> dict[Point, list[str]]:
    found: dict[Point, list[str]] = {}
    for run in sweep.plan["runs"]:
        if run["phase"] == phase:
            found.setdefault((run["arm"], run["learning_rate"]), []).append(run["run_id"])
    return found


def _scores(sweep: Sweep) -> dict[str, float]:
    runs = zip(sweep.runs["run_id"], sweep.runs["score_final"], strict=True)
    return {str(run_id): float(score) for run_id, score in runs if not math.isnan(score)}
