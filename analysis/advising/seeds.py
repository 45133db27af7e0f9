"""How many seeds to plan: for the learning rate, and for the score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import chi2

from analysis.advising.grid import COARSE, FINE, Grid
from analysis.advising.own import OwnSweep
from analysis.claims.margin import default_margin
from analysis.estimates.power import POWER, seeds_for_margin
from analysis.estimates.stats import CONFIDENCE, MAX_SEEDS, PooledSd
from analysis.reading.arms import arms

SEARCH_SEEDS, REPORT_SEEDS = 3, 5
DECIDED = {
    (FINE, "clear", 3): 0.9,
    (FINE, "soft", 3): 0.5,
    (FINE, "soft", 5): 0.8,
    (COARSE, "soft", 3): 0.05,
    (COARSE, "wide", 3): 0.35,
    (COARSE, "soft", 10): 0.45,
    (COARSE, "wide", 10): 0.8,
}
"""Share of simulated sweeps in which C3 finds a true ratio of 10 supported, rounded, by spacing in
decades, shape and search seeds; ``python -m analysis simulate`` has any other design."""


@dataclass(frozen=True)
class SeedAdvice:
    """Seeds of both phases, each with the reason."""

    search: int
    search_why: str
    report: int
    report_why: str


def _percent(spacing: float, shape: str, seeds: int) -> str:
    return f"{100 * DECIDED[spacing, shape, seeds]:.0f} %"


_FINE = (
    f"on a quarter-decade grid, 3 seeds decide a true LR ratio of 10 in about "
    f"{_percent(FINE, 'clear', 3)} of simulated sweeps where the cliff is clear, in "
    f"{_percent(FINE, 'soft', 3)} where it is soft (5 seeds: {_percent(FINE, 'soft', 5)})"
)
_COARSE = (
    "on a half-decade grid, seeds only locate the plateau: 3 decide a true LR ratio of 10 in about "
    f"{_percent(COARSE, 'soft', 3)} (soft cliff) to {_percent(COARSE, 'wide', 3)} (wide plateau) "
    f"of simulated sweeps, 10 in {_percent(COARSE, 'soft', 10)} to "
    f"{_percent(COARSE, 'wide', 10)}; sweep quarter decades around it next"
)
_DEFAULT = (
    "5 seeds support a true equality within twice the run SD in 74 to 88 % of simulated cases, 3 "
    "in 24 to 52 %; no own sweep gives a noise floor"
)


def seed_advice(grid: Grid, owned: Sequence[OwnSweep]) -> SeedAdvice:
    """What to plan for a grid, with the noise of the user's own sweeps where it is known."""
    report, why = next(filter(None, map(_from_noise, owned)), (REPORT_SEEDS, _DEFAULT))
    return SeedAdvice(SEARCH_SEEDS, _FINE if grid.spacing <= FINE else _COARSE, report, why)


def _from_noise(own: OwnSweep) -> tuple[int, str] | None:
    """Report seeds for the margin of a sweep's own experiment, from its own noise."""
    floor, margin = own.search.floor, _margin(own)
    if floor is None or margin is None or not floor.sd > 0:
        return None
    low, high = sd_interval(floor)
    needed, best, worst = (seeds_for_margin(margin, sd) for sd in (floor.sd, low, high))
    return needed or MAX_SEEDS, (
        f"{_count(needed)} seeds ({_count(best)} to {_count(worst)} over the SD's interval) "
        f"support a true equality within ±{margin:.3f} with {100 * POWER:.0f} % power: run SD "
        f"{floor.sd:.4f} [{low:.4f}, {high:.4f}], {floor.df} df over {floor.cells} cells of "
        f"{own.label}"
    )


def _count(seeds: int | None) -> str:
    return f"more than {MAX_SEEDS}" if seeds is None else str(seeds)


def sd_interval(floor: PooledSd) -> tuple[float, float]:
    """90 % interval of a pooled SD of normal runs, by chi-square."""
    tail = (1 - CONFIDENCE) / 2
    low, high = (float(chi2.ppf(q, floor.df)) for q in (1 - tail, tail))
    return floor.sd * math.sqrt(floor.df / low), floor.sd * math.sqrt(floor.df / high)


def _margin(own: OwnSweep) -> float | None:
    """The declared margin, or the default share of FullFT's gain over the untrained model."""
    declared = own.sweep.experiment.get("margin")
    if declared is not None:
        return float(declared)
    full = next((arm.name for arm in arms(own.sweep) if arm.is_full), None)
    curve = own.search.curves.get(full or "")
    if curve is None or curve.base is None:
        return None
    return default_margin(float(curve.means.max()) - curve.base)
