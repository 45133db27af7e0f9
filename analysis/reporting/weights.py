"""What training did to the weights of each arm, and which runs could not be measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.claims.probed import Measured, contrast, exact, over_null, overall, share
from analysis.estimates.stats import Estimate
from analysis.reading.arms import Arm, arms
from analysis.reading.probes import unmeasured
from analysis.reading.sweep import Sweep

STATISTICS: dict[str, Measured] = {
    "unchanged_fp32": share("fp32"),
    "unchanged_bf16": share("bf16"),
    "relative_norm": overall("relative_norm"),
    "effective_rank_share": overall("effective_rank_share"),
    "energy_top_1": overall("energy_top_1"),
    "angle_left_mean_deg": overall("angle_left_mean_deg"),
    "principal_over_random": over_null("largest_on_principal", "turned"),
    "spectral_shift_over_random": over_null("spectral_shift", "turned"),
    "intruders": overall("intruders"),
}
PART = "weights"
NAMED = 3
"""Runs that are named for each reason."""


@dataclass(frozen=True)
class WeightRow:
    """One arm, over the runs that its score comes from."""

    arm: Arm
    values: dict[str, Estimate | None]
    """By name, of :data:`STATISTICS`."""


def weight_rows(sweep: Sweep) -> list[WeightRow]:
    """The arms whose weights were measured."""
    if not sweep.probes:
        return []
    rows = []
    for arm in arms(sweep):
        found = {name: contrast(sweep, arm, one) for name, one in STATISTICS.items()}
        values = {name: None if one is None else exact(one) for name, one in found.items()}
        if any(values.values()):
            rows.append(WeightRow(arm, values))
    return rows


def weights_frame(rows: Sequence[WeightRow]) -> pd.DataFrame:
    """The rows as columns of numbers, for ``tables/weights.csv``."""
    return pd.DataFrame([_columns(row) for row in rows])


def _columns(row: WeightRow) -> dict[str, Any]:
    columns: dict[str, Any] = {"arm": row.arm.name}
    for name, value in row.values.items():
        ends = (value.low, value.high, value.n) if value else (None, None, 0)
        columns |= {name: value.point if value else None}
        columns |= dict(zip((f"{name}_low", f"{name}_high", f"{name}_n"), ends, strict=True))
    return columns


def probe_lines(sweep: Sweep) -> list[str]:
    """How many runs were measured, and why others were not; empty where none was to be."""
    if not sweep.probes:
        return []
    names = dict(zip(sweep.runs["run_id"].map(str), sweep.runs["arm"].map(str), strict=True))
    reasons: dict[str, list[str]] = {}
    for run_id, content in sweep.probes.items():
        reason = unmeasured(content, PART)
        if reason:
            reasons.setdefault(reason, []).append(f"{names[run_id]}/{run_id}")
    measured = len(sweep.probes) - sum(map(len, reasons.values()))
    lines = [f"Weights measured by probes: {measured} of {len(sweep.runs)} runs"]
    for reason, runs in reasons.items():
        more = f" and {len(runs) - NAMED} more" if len(runs) > NAMED else ""
        lines.append(f"Weights not measured, {reason}: {', '.join(runs[:NAMED])}{more}")
    return lines
