"""How two experiments differ, apart from what they found: settings, engine, versions, commits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.comparing.matching import Pair
from analysis.reading.arms import rate_text
from analysis.reading.load import provenance
from analysis.reading.sweep import Sweep

UNKNOWN = "not stated"
IMPLIED = ("model.model_revision", "model.total_params")
"""Keys that need no line of their own where the model's name differs already."""


@dataclass(frozen=True)
class SettingDifference:
    """A setting in which matched arms differ."""

    key: str
    a: str
    b: str
    arms: tuple[str, ...]
    """Labels of the pairs; empty if it holds for all of them."""


def setting_differences(a: Sweep, b: Sweep, pairs: Sequence[Pair]) -> tuple[SettingDifference, ...]:
    """Config keys and learning-rate grids that differ between matched arms, by key.

    A key that only one side states is a difference to ``not stated``: an imported sweep says
    little about how it was made.
    """
    found: dict[tuple[str, str, str], list[str]] = {}
    for pair in pairs:
        first = pair.a.settings | {"learning rates": _grid(a, pair.a.name)}
        second = pair.b.settings | {"learning rates": _grid(b, pair.b.name)}
        for key in {*first, *second}:
            old, new = _shown(first.get(key)), _shown(second.get(key))
            if old != new:
                found.setdefault((key, old, new), []).append(pair.label)
    named = any(key == "model.name" for key, _, _ in found)
    return tuple(
        SettingDifference(key, old, new, () if len(labels) == len(pairs) else tuple(labels))
        for (key, old, new), labels in sorted(found.items(), key=lambda item: item[0][0])
        if not (named and key in IMPLIED)
    )


def _shown(value: Any) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:g}" if isinstance(value, float) else str(value)


def _grid(sweep: Sweep, arm: str) -> str:
    rates = sorted(sweep.plan["arms"][arm]["learning_rates"])
    if len(rates) == 1:
        return rate_text(rates[0])
    return f"{len(rates)} from {rate_text(rates[0])} to {rate_text(rates[-1])}"


def origin_differences(a: Sweep, b: Sweep) -> tuple[SettingDifference, ...]:
    """Seeds, engine, commit and package versions, where they differ or one side lacks them."""
    first, second = _origin(a), _origin(b)
    return tuple(
        SettingDifference(key, first.get(key, UNKNOWN), second.get(key, UNKNOWN), ())
        for key in dict.fromkeys((*first, *second))
        if first.get(key, UNKNOWN) != second.get(key, UNKNOWN)
    )


def _origin(sweep: Sweep) -> dict[str, str]:
    seeds = sweep.experiment["seeds"]
    found = {
        f"{phase} seeds": ", ".join(map(str, seeds.get(phase) or [])) or "none"
        for phase in ("search", "report")
    }
    engines = _column(sweep.runs, "engine") or [str(sweep.plan.get("engine") or UNKNOWN)]
    found["engine"] = _joined(engines)
    found["commit"] = _joined(commit[:12] for commit in _column(sweep.runs, "git_commit"))
    packages: dict[str, set[str]] = {}
    for run_id in _one_run_each(sweep.runs):
        versions = provenance(sweep, run_id).get("packages")
        for name, version in (versions if isinstance(versions, dict) else {}).items():
            if version is not None:
                packages.setdefault(f"{name} version", set()).add(str(version))
    return found | {name: _joined(versions) for name, versions in sorted(packages.items())}


def _column(runs: pd.DataFrame, name: str) -> list[str]:
    return [str(v) for v in runs[name].dropna().unique() if v] if name in runs.columns else []


def _joined(values: Iterable[str]) -> str:
    return " and ".join(sorted(set(values))) or UNKNOWN


def _one_run_each(runs: pd.DataFrame) -> list[str]:
    """A run for each commit and engine: versions change with a launch, not with a learning rate."""
    keys = [key for key in ("git_commit", "engine") if key in runs.columns]
    if not keys:
        return []
    return [str(run_id) for run_id in runs.drop_duplicates(keys)["run_id"]]
