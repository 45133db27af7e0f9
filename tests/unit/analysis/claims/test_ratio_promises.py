"""The promises of the ratio's interval, and of C3's rates of error, on simulated sweeps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from analysis.claims import c03_ten_times
from analysis.estimates.curve import LrCurve
from analysis.estimates.edges import find_edges
from analysis.estimates.optimum import LrRatio, lr_ratio, optimum
from analysis.estimates.plateau import shared_fraction
from analysis.simulate.draws import Design, simulate_curve, simulate_pair
from tests.unit.analysis.simulated_sweeps import (
    MED,
    REGIMES,
    pairs,
    true_log_ratio,
)

FAST, FULL = 60, 500


def replications(fast: int = FAST) -> list[object]:
    """A short run by default, the full one at night."""
    return [fast, pytest.param(FULL, marks=[pytest.mark.nightly, pytest.mark.timeout(300)])]


@pytest.mark.parametrize("n", replications())
@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("regime", REGIMES)
def test_the_interval_covers(regime: str, seeds: int, n: int) -> None:
    """Stated 90 % intervals hold the truth in 86 to 100 % of sweeps, bias below 0.02 decade.

    Monte-Carlo SE at 60 replications: 3.9 points and 0.015 decade; at 500: 1.3 and 0.005.
    """
    truth = true_log_ratio(regime)
    hits, errors = [], []
    for arm, baseline in pairs(regime, seeds, n):
        centre = lr_ratio(arm, baseline, shared_fraction((arm, baseline))).centre
        if centre.interval is not None:
            hits.append(centre.interval[0] <= 10**truth <= centre.interval[1])
            errors.append(math.log10(centre.point) - truth)
    assert len(hits) >= 0.88 * n
    assert np.mean(hits) >= (0.86 if n == FULL else 0.80)
    assert abs(np.mean(errors)) < (0.02 if n == FULL else 0.04)


@pytest.mark.parametrize("n", replications())
@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("regime", ["low", "wide", "soft", "half-decade"])
def test_the_interval_of_the_optimum_and_its_edges_covers(regime: str, seeds: int, n: int) -> None:
    """LR*, ramp, cliff and width of one arm; Monte-Carlo SE at 60 replications: 4 points."""
    _, truth, design = REGIMES[regime]
    ramp, cliff = truth.plateau(0.2)
    hits: dict[str, list[bool]] = {"lr": [], "ramp": [], "cliff": [], "width": []}
    rng = np.random.default_rng(0)
    for _ in range(n):
        found = optimum(simulate_curve("x", truth, replace(design, seeds=seeds), rng), 0.2)
        true = {
            "lr": 10 ** ((ramp + cliff) / 2),
            "ramp": 10**ramp,
            "cliff": 10**cliff,
            "width": cliff - ramp,
        }
        for name, own in hits.items():
            interval = getattr(found, name).interval
            if interval is not None:
                own.append(interval[0] <= true[name] <= interval[1])
    coverage = {name: float(np.mean(own)) for name, own in hits.items()}
    assert min(coverage.values()) >= (0.84 if n == FULL else 0.76), coverage


@pytest.mark.parametrize("n", replications())
def test_a_seed_bootstrap_would_not_cover(n: int) -> None:
    """Why the percentile bootstrap is not used: with 3 seeds it covers far less than 90 %.

    With 3 seeds there are ten distinct resamples, so the bootstrap is computed exactly.
    """
    truth = true_log_ratio("low")
    hits = []
    for arm, baseline in pairs("low", 3, n):
        (a, w_a), (b, w_b) = _resampled_centres(arm), _resampled_centres(baseline)
        differences, weights = np.subtract.outer(a, b).ravel(), np.outer(w_a, w_b).ravel()
        order = np.argsort(differences)
        cumulated = np.cumsum(weights[order])
        low = differences[order][np.searchsorted(cumulated, 0.05)]
        high = differences[order][np.searchsorted(cumulated, 0.95)]
        hits.append(low <= truth <= high)
    assert np.mean(hits) < 0.8


def _resampled_centres(curve: LrCurve) -> tuple[np.ndarray, np.ndarray]:
    """Midpoints of the mean curve of every resample of three seeds, with its probability."""
    centres, weights = [], []
    for chosen in itertools.combinations_with_replacement(range(3), 3):
        mean = curve.scores[list(chosen)].mean(axis=0)
        centres.append(find_edges(curve.positions, mean, curve.base, 0.2).centre)
        weights.append({1: 1, 2: 3, 3: 6}[len(set(chosen))] / 27)
    return np.array(centres), np.array(weights)


@pytest.mark.parametrize("n", replications())
@pytest.mark.parametrize("ratio", [5.0, 20.0])
def test_a_ratio_at_the_bound_is_seldom_supported(ratio: float, n: int) -> None:
    """Nominal 5 %, allowed 10 %; Monte-Carlo SE at 60 replications 2.8 points."""
    supported = _share(pairs_at(ratio, n, Design(seeds=3)), lambda v: v == "supported")
    assert supported <= (0.10 if n == FULL else 0.13)


@pytest.mark.parametrize("n", replications())
@pytest.mark.parametrize("ratio", [1.0, 3.0])
def test_null_worlds_do_not_support_the_ten(ratio: float, n: int) -> None:
    """Well outside [5, 20] the stated 5 % are never used up; Monte-Carlo SE at 60: 2.8 points."""
    supported = _share(pairs_at(ratio, n, Design(seeds=3)), lambda v: v == "supported")
    assert supported <= 0.05


@pytest.mark.parametrize("n", replications())
def test_a_world_in_which_no_rate_trains_supports_nothing(n: int) -> None:
    """Scores scatter around the untrained model at every rate, arms ten times apart."""
    rng = np.random.default_rng(3)
    sweeps = []
    for arm, baseline in pairs_at(10.0, n, Design(seeds=3)):
        noise = rng.normal(MED.base, 0.02, (2, *arm.scores.shape))
        sweeps.append((replace(arm, scores=noise[0]), replace(baseline, scores=noise[1])))
    assert _share(sweeps, lambda v: v == "supported") <= 0.05


@pytest.mark.parametrize("n", replications())
def test_half_decade_grids_are_mostly_undecided(n: int) -> None:
    """For want of a short interval, not of an interval."""
    design = Design(seeds=3, spacing=0.5, points=6)
    sweeps = pairs_at(10.0, n, design)
    stated = [pair for pair in sweeps if _ratio(*pair)[0].centre.interval is not None]
    assert len(stated) >= 0.8 * n
    assert _share(stated, lambda v: v == "undecided") > 0.5


@pytest.mark.parametrize("n", replications(40))
def test_quarter_decade_grids_mostly_decide(n: int) -> None:
    """Power: truth 10 supported, truth 3 refuted, with 5 seeds (0.99 or more in theory)."""
    design = Design(seeds=5)
    assert _share(pairs_at(10.0, n, design), lambda v: v == "supported") > 0.85
    assert _share(pairs_at(3.0, n, design), lambda v: v == "refuted") > 0.8


def pairs_at(ratio: float, n: int, design: Design) -> list[tuple[LrCurve, LrCurve]]:
    rng = np.random.default_rng(2)
    return [simulate_pair(MED.shifted(math.log10(ratio)), MED, design, rng) for _ in range(n)]


def _share(sweeps: list[tuple[LrCurve, LrCurve]], wanted: Callable[[str], bool]) -> float:
    return float(np.mean([wanted(_decision(*pair)) for pair in sweeps]))


def _decision(arm: LrCurve, baseline: LrCurve) -> str:
    return c03_ten_times.judge(arm, baseline, *_ratio(arm, baseline)).verdict


def _ratio(arm: LrCurve, baseline: LrCurve) -> tuple[LrRatio, float]:
    fraction = shared_fraction((arm, baseline))
    return lr_ratio(arm, baseline, fraction), fraction


@pytest.mark.parametrize("n", replications())
def test_a_quadratic_vertex_is_biased_by_the_cliff(n: int) -> None:
    """Why the textbook vertex is not used: it misses the plateau's midpoint."""
    _, truth, design = REGIMES["wide"]
    middle = sum(truth.plateau(0.2)) / 2
    rng = np.random.default_rng(0)
    curves = [simulate_curve("x", truth, replace(design, seeds=5), rng) for _ in range(n)]
    vertices = [_vertex(curve.positions, curve.means) for curve in curves]
    found = [math.log10(optimum(curve, 0.2).lr.point) for curve in curves]
    assert abs(np.mean(vertices) - middle) > 0.05
    assert abs(np.mean(found) - middle) < 0.05


def _vertex(x: np.ndarray, y: np.ndarray) -> float:
    """Vertex of the parabola through the five points around the best one."""
    best = int(np.clip(y.argmax(), 2, len(x) - 3))
    window = slice(best - 2, best + 3)
    a, b, _ = np.polyfit(x[window] - x[best], y[window], 2)
    return float(x[best] + np.clip(-b / (2 * a), -0.5, 0.5)) if a < 0 else float(x[best])
