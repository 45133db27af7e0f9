"""Search phases drawn from known curves: how close the selected learning rate gets to the best."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.random import default_rng

from analysis.simulate.draws import Design, simulate_scores
from analysis.simulate.truths import ArmTruth, Truth, UShape

TRUTHS: tuple[Truth, ...] = (
    ArmTruth(),
    ArmTruth(span=0.8, decline=0.15),
    ArmTruth(cliff_scale=0.15, decline=0.2, ramp_scale=0.3),
    UShape(),
    UShape(depth=0.5, skew=2),
    UShape(depth=3, skew=1),
)
LATTICE = np.linspace(-6.5, -0.5, 6001)
RUNS = Design(seeds=3, noise=0.01, eval_prompts=512)

Means = dict[float, float]
Rule = Callable[[Means, int], list[float]]
"""From the means of a grid and a number of points to further learning rates."""


def evenly(means: Mapping[float, float], points: int) -> list[float]:
    """Points spread evenly over the gaps beside the best rate, its better neighbour first."""
    rates = sorted(means)
    place = rates.index(max(rates, key=lambda rate: means[rate]))
    gaps = [(a, b) for a, b in itertools.pairwise(rates) if rates[place] in (a, b)]
    gaps.sort(key=lambda gap: -means[gap[0]] - means[gap[1]])
    found: list[float] = []
    for index, (low, high) in enumerate(gaps):
        inside = len(range(index, points, len(gaps)))
        found += [low * (high / low) ** (i / (inside + 1)) for i in range(1, inside + 1)]
    return found


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Averages over many searches."""

    regret: float
    """Expected score at the best learning rate less that at the selected one."""
    decades: float
    """Distance of the selected rate from the middle of the top (where the score is within 1 % of
    the rise)."""


def simulate(rule: Rule | None, points: int, spacing: float, rates: int, sweeps: int) -> Outcome:
    """Draw ``sweeps`` searches of every truth; the rule sees the grid's means alone."""
    found = [
        _regret(truth, _selected(truth, rule, points, grid, seed))
        for truth in TRUTHS
        for seed in range(sweeps)
        for grid in (_grid(truth, spacing, rates, seed),)
    ]
    regrets, decades = zip(*found, strict=True)
    return Outcome(regret=statistics.fmean(regrets), decades=statistics.fmean(decades))


def _grid(truth: Truth, spacing: float, rates: int, seed: int) -> list[float]:
    offset = default_rng([seed, 1]).uniform(-0.5, 0.5)
    middle = _top(truth)[0] + spacing * offset
    return [float(10 ** (middle + spacing * (i - rates // 2))) for i in range(rates)]


def _selected(truth: Truth, rule: Rule | None, points: int, grid: list[float], seed: int) -> float:
    means = dict(zip(grid, _means(truth, grid, seed), strict=True))
    if rule is not None:
        added = rule(dict(means), points)
        means |= dict(zip(added, _means(truth, added, seed), strict=True))
    return max(means, key=lambda rate: (means[rate], -rate))


def _means(truth: Truth, rates: list[float], seed: int) -> Iterator[float]:
    for rate in rates:
        place = math.log10(rate)
        rng = default_rng([seed, round((place + 9) * 1e5)])
        yield float(simulate_scores(truth, np.array([place]), RUNS, rng).mean())


@cache
def _top(truth: Truth) -> tuple[float, float]:
    expected = truth.expected(LATTICE)
    base = truth.base or 0.0
    inside = LATTICE[expected >= expected.max() - 0.01 * (expected.max() - base)]
    return float(inside.mean()), float(expected.max())


def _regret(truth: Truth, rate: float) -> tuple[float, float]:
    middle, highest = _top(truth)
    place = math.log10(rate)
    return highest - float(truth.expected(np.array([place]))[0]), abs(place - middle)
