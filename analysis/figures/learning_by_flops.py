"""Learning curves against the FLOPs that they took: training and sampling, not evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from analysis.estimates.search import SearchSummary
from analysis.figures import marks
from analysis.figures.learning import (
    LearningCurve,
    LearningFigure,
    SeedCurve,
    draw_learning,
    evaluated,
    learning_figure,
)
from analysis.figures.spec import FigureSpec
from analysis.reading.sweep import Sweep

METRIC = "train/flops"
UNIT = "FLOPs of training and sampling"

Spent = Mapping[str, Mapping[float, float]]
"""By run: FLOPs so far, by how many prompts it had seen."""


def flops_figure(sweep: Sweep, search: SearchSummary) -> LearningFigure:
    """The learning curves, with FLOPs in the place of prompts.

    Runs whose FLOPs are not recorded are left out. A mean stands at the mean of the FLOPs that its
    runs, diverged ones apart, had spent by the same number of prompts.
    """
    found = learning_figure(sweep, search)
    runs = [seed.run_id for curve in found.curves for seed in curve.seeds]
    rows = evaluated(sweep, runs, METRIC)
    spent = {
        str(run): dict(zip(mine["prompts"], mine["value"], strict=True))
        for run, mine in rows.groupby("run_id", observed=True)
    }
    curves = (_curve(curve, spent) for curve in found.curves)
    return replace(found, unit=UNIT, curves=tuple(curve for curve in curves if curve.seeds))


def _curve(curve: LearningCurve, spent: Spent) -> LearningCurve:
    known = [seed for seed in curve.seeds if seed.run_id in spent]
    # A diverged run ends early: with it until there and without it after, places would jump.
    going = [seed for seed in known if not seed.diverged] or known
    places, means = [], []
    for prompts, mean in zip(curve.prompts, curve.means, strict=True):
        costs = [_at(spent[seed.run_id], prompts) for seed in going]
        if len(known) == len(curve.seeds) and not any(map(math.isnan, costs)):
            places.append(sum(costs) / len(costs))
            means.append(mean)
    seeds = tuple(_seed(seed, spent[seed.run_id]) for seed in known)
    return replace(curve, seeds=seeds, prompts=tuple(places), means=tuple(means))


def _seed(seed: SeedCurve, spent: Mapping[float, float]) -> SeedCurve:
    points = [(_at(spent, p), score) for p, score in zip(seed.prompts, seed.scores, strict=True)]
    points = [point for point in points if not math.isnan(point[0])]
    costs, scores = zip(*points, strict=True) if points else ((), ())
    return replace(seed, prompts=tuple(costs), scores=tuple(scores))


def _at(spent: Mapping[float, float], prompts: float) -> float:
    """Nothing was spent before the first step; NaN where it is not recorded."""
    return 0.0 if prompts == 0 else spent.get(prompts, math.nan)


def _caption(data: LearningFigure) -> str:
    return (
        "The learning curves against what they took: FLOPs of the training passes and of sampling, "
        "summed over every matrix product; held-out evaluation is no part of them. Thick: mean "
        "over seeds, at the mean FLOPs of those that went on, after as many prompts. A diverged "
        "run counts with the worst score from its end on."
        + data.cast.unshown(data.shown, f"recorded FLOPs of a scored {data.phase} run")
    )


def _lacks(sweep: Sweep) -> str:
    if len(sweep.metrics) and not (sweep.metrics["metric"] == METRIC).any():
        return f"the metric {METRIC}, which records what each evaluation was reached with"
    return ""


FIGURE = FigureSpec(
    name="learning_by_flops",
    title="Learning curves against FLOPs",
    order=31,
    data=flops_figure,
    draw=draw_learning,
    caption=_caption,
    missing=lambda sweep, search, data: (
        "" if data.curves else "No evaluation of a scored run is stored with its FLOPs."
    ),
    lacks=_lacks,
    height=lambda data: marks.height(data.cast, extra=4, panels=len(data.settings)),
)
