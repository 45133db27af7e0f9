"""What a run could be told against what its parameters can hold, and what excess costs in score."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from analysis.estimates.fits import MIN_POINTS, weighted_slope
from analysis.estimates.stats import NO_SPREAD, Contrast

BITS_PER_PARAMETER = 2.0
"""What a trained parameter stores at most (Allen-Zhu and Li 2404.05405)."""


def capacity_load(bits: float, parameters: float) -> float:
    """Bits over capacity: above 1 a run was told more than its parameters hold.

    Args:
        bits: Entropy of the rewards of all its groups, see ``train/reward_bits``.
        parameters: Trainable ones.

    Raises:
        ValueError: for bits below 0, or no parameters.
    """
    if not bits >= 0:
        raise ValueError(f"bits must be at least 0, got {bits}")
    if not parameters > 0:
        raise ValueError(f"trainable parameters must be more than 0, got {parameters}")
    return bits / (BITS_PER_PARAMETER * parameters)


def gap_slope(loads: ArrayLike, gaps: ArrayLike, errors: ArrayLike) -> Contrast | None:
    """Slope of the score gap to full fine-tuning on log2(bits / capacity): score per doubling.

    The gaps share one baseline, whose error moves all of them alike and no slope.

    Args:
        loads: ``[arms]`` bits over capacity, positive.
        gaps: ``[arms]`` mean score of full fine-tuning minus the arm's, higher is worse.
        errors: ``[arms]`` standard errors of the arms' mean scores.

    Returns:
        The slope; None with fewer than three arms, or where one has no spread or the loads do not
        differ.
    """
    places = np.log2(np.asarray(loads, dtype=np.float64))
    spread = np.asarray(errors, dtype=np.float64)
    if len(places) < MIN_POINTS or math.isclose(np.ptp(places), 0.0, abs_tol=NO_SPREAD):
        return None
    if not (np.isfinite(spread) & (spread > NO_SPREAD)).all():
        return None
    return weighted_slope(places, gaps, spread)
