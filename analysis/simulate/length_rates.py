"""How often the slope of a ratio on the training length is covered, and its sign seen (C4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from analysis.estimates.curve import LrCurve
from analysis.estimates.length import ratio_slope
from analysis.estimates.plateau import shared_fraction
from analysis.simulate.draws import CENTRED_ON, Design, simulate_paths
from analysis.simulate.rates import Rate, rate
from analysis.simulate.truths import Truth

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Of the training, after which runs are evaluated."""


@dataclass(frozen=True)
class SlopeRates:
    """The slope of log10 of the ratio on log10 of the training length."""

    stated: Rate
    """Sweeps with at least three lengths at which both plateaus lie inside their grids."""
    covers: Rate
    width: float
    """Median full width in decades per decade."""
    bias: float
    falling: Rate
    """Of all sweeps: the interval lies below 0, so C4 is supported."""


def slope_rates(
    lora: Truth, full: Truth, design: Design, replications: int, rng: Generator
) -> SlopeRates:
    """Simulate sweeps that were evaluated on the way.

    Args:
        lora: Its ``drift`` minus that of ``full`` is how fast the ratio falls.
        full: The baseline.
        design: Of both arms; give ``offset`` and ``points`` room for the early curves.
        replications: Simulated sweeps.
        rng: Source of every draw.
    """
    truth = full.drift - lora.drift
    found = []
    for _ in range(replications):
        effects = rng.standard_normal(design.seeds)
        arms = [_curves(arm, design, rng, effects) for arm in (lora, full)]
        fraction = shared_fraction([arms[0][SHARES_IN_STEPS[-1]], arms[1][SHARES_IN_STEPS[-1]]])
        found.append(ratio_slope(arms[0], arms[1], fraction))
    intervals = [(c.point, c.estimate().interval) for c in found if c is not None]
    stated = [(point, i) for point, i in intervals if i is not None]
    return SlopeRates(
        stated=Rate(len(stated) / len(found), len(found)),
        covers=rate([low <= truth <= high for _, (low, high) in stated]),
        width=float(np.median([high - low for _, (low, high) in stated])) if stated else np.nan,
        bias=float(np.mean([point for point, _ in stated])) - truth if stated else np.nan,
        falling=Rate(sum(high < 0 for _, (_, high) in stated) / len(found), len(found)),
    )


SHARES_IN_STEPS = tuple(round(1000 * share) for share in SHARES)


def _curves(
    truth: Truth, design: Design, rng: Generator, effects: np.ndarray
) -> dict[int, LrCurve]:
    positions = design.positions(truth.best(CENTRED_ON), rng)
    paths = simulate_paths(truth, positions, design, rng, effects, SHARES)
    return {
        step: LrCurve(
            arm="arm",
            learning_rates=tuple(float(x) for x in 10**positions),
            scores=paths[..., i],
            seeds=tuple(range(design.seeds)),
            base=truth.base,
            collapsed=np.zeros(paths.shape[:2], dtype=np.bool_),
        )
        for i, step in enumerate(SHARES_IN_STEPS)
    }
