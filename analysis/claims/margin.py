"""The margin inside which two scores count as equal."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.claims.comparison import Comparison
from analysis.claims.verdict import Obstacle
from analysis.reading.sweep import Sweep

GAIN_SHARE, MIN_MARGIN = 0.1, 0.02
"""The default margin: this share of the baseline's gain over the untrained model, at least so
much; a margin taken from the noise would reward sloppiness."""


def default_margin(gain: float) -> float:
    """The margin in score, where none is declared, for a gain over the untrained model."""
    return max(MIN_MARGIN, GAIN_SHARE * gain)


def margin_of(
    sweep: Sweep, comparison: Comparison, scores: NDArray[np.float64], base: float | None
) -> float | Obstacle:
    """The declared margin, or the default; none where the baseline learned nothing to keep.

    Args:
        sweep: The experiment.
        comparison: Its baseline is the one whose gain counts.
        scores: ``[seeds]`` of the baseline, higher is better.
        base: Score of the untrained model on the same prompts, None if it was never evaluated.
    """
    declared = sweep.experiment.get("margin")
    name = comparison.baseline_noun
    if base is None:
        if declared is not None:
            return float(declared)
        return never_evaluated(
            "The untrained model was never evaluated, so there is no gain to take a margin from"
        )
    gain = float(scores.mean()) - base
    margin = default_margin(gain) if declared is None else float(declared)
    if gain <= margin:
        return Obstacle(
            "no_gain",
            f"{name} gains {gain:.3f} over the untrained model, no more than the margin "
            f"{margin:.3f}: there is nothing to keep up with; train longer.",
            f"training of {name} that gains more than the margin",
        )
    return margin


def never_evaluated(reason: str) -> Obstacle:
    """The obstacle that an unknown score of the untrained model is."""
    return Obstacle("no_base", f"{reason}: evaluate it.", "an evaluation of the untrained model")
