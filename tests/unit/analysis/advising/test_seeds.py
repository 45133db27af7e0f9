"""The shares that the seed advice quotes are those of the simulator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analysis.advising.grid import COARSE, FINE
from analysis.advising.seeds import DECIDED
from analysis.simulate.draws import Design
from analysis.simulate.rates import ratio_rates
from analysis.simulate.regimes import SHAPES, Regime

POINTS = {("clear", FINE): 9, ("soft", FINE): 10, ("soft", COARSE): 6, ("wide", COARSE): 8}


@pytest.mark.nightly
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("spacing", "shape", "seeds"), list(DECIDED))
def test_shares_of_decided_sweeps(spacing: float, shape: str, seeds: int) -> None:
    design = Design(spacing=spacing, points=POINTS[shape, spacing])
    regime = Regime(SHAPES[shape], SHAPES[shape], replace(design, seeds=seeds))
    found = ratio_rates(regime, 400, np.random.default_rng(5)).supported[10.0]
    assert found.share == pytest.approx(DECIDED[spacing, shape, seeds], abs=0.1)
