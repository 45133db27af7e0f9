"""Which layers an arm adapts, and how many parameters that trains."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pandas as pd

from analysis.claims.groups import value
from analysis.reading.arms import Arm
from analysis.reading.sweep import Sweep
from study.plan.description import ATTENTION, MLP

PRESETS = {
    "all": "all",
    "all-linear": "all",
    "attention": "attention",
    "mlp": "mlp",
}


def layer_set(sweep: Sweep, arm: Arm) -> str:
    """``all``, ``attention`` or ``mlp``; empty for FullFT and any other choice of layers."""
    if arm.is_full:
        return ""
    targets = value(sweep, arm, "method.target_modules")
    if isinstance(targets, list) and len(targets) == 1:
        targets = targets[0]
    if isinstance(targets, str) and targets in PRESETS:
        return PRESETS[targets]
    if isinstance(targets, list):
        return _by_leaves(map(str, targets))
    return _by_leaves(map(str, sweep.plan["arms"][arm.name].get("target_modules") or ()))


def _by_leaves(names: Iterable[str]) -> str:
    leaves = {name.rsplit(".", 1)[-1] for name in names}
    known = {frozenset(ATTENTION): "attention", frozenset(MLP): "mlp"}
    known[frozenset((*ATTENTION, *MLP))] = "all"
    return known.get(frozenset(leaves), "")


def parameters(sweep: Sweep, arm: Arm) -> float | None:
    """Trainable parameters of an arm; None where neither plan nor records know."""
    planned = sweep.plan["arms"][arm.name].get("trainable_params")
    if planned is not None and math.isfinite(planned):
        return float(planned)
    if "trainable_params" not in sweep.runs:
        return None
    rows = sweep.runs["trainable_params"][sweep.runs["arm"] == arm.name]
    known = pd.to_numeric(rows, errors="coerce").dropna()
    return float(known.iloc[0]) if len(known) else None
