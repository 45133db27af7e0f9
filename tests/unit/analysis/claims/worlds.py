"""Sweeps of simulated curves whose best learning rates are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from analysis.claims.verdict import Verdict
from analysis.estimates.curve import LrCurve
from analysis.simulate.draws import ArmTruth, Design, simulate_curve

FIVE_SEEDS = Design(seeds=5)
FINE = Design(seeds=8, spacing=0.2, points=11)
COARSE = Design(seeds=3, spacing=0.5, points=6)


def world(
    truths: Mapping[str, ArmTruth], design: Design = FIVE_SEEDS, rng_seed: int = 0
) -> dict[str, LrCurve]:
    """The search phase of every arm; their seeds share effects, as in a real sweep."""
    rng = np.random.default_rng(rng_seed)
    effects = rng.standard_normal(design.seeds)
    return {
        name: simulate_curve(name, truth, design, rng, effects) for name, truth in truths.items()
    }


def cut_above(curve: LrCurve) -> LrCurve:
    """The curve with its grid ending at its best learning rate."""
    last = int(curve.means.argmax()) + 1
    return replace(
        curve,
        learning_rates=curve.learning_rates[:last],
        scores=curve.scores[:, :last],
        collapsed=curve.collapsed[:, :last],
    )


def only(verdicts: list[Verdict]) -> Verdict:
    """The single verdict of a list."""
    (found,) = verdicts
    return found
