"""Seeds that parity needs: simulation, statsmodels, and limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats
from statsmodels.stats.power import TTestPower

from analysis.estimates.equivalence import equivalence_p
from analysis.estimates.power import pooled_tost_power, seeds_for_margin, tost_power
from analysis.estimates.stats import paired_difference


@pytest.mark.parametrize(("paired", "df"), [(True, 1), (False, 2)])
@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("difference", [0.0, 0.02, 0.04])
def test_power_is_what_simulation_says(
    seeds: int, difference: float, paired: bool, df: int
) -> None:
    """Monte-Carlo SE at 100,000 replications: at most 0.16 points."""
    rng = np.random.default_rng(seeds)
    error = 0.02 * math.sqrt(2 / seeds)
    d = rng.normal(difference, error, 100_000)
    freedom = df * (seeds - 1)
    se = error * np.sqrt(rng.chisquare(freedom, 100_000) / freedom)
    supported = np.abs(d) + scipy_stats.t.ppf(0.95, freedom) * se < 0.04
    power = tost_power(seeds, 0.04, 0.02, difference, paired=paired)
    assert power == pytest.approx(supported.mean(), abs=0.006)


def test_it_is_the_power_of_the_test_that_decides() -> None:
    """Monte-Carlo SE at 3000 replications: 0.9 points."""
    rng = np.random.default_rng(0)
    draws = rng.normal(0, 0.02, (3000, 2, 5))
    supported = [equivalence_p(paired_difference(a, b), 0.04) < 0.05 for a, b in draws]
    assert tost_power(5, 0.04, 0.02) == pytest.approx(np.mean(supported), abs=0.03)


@pytest.mark.parametrize("seeds", [3, 6, 20])
def test_far_from_one_bound_it_is_the_power_of_one_t_test(seeds: int) -> None:
    # The margin is wide and the difference close to its upper end: only that test can fail.
    sd, margin, difference = 0.02, 1.0, 0.96
    effect = (margin - difference) / (sd * math.sqrt(2))
    expected = TTestPower().power(effect, seeds, 0.05, alternative="larger")
    assert tost_power(seeds, margin, sd, difference) == pytest.approx(expected, abs=1e-3)


def test_a_true_difference_of_one_margin_is_supported_in_five_per_cent() -> None:
    assert tost_power(30, 0.04, 0.02, 0.04) == pytest.approx(0.05, abs=1e-3)
    assert tost_power(3, 0.04, 0.02, 0.04) <= 0.05 + 1e-6


def test_a_pooled_sd_has_more_power() -> None:
    assert pooled_tost_power(3, 0.04, 0.02, df=12) > tost_power(3, 0.04, 0.02) + 0.15
    assert pooled_tost_power(5, 0.04, 0.02, df=4) == pytest.approx(tost_power(5, 0.04, 0.02))


def test_seeds_needed_are_the_fewest_that_reach_the_power() -> None:
    needed = seeds_for_margin(0.03, 0.02)
    assert needed is not None
    assert tost_power(needed, 0.03, 0.02) >= 0.8 > tost_power(needed - 1, 0.03, 0.02)
    assert seeds_for_margin(10.0, 0.02) == 3
    assert seeds_for_margin(0.001, 0.02) is None
    assert seeds_for_margin(0.03, 0.02, difference=0.03) is None


@pytest.mark.parametrize(("margin", "sd"), [(0, 0.1), (-1, 0.1), (0.1, 0), (math.inf, 0.1)])
def test_margin_and_spread_must_be_positive(margin: float, sd: float) -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        seeds_for_margin(margin, sd)


def test_what_has_no_power_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2 seeds, got 1"):
        tost_power(1, 0.1, 0.1)
    with pytest.raises(ValueError, match="0 < power < 1"):
        seeds_for_margin(0.1, 0.1, power=1.0)
