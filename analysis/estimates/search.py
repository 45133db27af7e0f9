"""What the search seeds say about learning rates: computed once, for claims, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
    fractions: dict[str, float]
    """By arm, the share of the rise below the top at which its plateau ends: the same for all arms
    of one model, task and objective. A shallow curve of another model has no say in it."""
    floor: PooledSd | None
    """SD of a run, pooled over arms; None where too few cells carry one."""

    def fraction_of(self, *arms: str) -> float:
        """The fraction that a comparison of these arms uses: the smallest of theirs."""
        return min(self.fractions[arm] for arm in arms)


def search_summary(sweep: Sweep) -> SearchSummary:
    """Curves and optima of the arms whose search has no hole.

    A search with early stopping has none, whether or not a run was stopped: an arm that got through
    whole is no random one. Nor has a joint search, which tries arms at rates of its own choice.
    """
    search = sweep.planned[sweep.planned["phase"] == "search"]
    waiting = set(search["arm"][~search["run_id"].isin(sweep.runs["run_id"])])
    runs = sweep.grid_runs[~sweep.grid_runs["arm"].isin(waiting)]
    curves = {} if sweep.selects_only else learning_rate_curves(runs)
    fractions = _fractions(sweep, curves)
    optima = {name: optimum(curve, fractions[name]) for name, curve in curves.items()}
    floor = noise_floor((curve, fractions[name]) for name, curve in curves.items())
    return SearchSummary(curves, optima, fractions, floor)


def _fractions(sweep: Sweep, curves: Mapping[str, LrCurve]) -> dict[str, float]:
    groups: dict[str, list[str]] = {}
    for name in curves:
        groups.setdefault(_setting(sweep.plan["arms"][name]["config"]), []).append(name)
    return {
        name: fraction
        for names in groups.values()
        for fraction in (shared_fraction(curves[name] for name in names),)
        for name in names
    }


def _setting(config: Mapping[str, Any]) -> str:
    """Model, task and objective of an arm: arms that differ in them are never compared directly."""
    model, objective = config.get("model", {}), config.get("objective", {})
    return repr((model.get("name"), model.get("path"), config.get("task"), objective.get("name")))
