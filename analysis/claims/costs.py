"""What the runs of an arm recorded of their work: the runs that its score comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from analysis.reading.arms import Arm, choice, reported, same_rate, scored
from analysis.reading.sweep import Sweep


def phase(sweep: Sweep) -> str:
    """``report``; ``search`` in an experiment that declares no report seeds."""
    return "report" if sweep.experiment["seeds"]["report"] else "search"


def chosen_runs(sweep: Sweep, arm: Arm) -> pd.DataFrame:
    """Runs of an arm that went to the end, at the learning rate it goes by.

    A diverged run is none of them: it did a part of the work.
    """
    if phase(sweep) == "report":
        rows = reported(sweep, arm.name)
    else:
        rows, chosen = scored(sweep.runs, arm.name, "search"), choice(sweep, arm.name)
        rate = None if chosen is None else chosen.learning_rate
        keep = [rate is not None and same_rate(own, rate) for own in rows["learning_rate"]]
        rows = rows[pd.Series(keep, index=rows.index, dtype=bool)]
    return rows[rows["status"] == "completed"]


def numbers(rows: pd.DataFrame, name: str) -> pd.Series[float]:
    """A column of runs, NaN where it is unknown; ``probes.NAME`` is a probe."""
    group, _, probe = name.partition(".")
    if group not in rows:
        return pd.Series(float("nan"), index=rows.index)
    values: pd.Series[Any] = rows[group]
    if probe:
        held = [one.get(probe) if isinstance(one, Mapping) else None for one in values]
        values = pd.Series(held, index=rows.index, dtype=object)
    return pd.to_numeric(values, errors="coerce")


def by_seed(rows: pd.DataFrame, values: pd.Series[float]) -> dict[int, float]:
    """Values of runs by ascending seed, without unknown ones; runs of one seed are one."""
    means = values.dropna().groupby(rows["seed"]).mean()
    return dict(zip(means.index.astype(int), means.astype(float), strict=True))


def records(sweep: Sweep, names: tuple[str, ...]) -> bool:
    """Whether some run of the sweep recorded all of these; of a sweep without runs yet, True."""
    if not len(sweep.runs):
        return True
    known = [numbers(sweep.runs, name).gt(0) for name in names]
    return bool(pd.concat(known, axis=1).all(axis=1).any())
