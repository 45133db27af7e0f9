"""The arms of a sweep: how they are ordered and called, and the learning rate each goes by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from analysis.curve import SCORED_STATUSES
from analysis.load import Sweep


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
    """``low`` or ``high``: the best mean is at that end of the grid."""
    final: bool
    """Written by the sweep after the arm's search; otherwise the best mean so far."""


def arms(sweep: Sweep) -> tuple[Arm, ...]:
    """The arms of the plan: FullFT first, then by rank, then by name."""
    found = []
    for name, arm in sweep.plan["arms"].items():
        method = arm["config"].get("method", {})
        found.append(Arm(name, str(method.get("name", "unknown")), method.get("rank")))
    return tuple(sorted(found, key=lambda a: (not a.is_full, a.rank or 0, a.name)))


def subject(sweep: Sweep) -> str:
    """Model and task in words, and how far the sweep is: what every figure is about."""
    text = f"{model_name(sweep)}, {task_name(sweep)}"
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


def choice(sweep: Sweep, arm: str) -> Choice | None:
    """The learning rate an arm goes by: selected, or the best mean so far (ties: the lower)."""
    selection = sweep.selections.get(arm)
    if selection is not None:
        return Choice(selection.learning_rate, selection.edge, final=True)
    means = scored(sweep.runs, arm, "search").groupby("learning_rate")["score_final"].mean()
    if means.empty:
        return None
    best = float(means.index[int(means.to_numpy().argmax())])
    grid = sorted(sweep.plan["arms"][arm]["learning_rates"])
    edge = {grid[0]: "low", grid[-1]: "high"}.get(best) if len(grid) > 1 else None
    return Choice(best, edge, final=False)


def count_text(counts: Iterable[int], noun: str) -> str:
    """``3 search seeds``, or ``1 to 3 search seeds`` where counts differ."""
    values = sorted(set(counts))
    if not any(values):
        return f"no {noun}s"
    number = str(values[0]) if len(values) == 1 else f"{values[0]} to {values[-1]}"
    return f"{number} {noun}{'' if values == [1] else 's'}"


def rate_text(rate: float) -> str:
    """``2.7e-4`` for 0.00027: as learning rates are written in configs."""
    mantissa, exponent = f"{rate:.1e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"
