"""Resolved rows -> the frames and the plan of an imported sweep."""

from __future__ import annotations

from typing import Any

import pandas as pd

from analysis.reading.arms import rate_text
from analysis.reading.files import JSON_TYPES, PLANNED_COLUMNS
from analysis.reading.importing.grouping import Arms
from analysis.reading.importing.resolve import PHASES, PLACED
from analysis.reading.sweep import EXCLUDED_COLUMNS, RECORD_COLUMNS
from study.plan.experiment import SCHEMA_VERSION as PLAN_SCHEMA_VERSION
from study.records.record import SCHEMA_VERSION

CELL = ["arm", "phase", "learning_rate", "seed"]
DIRECTIONS = ("maximize", "minimize")
NUMBERS = tuple(name for name, types in JSON_TYPES.items() if types & {int, float})
"""Columns of a record that hold numbers."""


def only_value(rows: pd.DataFrame, column: str) -> str | None:
    """What all rows say of the sweep as a whole; None where they say nothing.

    Raises:
        ValueError: if rows disagree, or ``direction`` is not ``maximize`` or ``minimize``.
    """
    said = sorted({str(word) for word in rows[column].dropna()}) if column in rows else []
    wrong = [word for word in said if column == "direction" and word not in DIRECTIONS]
    if wrong:
        raise ValueError(f"direction must be maximize or minimize, got {wrong[0]!r}")
    if len(said) > 1:
        raise ValueError(f"every run of a sweep must have one {column}, found {', '.join(said)}")
    return said[0] if said else None


def holes(placed: pd.DataFrame, results: int) -> pd.DataFrame:
    """Cells of the grid that rows were left out of and that no result fills, one row a cell.

    Args:
        placed: Results, then the rows that were left out of a cell, with their arm.
        results: Number of results.
    """
    filled = set(placed[CELL].iloc[:results].itertuples(index=False, name=None))
    left = placed.iloc[results:].drop_duplicates(CELL)
    open_cells = [cell not in filled for cell in left[CELL].itertuples(index=False, name=None)]
    return left[pd.Series(open_cells, left.index, dtype=bool)]


def runs_frame(rows: pd.DataFrame, arms: Arms, name: str) -> pd.DataFrame:
    """Results as the frame of runs: every column of a record, None or NaN where it is not known."""
    columns: dict[str, Any] = {c: list(rows[c]) for c in RECORD_COLUMNS if c in rows}
    parts = {part: _parts(rows, part) for part in ("dtypes", "probes")}
    columns |= {
        **parts,
        "target_modules": [_modules(row) for row in rows.to_dict("records")],
        "schema_version": [SCHEMA_VERSION] * len(rows),
        "experiment": [name] * len(rows),
        "factors": [arms.factor_values(arm) for arm in rows["arm"]],
        "flags": [[] for _ in range(len(rows))],
        "status_reason": [text or "" for text in rows["status_reason"]],
    }
    frame = pd.DataFrame(
        {c: pd.Series(columns.get(c, [None] * len(rows)), dtype=object) for c in RECORD_COLUMNS}
    )
    frame = frame.assign(**{c: pd.to_numeric(frame[c]) for c in NUMBERS})
    return frame.astype({c: float for c in NUMBERS if frame[c].isna().any()})


def _modules(row: dict[Any, Any]) -> list[str] | None:
    """Adapted modules: none under full fine-tuning, unknown where LoRA does not say."""
    modules: list[str] | None = row.get("target_modules")
    return [] if row["method"] == "full" else modules


def _parts(rows: pd.DataFrame, column: str) -> list[dict[str, Any]]:
    """The mapped parts of an object column, such as ``dtypes.base``, gathered."""
    inside = [str(c) for c in rows.columns if str(c).startswith(f"{column}.")]
    return [
        {c.partition(".")[2]: row[c] for c in inside if row[c] is not None}
        for row in rows.to_dict("records")
    ]


def excluded_frame(left: pd.DataFrame, placed: pd.DataFrame) -> pd.DataFrame:
    """Rows that are left out, each with its reason; the arm is empty where a row has none."""
    arm_of = {str(k): str(v) for k, v in zip(placed["run_id"], placed["arm"], strict=True)}
    rows = [
        {"run_id": row["run_id"] or "", "arm": arm_of.get(str(row["run_id"]), ""), **_why(row)}
        for row in left.to_dict("records")
    ]
    return pd.DataFrame(rows, columns=list(EXCLUDED_COLUMNS), dtype=object)


def _why(row: dict[Any, Any]) -> dict[str, str]:
    where = ""
    if row["kind"] in PLACED:
        where = f" (learning rate {rate_text(row['learning_rate'])}, seed {row['seed']})"
    return {"kind": row["kind"], "reason": row["reason"] + where}


def plan_of(
    name: str, planned: pd.DataFrame, arms: Arms, metric: str, block: dict[str, Any]
) -> dict[str, Any]:
    """What ``plan.json`` holds of an imported sweep.

    Args:
        name: Of the sweep.
        planned: Results and holes, with their arm.
        arms: The arms.
        metric: Name of the score.
        block: Where the sweep came from.

    Raises:
        ValueError: if a seed is in both phases: it would choose a rate and score it.
    """
    seeds = {
        phase: sorted({int(seed) for seed in planned["seed"][planned["phase"] == phase]})
        for phase in PHASES
    }
    shared = sorted(set(seeds["search"]) & set(seeds["report"]))
    if shared:
        raise ValueError(f"search and report seeds must be disjoint, both hold {shared}")
    return {
        "schema_version": PLAN_SCHEMA_VERSION,
        "experiment": {
            "name": name,
            "kind": "imported",
            "hypothesis": None,
            "decision_metric": metric,
            "criterion": None,
            "factors": arms.factors,
            "seeds": seeds,
            "margin": None,
        },
        "arms": {arm: _arm_entry(arm, planned, arms) for arm in arms.configs},
        "runs": planned[list(PLANNED_COLUMNS)].to_dict("records"),
        "looks": 1,
        "max_retries": 0,
        "import": block,
    }


def _arm_entry(arm: str, planned: pd.DataFrame, arms: Arms) -> dict[str, Any]:
    mine = planned[planned["arm"] == arm]
    entry: dict[str, Any] = {
        "config": arms.configs[arm],
        "factors": arms.factor_values(arm),
        "learning_rates": sorted(set(mine["learning_rate"])),
    }
    counts = set(mine["trainable_params"].dropna()) if "trainable_params" in mine else set()
    if len(counts) == 1:
        entry["trainable_params"] = counts.pop()
    return entry
