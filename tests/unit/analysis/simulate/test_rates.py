"""Rates of coverage and of verdicts: the promises of every estimator, regime by regime."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analysis.estimates.power import pooled_tost_power, tost_power
from analysis.estimates.stats import Estimate
from analysis.simulate.draws import Design
from analysis.simulate.rates import Rate, decide, rank_free_rates, rate, ratio_rates
from analysis.simulate.regimes import CLEAR, REGIMES, SOFT, Regime
from analysis.simulate.score_rates import parity_rates, score_rates

FULL = 500
NIGHTLY = [pytest.mark.nightly, pytest.mark.timeout(600)]
QUICK = (
    "low noise",
    "soft cliff",
    "sharp cliff",
    "irregular grid",
    "unequal seeds",
    "loss, no base",
)
CASES = [
    *(pytest.param(name, 3, 40, id=f"{name}-3") for name in QUICK),
    *(
        pytest.param(name, seeds, FULL, marks=NIGHTLY, id=f"{name}-{seeds}-full")
        for name in REGIMES
        for seeds in (3, 5, 10)
    ),
]


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize(("regime", "seeds", "n"), CASES)
def test_ratio_and_optimum_cover(regime: str, seeds: int, n: int) -> None:
    """At least 86 %; Monte-Carlo SE at 86 %: 1.6 points at 500, 5.5 at 40 (LR*: 80 arms, 3.9)."""
    found = ratio_rates(REGIMES[regime].with_seeds(seeds), n, rng(), ratios=(1.0, 3.0, 5.0, 20.0))
    full = n == FULL
    assert found.stated.share >= 0.8
    assert found.covers.share >= (0.85 if full else 0.75)
    assert found.lr_covers.share >= (0.85 if full else 0.76)
    # Null worlds: far outside, and at the bounds themselves (nominal 5 % each).
    assert found.supported[1.0].share == 0
    assert found.supported[3.0].share <= (0.03 if full else 0.08)
    bound = max(found.supported[5.0].share, found.supported[20.0].share)
    biased = regime == "soft against sharp"  # by 0.04 decades, towards the inside at 5
    assert bound <= (0.16 if biased else 0.10 if full else 0.15)


@pytest.mark.parametrize(("regime", "seeds", "n"), CASES)
def test_score_differences_cover(regime: str, seeds: int, n: int) -> None:
    """Report seeds and cross-fitted; Monte-Carlo SE at 86 %: 1.6 points at 500, 5.5 at 40."""
    found = score_rates(REGIMES[regime].with_seeds(seeds), seeds, n, rng())
    least = 0.85 if n == FULL else 0.75
    assert found.report_covers.share >= least
    assert found.cross_covers.share >= least


def test_wider_is_seen_when_true_and_seldom_when_not() -> None:
    """Monte-Carlo SE at 60 sweeps: 2.8 points of nominal 5."""
    assert ratio_rates(REGIMES["unequal widths"], 60, rng()).wider.share > 0.9
    assert ratio_rates(REGIMES["wide plateau"], 60, rng()).wider.share <= 0.12


def test_an_arm_whose_grid_ends_on_its_plateau_gives_no_ratio() -> None:
    cut = Regime(CLEAR, CLEAR, Design(points=7, offset=-0.9), Design())
    found = ratio_rates(cut, 30, rng())
    assert found.stated.share == 0
    assert found.supported[10.0].share == found.refuted[10.0].share == 0


@pytest.mark.parametrize("n", [40, pytest.param(500, marks=NIGHTLY)])
def test_ranks_exactly_at_the_margin_are_seldom_called_equal_or_different(n: int) -> None:
    """Nominal 5 %; Monte-Carlo SE at 40: 3.4 points."""
    truths = [CLEAR, CLEAR.shifted(math.log10(2))]
    found = rank_free_rates(truths, Design(), n, rng())
    assert found.supported.share <= (0.08 if n > 40 else 0.13)
    assert found.refuted.share <= (0.08 if n > 40 else 0.13)


def test_ranks_that_share_their_rate_are_mostly_called_so_and_far_ones_never() -> None:
    equal = rank_free_rates([CLEAR] * 3, Design(seeds=5), 20, rng())
    assert equal.supported.share > 0.7 and equal.refuted.share == 0
    apart = rank_free_rates([CLEAR, CLEAR, CLEAR.shifted(0.7)], Design(seeds=5), 20, rng())
    assert apart.refuted.share > 0.8 and apart.supported.share == 0


@pytest.mark.parametrize("seeds", [3, 10])
def test_parity_keeps_its_level_and_has_the_power_that_is_stated(seeds: int) -> None:
    """Uncorrelated pairs, 2000 comparisons: Monte-Carlo SE 0.5 points at 5 %, 1.1 at 50 %."""
    at_margin = parity_rates(0.04, 0.04, 0.02, seeds, 2000, rng(), correlation=0.0)
    assert at_margin.supported.share <= 0.065 and at_margin.refuted.share <= 0.065
    assert at_margin.pooled_supported.share <= 0.065
    equal = parity_rates(0.0, 0.04, 0.02, seeds, 2000, rng(), correlation=0.0)
    assert equal.supported.share == pytest.approx(tost_power(seeds, 0.04, 0.02), abs=0.04)
    pooled = pooled_tost_power(seeds, 0.04, 0.02, df=6 * (seeds - 1))
    assert equal.pooled_supported.share == pytest.approx(pooled, abs=0.04)


def test_a_soft_cliff_needs_more_seeds_than_a_clear_one() -> None:
    clear, soft = (
        ratio_rates(Regime(truth, truth, Design(points=10)), 60, rng()) for truth in (CLEAR, SOFT)
    )
    assert clear.correct(10.0).share > soft.correct(10.0).share + 0.1
    assert clear.width < soft.width


def test_one_set_of_sweeps_serves_every_ratio() -> None:
    """Shifting LoRA's truth shifts its estimate: the same draws at another ratio agree."""
    once = ratio_rates(REGIMES["low noise"], 25, rng(), ratios=(10.0, 3.0))
    shifted = Regime(CLEAR.shifted(1.0), CLEAR, Design())
    again = ratio_rates(shifted, 25, rng(), ratios=(10.0, 3.0))
    assert once.covers == again.covers
    assert (once.supported, once.refuted) == (again.supported, again.refuted)


def test_the_criterion_of_c3() -> None:
    def verdict(low: float, high: float) -> str:
        return decide(Estimate(1.0, math.log10(low), math.log10(high), 3))

    assert verdict(6, 19) == "supported"
    assert verdict(4, 19) == verdict(6, 21) == "undecided"
    assert verdict(21, 30) == verdict(1, 4.9) == "refuted"
    assert decide(Estimate(1.0, None, None, 1)) == "undecided"
    assert decide(Estimate(0.0, -0.1, 0.1, 3), shift=1.0) == "supported"


def test_a_rate_knows_its_error() -> None:
    assert rate([True, False, True, True]) == Rate(0.75, 4)
    assert Rate(0.75, 4).error == pytest.approx(math.sqrt(0.75 * 0.25 / 4))
    assert math.isnan(rate([]).share) and math.isnan(rate([]).error)


@pytest.mark.parametrize(
    ("replications", "ratio", "law"), [(0, 10.0, "at least one"), (5, -1.0, "positive and finite")]
)
def test_what_cannot_be_simulated_is_refused(replications: int, ratio: float, law: str) -> None:
    with pytest.raises(ValueError, match=law):
        ratio_rates(REGIMES["low noise"], replications, rng(), ratios=(ratio,))
