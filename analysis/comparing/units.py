"""Whether the scores of two experiments may be subtracted, and what may be where they may not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.comparing.matching import Pair
from analysis.reading.arms import task_name
from analysis.reading.sweep import Sweep

PROMPTS = ("evaluation.eval_prompts", "model.data_revision", "objective.temperature")
"""Keys that say how scores were measured, beside every key of the task."""


@dataclass(frozen=True)
class Units:
    """Why something may not be subtracted; empty where it may."""

    scores: str
    """Scores themselves: the same task, prompts and sampling are needed."""
    gains: str
    """Gains over the untrained model and gaps to FullFT: the same metric suffices."""


def compared_units(a: Sweep, b: Sweep, pairs: Sequence[Pair]) -> Units:
    """What the scores of two experiments have in common.

    Raises:
        ValueError: if runs of one experiment disagree in direction or metric.
    """
    if a.direction != b.direction:
        words = {"maximize": "higher", "minimize": "lower"}
        other = (
            f"{words[a.direction]} is better in A and {words[b.direction]} in B: scores, gains and "
            "gaps have no common unit"
        )
        return Units(other, other)
    if a.score_metric != b.score_metric:
        other = f"A is scored by {a.score_metric} and B by {b.score_metric}: no common unit"
        if a.imported or b.imported:
            other += "; if they are one, import with --set score_metric=NAME"
        return Units(other, other)
    if task_name(a) != task_name(b):
        tasks = f"the tasks differ ({task_name(a)}; {task_name(b)})"
        return Units(f"{tasks}: compare gains and gaps", "")
    changed = next(filter(None, map(_changed, pairs)), "")
    return Units(f"{changed}: compare gains and gaps" if changed else "", "")


def _changed(pair: Pair) -> str:
    """The first key of the evaluation in which the arms differ, or that one does not state."""
    a, b = pair.a.settings, pair.b.settings
    for key in sorted({key for key in (*a, *b) if key.startswith("task.") or key in PROMPTS}):
        if key not in a or key not in b:
            return f"{'A' if key not in a else 'B'} does not state {key}"
        if a[key] != b[key]:
            return f"{key} differs, so scores measure another thing"
    return ""
