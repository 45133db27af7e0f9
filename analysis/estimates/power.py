"""How many seeds a question needs, from a noise SD: before anything is paid for.

Power of two one-sided tests (Owen 1965; Chow, Shao & Wang 2008): the mean difference is normal,
its variance a chi-square apart, and both tests reject while the error leaves room in the margin.
"""

from __future__ import annotations

import bisect
import itertools
import math

import numpy as np
from scipy.integrate import quad
from scipy.special import ndtr, stdtrit
from scipy.stats import chi2

from analysis.estimates.stats import CONFIDENCE, MAX_SEEDS, MIN_SEEDS

POWER = 0.8
"""What a study is planned for, unless it says otherwise."""


def tost_power(
    seeds: int, margin: float, sd: float, difference: float = 0.0, *, paired: bool = True
) -> float:
    """Probability that two one-sided t tests at 5 % support equality within ``+- margin``.

    Args:
        seeds: Per arm.
        margin: Equality margin in score.
        sd: SD of a run over seeds, evaluation noise included.
        difference: True difference of the arms.
        paired: By seed, runs of one seed being uncorrelated, df = seeds - 1; else two independent
            samples of equal variance, df = 2 (seeds - 1).

    Raises:
        ValueError: for fewer than 2 seeds, or a margin or SD that is not positive.
    """
    _check(margin, sd)
    if seeds < 2:
        raise ValueError(f"a t test needs at least 2 seeds, got {seeds}")
    df = (seeds - 1) * (1 if paired else 2)
    return _tost_power(df, sd * math.sqrt(2 / seeds), margin, difference)


def pooled_tost_power(
    seeds: int, margin: float, sd: float, df: int, difference: float = 0.0
) -> float:
    """The same where the SD is pooled over the plateau cells of a search, on ``df`` of its own."""
    _check(margin, sd)
    return _tost_power(df, sd * math.sqrt(2 / seeds), margin, difference)


def _tost_power(df: float, error: float, margin: float, difference: float) -> float:
    """Average over the estimated SE s of P(|D| < margin - t s), D normal around the difference."""
    quantile = float(stdtrit(df, 0.5 + CONFIDENCE / 2))
    largest = df * (margin / (quantile * error)) ** 2  # of chi-square: beyond it nothing is left

    def accepted(q: float) -> float:
        room = margin - quantile * error * math.sqrt(q / df)
        inside = ndtr((room - difference) / error) - ndtr((-room - difference) / error)
        return float(inside) * float(chi2.pdf(q, df))

    peak = float(np.clip(df - 2, 0, largest))
    parts = sorted({0.0, peak, min(largest, 2 * df + 20.0), largest})
    pieces = (quad(accepted, *ends, limit=200)[0] for ends in itertools.pairwise(parts))
    return min(1.0, sum(pieces))


def seeds_for_margin(
    margin: float,
    sd: float,
    *,
    difference: float = 0.0,
    power: float = POWER,
    paired: bool = True,
) -> int | None:
    """Fewest seeds per arm that support a true equality within ``margin`` with this power.

    Args:
        margin: Equality margin in score.
        sd: SD of a run over seeds.
        difference: True difference of the arms.
        power: Wanted probability of "supported", in (0, 1).
        paired: As for :func:`tost_power`.

    Returns:
        At least three; None if a hundred are not enough.

    Raises:
        ValueError: as for :func:`tost_power`, or for a power outside (0, 1).
    """
    _check(margin, sd)
    if not 0 < power < 1:
        raise ValueError(f"0 < power < 1 must hold, got {power}")
    counts = range(MIN_SEEDS, MAX_SEEDS + 1)  # power grows with every seed

    def enough(n: int) -> bool:
        return tost_power(n, margin, sd, difference, paired=paired) >= power

    found = bisect.bisect_left(counts, True, key=enough)
    return counts[found] if found < len(counts) else None


def _check(margin: float, sd: float) -> None:
    for name, value in (("margin", margin), ("standard deviation", sd)):
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"a {name} must be positive and finite, got {value}")
