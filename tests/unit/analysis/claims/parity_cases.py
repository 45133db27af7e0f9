"""Experiments in memory whose scores C1 and C2 are asked about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from analysis.claims import c01_parity, c02_rank_one
from analysis.claims.verdict import Verdict
from analysis.estimates.curve import LrCurve
from analysis.estimates.search import SearchSummary
from analysis.reading.sweep import Sweep
from tests.unit.analysis.simulated_sweeps import curve, experiment, judged

RATES = tuple(10.0 ** (np.arange(8) / 4 - 5))
SHAPE = np.array((0.2, 0.3, 0.6, 0.8, 0.8, 0.79, 0.0, 0.0))
SEED_OFFSETS = np.array((-0.01, 0.0, 0.01))


def search(arm: str, spread: float = 1.0) -> LrCurve:
    """Three seeds around a plateau at 0.8; run SD 0.01 times ``spread``."""
    rows = [SHAPE + offset * spread * (SHAPE > 0) for offset in SEED_OFFSETS]
    return curve(rows, RATES, arm=arm)


def parity_checks(sweep: Sweep, summary: SearchSummary) -> list[Verdict]:
    return [*c01_parity.check(sweep, summary), *c02_rank_one.check(sweep, summary)]


def verdicts(
    report: Mapping[str, Sequence[float]] | None, spread: float = 1.0, **settings: object
) -> list[Verdict]:
    arms = list(report) if report else ["full", "lora-r1", "lora-r8"]
    curves = {arm: search(arm, spread if arm != "full" else 1.0) for arm in arms}
    return judged(parity_checks, experiment(curves, report, **settings))  # type: ignore[arg-type]


def claim(found: list[Verdict], claim_id: str, *arms: str) -> Verdict:
    (only,) = [v for v in found if v.claim_id == claim_id and v.arms == arms]
    return only


FULL = [0.80, 0.81, 0.79, 0.80, 0.80]
SAME = [0.80, 0.80, 0.80, 0.79, 0.81]
NEAR = [0.75, 0.76, 0.74, 0.75, 0.75]  # 0.05 lower, the margin is 0.07
LOWER = [0.60, 0.61, 0.59, 0.60, 0.60]
NOISY = [0.72, 0.86, 0.69, 0.84, 0.66]
