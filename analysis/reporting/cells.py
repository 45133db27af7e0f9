"""Arms at single learning rates, planned runs by status, and cells that were run more than once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, TypeVar

import pandas as pd

from analysis.claims.groups import value
from analysis.estimates.stats import Estimate, mean_interval
from analysis.reading.arms import Arm, arms, choice, same_rate
from analysis.reading.sweep import Sweep
from study.records.record import RESULT_STATUSES, SCORED_STATUSES

WAITING = ("given up", "missing")
STATUSES = (*RESULT_STATUSES, *WAITING)
Counts = tuple[tuple[str, int], ...]
"""Runs by status, in the order of :data:`STATUSES`."""


@dataclass(frozen=True)
class CellRow:
    """One arm at one learning rate, search seeds."""

    arm: Arm
    learning_rate: float
    score: Estimate | None
    statuses: Counts
    chosen: bool


@dataclass(frozen=True)
class StatusRow:
    """Planned runs of one arm and phase, by status."""

    arm: Arm
    phase: str
    statuses: Counts


@dataclass(frozen=True)
class Repeat:
    """A cell and seed with more than one run: they are averaged as one."""

    arm: str
    phase: str
    learning_rate: float
    seed: int
    scores: tuple[float, ...]
    """Ascending."""

    @property
    def spread(self) -> float:
        """Largest minus smallest score."""
        return self.scores[-1] - self.scores[0]


def arms_by_subject(sweep: Sweep) -> list[Arm]:
    """The arms of one model and task together, in the order of the plan; FullFT first in each."""
    subjects: dict[tuple[Any, Any], list[Arm]] = {}
    for arm in arms(sweep):
        key = (value(sweep, arm, "model.name"), value(sweep, arm, "task.name"))
        subjects.setdefault(key, []).append(arm)
    return [arm for mates in subjects.values() for arm in mates]


def cell_rows(sweep: Sweep) -> list[CellRow]:
    """One row per arm and learning rate of the search grid, missing runs counted."""
    planned = sweep.planned[sweep.planned["phase"] == "search"]
    statuses = _counted(planned, [float(rate) for rate in planned["learning_rate"]])
    scores = _scores_by_cell(sweep.runs)
    rows = []
    for arm in arms_by_subject(sweep):
        chosen = choice(sweep, arm.name)
        for rate in sorted(rate for name, rate in statuses if name == arm.name):
            is_chosen = chosen is not None and same_rate(chosen.learning_rate, rate)
            key = (arm.name, rate)
            rows.append(CellRow(arm, rate, scores.get(key), statuses[key], is_chosen))
    return rows


def _scores_by_cell(runs: pd.DataFrame) -> dict[tuple[str, float], Estimate]:
    """Mean over seeds by arm and learning rate; rows of one seed count as one."""
    keep = (runs["phase"] == "search") & runs["status"].isin(SCORED_STATUSES)
    rows = runs[keep & runs["score_final"].notna()]
    seeds: dict[tuple[str, float, int], list[float]] = {}
    columns = (rows[name] for name in ("arm", "learning_rate", "seed", "score_final"))
    for arm, rate, seed, score in zip(*columns, strict=True):
        seeds.setdefault((str(arm), float(rate), int(seed)), []).append(float(score))
    cells: dict[tuple[str, float], list[float]] = {}
    for (arm, rate, _), scores in seeds.items():
        cells.setdefault((arm, rate), []).append(fmean(scores))
    return {cell: mean_interval(scores) for cell, scores in cells.items()}


def status_rows(sweep: Sweep) -> list[StatusRow]:
    """Planned runs by arm, phase and status."""
    counts = _counted(sweep.planned, [str(phase) for phase in sweep.planned["phase"]])
    return [
        StatusRow(arm, phase, counts[arm.name, phase])
        for arm in arms_by_subject(sweep)
        for phase in ("search", "report")
        if (arm.name, phase) in counts
    ]


Key = TypeVar("Key")


def _counted(planned: pd.DataFrame, keys: Sequence[Key]) -> dict[tuple[str, Key], Counts]:
    """Counts by status for every arm and key of its rows."""
    groups: dict[tuple[str, Key], list[str]] = {}
    for arm, key, status in zip(planned["arm"], keys, planned["status"], strict=True):
        groups.setdefault((str(arm), key), []).append(str(status))
    return {cell: _counts(statuses) for cell, statuses in groups.items()}


def _counts(statuses: Iterable[str]) -> Counts:
    counts = Counter(statuses)
    return tuple((status, counts[status]) for status in STATUSES)


def repeats(sweep: Sweep) -> list[Repeat]:
    """Every arm, phase, learning rate and seed that has more than one scored run."""
    rows = sweep.runs[sweep.runs["score_final"].notna()]
    cell = ["arm", "phase", "learning_rate", "seed"]
    twice = rows[rows.duplicated(cell, keep=False)]
    found: dict[tuple[str, str, float, int], list[float]] = {}
    for arm, phase, rate, seed, score in zip(
        *(twice[name] for name in (*cell, "score_final")), strict=True
    ):
        key = (str(arm), str(phase), float(rate), int(seed))
        found.setdefault(key, []).append(float(score))
    return [Repeat(*key, tuple(sorted(scores))) for key, scores in found.items()]
