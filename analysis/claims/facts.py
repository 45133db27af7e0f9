"""Facts of an arm that claims and comparisons go by: layers, parameters, width, alpha."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pandas as pd

from analysis.claims.groups import value
from analysis.reading.arms import Arm
from analysis.reading.sweep import Sweep
from study.plan.description import ATTENTION, MLP

ALPHA_KEYS = ("method.alpha_rule", "method.lora_alpha")
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
    return _recorded(sweep, arm, "trainable_params")


def hidden_size(sweep: Sweep, arm: Arm) -> int | None:
    """Width of an arm's model; None where neither plan nor records know it."""
    known = sweep.plan["arms"][arm.name].get("model") or {}
    if isinstance(known, dict) and known.get("hidden_size"):
        return int(known["hidden_size"])
    recorded = _recorded(sweep, arm, "hidden_size")
    return None if recorded is None else int(recorded)


def _recorded(sweep: Sweep, arm: Arm, column: str) -> float | None:
    """The number in the first record of an arm that has one."""
    if column not in sweep.runs:
        return None
    rows = sweep.runs[column][sweep.runs["arm"] == arm.name]
    known = pd.to_numeric(rows, errors="coerce").dropna()
    return float(known.iloc[0]) if len(known) else None


def alpha_of(sweep: Sweep, arm: Arm) -> float | None:
    """Alpha of an arm's update alpha / r x B A; None where it is not known."""
    rule, constant = (value(sweep, arm, key) for key in ALPHA_KEYS)
    rank = arm.rank
    if rule == "2r" and rank is not None:
        return 2.0 * rank
    if rule == "sqrt" and rank is not None and constant is not None:
        return float(constant) * math.sqrt(rank)
    return None if constant is None else float(constant)
