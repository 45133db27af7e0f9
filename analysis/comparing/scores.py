"""What one arm scored and gained, as contrasts that can be subtracted from another experiment's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.comparing.numbers import (
    Quantity,
    from_contrast,
    independent_difference,
    lacking,
    nothing,
)
from analysis.estimates.curve import FloatArray, oriented_scores
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import cross_fitted_scores, mean_contrast, widened
from analysis.reading.arms import reported, scored
from analysis.reading.sweep import Sweep

REPORTED = "report seeds"
CROSS_FITTED = "search seeds, cross-fitted"
BEST_OF = "best of the grid on one search seed, optimistic"


@dataclass(frozen=True)
class ArmScore:
    """Score and gain of one arm; both as they are printed, with the seeds they rest on."""

    score: Quantity
    gain: Quantity
    """Improvement over the untrained model: positive is better under either direction."""
    source: str
    """Which seeds, in words; empty without a score."""


def arm_score(sweep: Sweep, arm: str, search: SearchSummary) -> ArmScore:
    """Score and gain over report seeds; without those, cross-fitted over the search seeds.

    Args:
        sweep: The experiment.
        arm: Its arm.
        search: Of the same sweep.
    """
    rows = reported(sweep, arm)
    if len(rows):
        scores, bases = (_by_seed(rows, c) for c in ("score_final", "score_base"))
        return _arm_score(sweep, scores, bases, REPORTED)
    if sweep.selects_only:
        return _without("a search that only selects gives no score, only report seeds do")
    curve = search.curves.get(arm)
    if curve is None:
        return _without("no phase with every score yet")
    bases = _by_seed(scored(sweep.runs, arm, "search"), "score_base")
    if curve.n_seeds == 1:
        return _arm_score(sweep, curve.scores.max(axis=1), bases, BEST_OF)
    return _arm_score(sweep, cross_fitted_scores(curve.scores), bases, CROSS_FITTED)


def _without(reason: str) -> ArmScore:
    return ArmScore(nothing(reason), nothing(reason), "")


def _by_seed(rows: pd.DataFrame, column: str) -> FloatArray:
    """``[seeds]`` in the order of the seeds; runs of one seed count once."""
    values = pd.Series(oriented_scores(rows, column), index=rows["seed"].to_numpy())
    return np.asarray(values.groupby(level=0).mean(), dtype=np.float64)


def _arm_score(sweep: Sweep, scores: FloatArray, bases: FloatArray, source: str) -> ArmScore:
    def mean(values: FloatArray) -> Quantity:
        contrast = mean_contrast(values)
        return from_contrast(widened(contrast) if source == CROSS_FITTED else contrast)

    gain = nothing("the untrained model was not evaluated")
    if len(bases) == len(scores) and np.isfinite(bases).all():
        gain = mean(scores - bases)
    sign = -1.0 if sweep.direction == "minimize" else 1.0
    return ArmScore(mean(sign * scores), gain, source)


def difference(second: Quantity, first: Quantity) -> Quantity:
    """``second - first``; nothing where either is missing, with the reason of that side."""
    if first.contrast is None or second.contrast is None:
        return nothing(lacking(first, second))
    return from_contrast(independent_difference(second.contrast, first.contrast))
