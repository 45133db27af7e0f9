"""The directory of an imported sweep: written whole, read back as a sweep."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from analysis.reading.files import PLANNED_COLUMNS, read_json
from analysis.reading.frames import from_plain, to_plain
from analysis.reading.sweep import EXCLUDED_COLUMNS, METRIC_COLUMNS, RECORD_COLUMNS, Sweep

PLAN, RUNS, METRICS, EXCLUDED = "plan.json", "runs.parquet", "metrics.parquet", "excluded.csv"


def write_imported(
    path: Path,
    plan: dict[str, Any],
    runs: pd.DataFrame,
    metrics: pd.DataFrame,
    excluded: pd.DataFrame,
) -> None:
    """Write the directory of an imported sweep: whole, or not at all.

    One that holds the same import (source and map) is refreshed file by file, ``plan.json`` last,
    and whatever else lies in it stays; its looks grow if the rows have changed.

    Raises:
        ValueError: if something else is at ``path``, or it cannot be written.
    """
    check_free(path, plan)
    old = _imported_plan(path)
    if old is not None:
        changed = old["import"].get("sha256") != plan["import"]["sha256"]
        plan = {**plan, "looks": int(old.get("looks", 1)) + changed}
    draft = path.parent / f".{path.name}.import-{os.getpid()}"
    try:
        draft.mkdir(parents=True)
        to_plain(runs).to_parquet(draft / RUNS, index=False)
        metrics.to_parquet(draft / METRICS, index=False)
        excluded.to_csv(draft / EXCLUDED, index=False)
        text = json.dumps(plan, indent=1, allow_nan=False) + "\n"
        (draft / PLAN).write_text(text, encoding="utf-8")
        if path.exists():
            for name in (RUNS, METRICS, EXCLUDED, PLAN):
                os.replace(draft / name, path / name)
        else:
            os.replace(draft, path)
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def check_free(path: Path, plan: dict[str, Any]) -> None:
    """Refuse to write over anything but the same import.

    Raises:
        ValueError: if a file, or a directory that holds something else, is at ``path``.
    """
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    old = _imported_plan(path)
    if old is None or _identity(old) != _identity(plan):
        held = "another sweep" if old is None else f"an import of {old['import'].get('source')}"
        raise ValueError(
            f"{path} holds {held}{'' if old is None else ' by another map'}: choose another --out"
            if path.is_dir()
            else f"{path} is a file: choose another --out"
        )


def _identity(plan: dict[str, Any]) -> str:
    same = ("source", "column_map", "constants", "history", "history_map", "worst_score")
    return json.dumps([plan["import"].get(key) for key in same], sort_keys=True)


def _imported_plan(path: Path) -> dict[str, Any] | None:
    plan, _ = read_json(path / PLAN) if path.is_dir() else (None, "")
    return plan if plan is not None and isinstance(plan.get("import"), dict) else None


def read_imported(path: Path, plan: dict[str, Any]) -> Sweep:
    """Read the directory of an imported sweep.

    Args:
        path: The directory.
        plan: Its checked plan.

    Raises:
        ValueError: if a file is not there, is damaged, or lacks a column.
    """
    runs = from_plain(_frame(path / RUNS, pd.read_parquet, RECORD_COLUMNS))
    metrics = _frame(path / METRICS, pd.read_parquet, METRIC_COLUMNS)
    excluded = _frame(path / EXCLUDED, _read_text, EXCLUDED_COLUMNS)
    statuses = dict(zip(runs["run_id"], runs["status"], strict=True))
    planned = pd.DataFrame(plan["runs"], columns=list(PLANNED_COLUMNS))
    found = [statuses.get(run_id, "missing") for run_id in planned["run_id"]]
    return Sweep(
        path=path,
        plan=plan,
        runs=runs,
        metrics=metrics,
        planned=planned.assign(status=pd.Series(found, dtype="object")),
        excluded=excluded,
    )


def _read_text(file: Path) -> pd.DataFrame:
    return pd.read_csv(file, dtype=str, keep_default_na=False)


def _frame(
    file: Path, read: Callable[[Path], pd.DataFrame], columns: tuple[str, ...]
) -> pd.DataFrame:
    try:
        frame = read(file)
    except FileNotFoundError as error:
        raise ValueError(f"{file} is not there: import the sweep again") from error
    except (pa.ArrowInvalid, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ValueError(f"{file} is damaged, import the sweep again: {error}") from error
    absent = [name for name in columns if name not in frame]
    if absent:
        raise ValueError(f"{file} lacks {', '.join(absent)}: import the sweep again")
    return frame[list(columns)]
