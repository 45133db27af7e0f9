"""The arms of a sweep: how they are ordered and called, and the learning rate each goes by."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from analysis.reading.sweep import Sweep
from study.records.record import SCORED_STATUSES


@dataclass(frozen=True)
class Arm:
    """An arm as figures and tables order and label it: FullFT first, then by rank."""

    name: str
    method: str
    rank: int | None

    @property
    def is_full(self) -> bool:
        """Whether every parameter is trained."""
        return self.method == "full"

    @property
    def description(self) -> str:
        """The arm in words, for sentences."""
        if self.is_full:
            return f"FullFT ({self.name})"
        return f"LoRA at rank {self.rank} ({self.name})" if self.rank else self.name


@dataclass(frozen=True)
class Choice:
    """The grid rate an arm goes by."""

    learning_rate: float
    edge: str | None
    """``low`` or ``high``: it is that end of the grid."""
    final: bool
    """Selected by the sweep when the arm's search was over; otherwise the rate of best mean."""
    so_far: bool
    """Not selected, and the sweep is unfinished: it may yet change."""


def arms(sweep: Sweep) -> tuple[Arm, ...]:
    """The arms of the plan: FullFT first, then by rank, then by name."""
    found = []
    for name, arm in sweep.plan["arms"].items():
        method = arm["config"]["method"]
        found.append(Arm(name, method["name"], method.get("rank")))
    return tuple(sorted(found, key=lambda a: (not a.is_full, a.rank or 0, a.name)))


def subject(sweep: Sweep) -> str:
    """Model and task in words, and how far the sweep is: what every figure is about."""
    names = (model_name(sweep), task_name(sweep))
    text = ", ".join(name for name in names if not name.startswith("unnamed")) or sweep.name
    if not sweep.complete:
        text += f"; unfinished, {len(sweep.runs)} of {sweep.expected} runs"
    return text


def model_name(sweep: Sweep) -> str:
    """Label of the model, or of the models when arms differ in it."""
    return _labels(sweep, "model", ("name",))


def task_name(sweep: Sweep) -> str:
    """Name of the task with its family or data set, or of the tasks when arms differ in it."""
    return _labels(sweep, "task", ("family", "dataset"))


def _labels(sweep: Sweep, group: str, details: tuple[str, ...]) -> str:
    labels = []
    for arm in sweep.plan["arms"].values():
        config = arm["config"].get(group, {})
        name = str(config.get("name", f"unnamed {group}"))
        detail = [str(config[key]) for key in details if key != "name" and config.get(key)]
        labels.append(f"{name} ({', '.join(detail)})" if detail else name)
    return " / ".join(dict.fromkeys(labels))


def scored(runs: pd.DataFrame, arm: str, phase: str) -> pd.DataFrame:
    """The runs of one arm and phase that count: completed, or diverged at the worst value."""
    mine = (runs["arm"] == arm) & (runs["phase"] == phase)
    return runs[mine & runs["status"].isin(SCORED_STATUSES) & runs["score_final"].notna()]


def base_score(runs: pd.DataFrame, phase: str) -> float | None:
    """Mean score of the untrained model on the prompts of a phase."""
    values = runs["score_base"][runs["phase"] == phase].dropna()
    return float(values.mean()) if len(values) else None


def reported(sweep: Sweep, arm: str) -> pd.DataFrame:
    """The report runs of an arm that count: those at the learning rate that the arm goes by."""
    rows = scored(sweep.runs, arm, "report")
    chosen = choice(sweep, arm)
    keep = [chosen is not None and same_rate(x, chosen.learning_rate) for x in rows.learning_rate]
    return rows[pd.Series(keep, index=rows.index, dtype=bool)]


def choice(sweep: Sweep, arm: str) -> Choice | None:
    """The learning rate an arm goes by: selected, or that of the best mean (ties: the lower)."""
    selected = sweep.selections.get(arm)
    rate = preferred_rate(sweep, arm) if selected is None else selected
    if rate is None:
        return None
    grid = sorted(sweep.plan["arms"][arm]["learning_rates"])
    sides = {"low": grid[0], "high": grid[-1]}
    ends = [side for side, end in sides.items() if same_rate(rate, end)]
    edge = ends[0] if len(ends) == 1 else None  # both ends: a grid of one rate
    final = selected is not None
    return Choice(rate, edge, final=final, so_far=not final and not sweep.complete)


def preferred_rate(sweep: Sweep, arm: str) -> float | None:
    """The grid rate of best mean search score now, by the sweep's own rule (ties: the lower).

    A rate that early stopping ended on any seed does not compete.
    """
    means = sweep.search_means.get(arm, {})
    sign = -1.0 if sweep.direction == "minimize" else 1.0
    return min(means, key=lambda rate: (-sign * means[rate], rate), default=None)


def same_rate(a: float, b: float) -> bool:
    """Whether two learning rates are one: identities keep six significant digits."""
    return math.isclose(a, b, rel_tol=1e-6)


def count_text(counts: Iterable[int], noun: str) -> str:
    """``3 search seeds``, or ``1 to 3 search seeds`` where counts differ."""
    values = sorted(set(counts))
    if not any(values):
        return f"no {noun}s"
    number = str(values[0]) if len(values) == 1 else f"{values[0]} to {values[-1]}"
    return f"{number} {noun}{'' if values == [1] else 's'}"


def signed_text(value: float, decimals: int) -> str:
    """``+0.22``; what would read as zero keeps its first digit, ``+0.004``: its side may decide."""
    text = f"{value:+z.{decimals}f}"
    return f"{value:+.1g}" if float(text) == 0 and abs(value) > 1e-6 else text


def rate_text(rate: float) -> str:
    """``2.7e-4`` for 0.00027: as learning rates are written in configs."""
    mantissa, exponent = f"{rate:.1e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"
