"""What the search seeds say about learning rates: computed once, for claims, tables and figures."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.estimates.curve import LrCurve, learning_rate_curves
from analysis.estimates.optimum import Optimum, optimum
from analysis.estimates.plateau import noise_floor, shared_fraction
from analysis.estimates.stats import PooledSd
from analysis.reading.sweep import Sweep


@dataclass(frozen=True)
class SearchSummary:
    """The search phase of the arms whose search is complete."""

    curves: dict[str, LrCurve]
    optima: dict[str, Optimum]
    fraction: float
    """Share of the rise below the top at which a plateau ends, the same for every arm."""
    floor: PooledSd | None
    """SD of a run, pooled over arms; None where too few cells carry one."""


def search_summary(sweep: Sweep) -> SearchSummary:
    """Curves and optima of the arms whose search has no hole, on one plateau threshold.

    A search with early stopping has none, whether or not a run was stopped: an arm that got through
    whole is no random one.
    """
    search = sweep.planned[sweep.planned["phase"] == "search"]
    waiting = set(search["arm"][~search["run_id"].isin(sweep.runs["run_id"])])
    runs = sweep.runs[~sweep.runs["arm"].isin(waiting)]
    curves = {} if sweep.stops_early else learning_rate_curves(runs)
    fraction = shared_fraction(curves.values())
    optima = {name: optimum(curve, fraction) for name, curve in curves.items()}
    return SearchSummary(curves, optima, fraction, noise_floor(curves.values(), fraction))
