"""Coverage and error rates of the ratio of ratios over simulated pairs of experiments."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from analysis.comparing.rates import rate_ratio, ratio_of_ratios
from analysis.comparing.verdicts import DIFFERENT, FACTOR, RATIO, SAME, Judged, judge
from analysis.estimates.plateau import shared_fraction
from tests.unit.analysis.comparing.side_by_side import simulated

NIGHTLY = pytest.mark.nightly


def rates(shift: float, replications: int, seeds: int, rng_seed: int) -> dict[str, float]:
    """Shares of the pairs in which the interval covers, and of each verdict."""
    covered = 0
    counts = Counter({SAME: 0, DIFFERENT: 0})
    for pairs in simulated(shift, replications, seeds=seeds, rng_seed=rng_seed):
        fraction = shared_fraction(curve for pair in pairs for curve in pair)
        first, second = (rate_ratio(full, lora, fraction, ("", "")).centre for lora, full in pairs)
        between = ratio_of_ratios(first, second)
        assert between.interval is not None
        covered += between.interval[0] <= 10**shift <= between.interval[1]
        (verdict,) = judge(RATIO, [Judged("lora", between, math.log10(FACTOR), "a factor of 2")])
        counts[verdict.verdict] += 1
    return {"covered": covered / replications} | {k: n / replications for k, n in counts.items()}


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("shift", "replications", "seeds"),
    [
        (0.0, 200, 3),
        (0.5, 200, 3),
        pytest.param(0.0, 500, 3, marks=NIGHTLY),
        pytest.param(0.5, 500, 3, marks=NIGHTLY),
        pytest.param(math.log10(2), 500, 3, marks=NIGHTLY),
        pytest.param(0.0, 500, 5, marks=NIGHTLY),
        pytest.param(math.log10(2), 500, 5, marks=NIGHTLY),
    ],
)
def test_ratio_of_ratios_covers_and_keeps_its_level(
    shift: float, replications: int, seeds: int
) -> None:
    found = rates(shift, replications, seeds, rng_seed=int(1000 * shift) + seeds)
    assert found["covered"] >= 0.86
    if shift < math.log10(2):
        assert found[DIFFERENT] <= 0.10
    if shift >= math.log10(2):
        assert found[SAME] <= 0.10
