"""Early stopping against the full search, on sweeps made of recorded curves."""

from __future__ import annotations

import pytest

from study.compose import compose
from study.config import EarlyStoppingConfig
from tests.unit.sweep.modes.simulated_search import (
    CURVES,
    compare,
    plateau,
    recorded,
    search,
)

ALL_AT_ONCE = 45
"""Lanes for every search run of the quickstart: 3 arms, 5 learning rates, 3 seeds."""
AT_MOST = 0.5
"""Share of the full search's steps that early stopping may take."""
WORSE_BY = 0.03
"""Share of arms by which it may miss the plateau more often than the full search."""


@pytest.fixture(scope="module")
def settings() -> EarlyStoppingConfig:
    """What the shipped experiment sets."""
    experiment = compose(["experiment=best_rate"]).experiment
    assert experiment is not None and experiment.early_stopping is not None
    return experiment.early_stopping


def test_the_recorded_curves_are_a_whole_search() -> None:
    curves = recorded()
    assert list(curves) == ["full", "lora-r1", "lora-r8"]
    assert all(len(rates) == 5 for rates in curves.values())
    assert all(len(seeds) >= 3 for rates in curves.values() for seeds in rates.values())
    assert all(0 < len(plateau(rates)) < 5 for rates in curves.values())
    assert CURVES.stat().st_size < 60_000


def test_a_search_in_lockstep_by_hand(settings: EarlyStoppingConfig) -> None:
    # One arm, one seed; 5 rates, of which 3, 2, 1 go on after steps 25, 50, 100:
    # 2 x 25 + 1 x 50 + 1 x 100 + 1 x 150 = 350 of 750 steps.
    rates = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
    steps = (25, 50, 75, 100, 125, 150)
    runs = {("a", rate, 0): dict.fromkeys(steps, 0.1 * i) for i, rate in enumerate(rates)}
    found = search(runs, settings, lanes=5)
    assert found.trained == 350
    assert found.stopped == {("a", rate, 0) for rate in rates[:4]}
    alone = search(runs, settings, lanes=1)
    # One after the other: only the last, the best one, starts when the seed is complete.
    assert (alone.stopped, alone.trained) == (set(), 750)


def test_early_stopping_costs_half_and_selects_as_well(settings: EarlyStoppingConfig) -> None:
    found = compare(recorded(), settings, sweeps=60, lanes=ALL_AT_ONCE)
    assert found.cost <= AT_MOST
    assert found.hits >= found.full_hits - WORSE_BY


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("lanes", "most"),
    [(ALL_AT_ONCE, AT_MOST), (16, AT_MOST), (8, 0.55), (1, 0.55)],
)
def test_the_same_over_500_sweeps_whatever_trains_at_once(
    settings: EarlyStoppingConfig, lanes: int, most: float
) -> None:
    found = compare(recorded(), settings, sweeps=500, lanes=lanes)
    assert found.cost <= most
    assert found.hits >= found.full_hits - WORSE_BY
