"""How often score differences cover and parity is decided right, for a design not yet paid for."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from analysis.estimates.curve import FloatArray, LrCurve
from analysis.estimates.equivalence import beyond_margin_p, equivalence_p
from analysis.estimates.stats import (
    Contrast,
    PooledSd,
    cross_fitted_difference,
    paired_difference,
    pooled_difference,
)
from analysis.simulate.draws import Design, simulate_pair, simulate_scores
from analysis.simulate.rates import LEVEL, Rate, rate
from analysis.simulate.regimes import Regime
from analysis.simulate.truths import Truth


@dataclass(frozen=True)
class ScoreRates:
    """Intervals of the score difference of two arms, each at its selected learning rate."""

    report_covers: Rate
    """Report seeds, paired t: the difference of runs that do not collapse."""
    report_covers_expected: Rate
    """The same intervals: the difference of expected scores, rare collapses included."""
    report_width: float
    """Median full width in score."""
    cross_covers: Rate
    """The search seeds themselves, cross-fitted."""
    cross_width: float
    cross_bias: float
    """Mean error of the cross-fitted difference in score."""


def score_rates(regime: Regime, report_seeds: int, replications: int, rng: Generator) -> ScoreRates:
    """Simulate searches and their reports.

    The truth is the difference of the scores at the rates that each search chose, of runs that do
    not collapse. Where a rate was chosen at which one run in twenty does, ten seeds that all
    survive cannot know of it: no interval from seeds covers such an expected score, so its
    coverage is stated beside.

    Args:
        regime: Arms and design of the search.
        report_seeds: Fresh seeds at the selected rates, shared by the arms.
        replications: Simulated experiments.
        rng: Source of every draw.
    """
    report: list[tuple[bool, float]] = []
    expected: list[tuple[bool, float]] = []
    cross: list[tuple[bool, float]] = []
    errors = []
    for _ in range(replications):
        curves = simulate_pair(regime.lora, regime.full, regime.design, rng, regime.full_design)
        places = [float(c.positions[c.means.argmax()]) for c in curves]
        truths = regime.lora, regime.full
        truth = float(truths[0].alive(places[0]) - truths[1].alive(places[1]))
        mean = float(truths[0].expected(places[0]) - truths[1].expected(places[1]))
        designs = regime.design, regime.full_design or regime.design
        effects = rng.standard_normal(report_seeds)
        first, second = (
            _reported(*arm, report_seeds, effects, rng)
            for arm in zip(truths, places, designs, strict=True)
        )
        fitted = cross_fitted_difference(*_same_seeds(*curves))
        difference = paired_difference(first, second)
        report.extend(_judged(difference, truth))
        expected.extend(_judged(difference, mean))
        cross.extend(_judged(fitted, truth))
        errors.append(fitted.point - truth)
    return ScoreRates(
        report_covers=rate([hit for hit, _ in report]),
        report_covers_expected=rate([hit for hit, _ in expected]),
        report_width=float(np.median([width for _, width in report])),
        cross_covers=rate([hit for hit, _ in cross]),
        cross_width=float(np.median([width for _, width in cross])),
        cross_bias=float(np.mean(errors)),
    )


def _reported(
    truth: Truth, place: float, design: Design, seeds: int, effects: FloatArray, rng: Generator
) -> FloatArray:
    fresh = replace(design, seeds=seeds)
    return simulate_scores(truth, np.array([place]), fresh, rng, effects)[:, 0]


def _same_seeds(a: LrCurve, b: LrCurve) -> tuple[FloatArray, FloatArray]:
    n = min(a.n_seeds, b.n_seeds)
    return a.scores[:n], b.scores[:n]


def _judged(contrast: Contrast, truth: float) -> list[tuple[bool, float]]:
    """Whether the interval holds the truth, and its width; nothing where there is no interval."""
    interval = contrast.estimate().interval
    if interval is None:
        return []
    return [(interval[0] <= truth <= interval[1], interval[1] - interval[0])]


@dataclass(frozen=True)
class ParityRates:
    """Two one-sided tests of one difference against one margin."""

    supported: Rate
    refuted: Rate
    pooled_supported: Rate
    """With a run SD pooled over six cells in place of the paired t."""
    pooled_refuted: Rate


def parity_rates(
    difference: float,
    margin: float,
    sd: float,
    seeds: int,
    replications: int,
    rng: Generator,
    *,
    correlation: float = 0.15,
) -> ParityRates:
    """How often parity is supported and refuted at a true difference.

    Args:
        difference: True difference of the arms in score.
        margin: Equality margin, fixed beforehand.
        sd: SD of a run over seeds.
        seeds: Report seeds.
        replications: Simulated comparisons.
        rng: Source of every draw.
        correlation: Of the runs of one seed in the two arms.
    """
    paired, pooled = [], []
    for _ in range(replications):
        common = math.sqrt(correlation) * rng.standard_normal(seeds)
        own = math.sqrt(1 - correlation) * rng.standard_normal((2, seeds))
        first, second = sd * (common + own)
        paired.append(_decided(paired_difference(first + difference, second), margin))
        df = 6 * (seeds - 1)
        floor = PooledSd(sd * math.sqrt(rng.chisquare(df) / df), df, 6)
        pooled.append(_decided(pooled_difference(first + difference, second, floor), margin))
    return ParityRates(
        *(rate(list(x)) for x in (*zip(*paired, strict=True), *zip(*pooled, strict=True)))
    )


def _decided(contrast: Contrast, margin: float) -> tuple[bool, bool]:
    return equivalence_p(contrast, margin) < LEVEL, beyond_margin_p(contrast, margin) < LEVEL
