"""What the page of an experiment that decides no claim says first: what the experiment is for."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.claims.comparison import exploratory
from analysis.estimates.ablation import Ablation, Change, ablation
from analysis.reading.sweep import Sweep
from analysis.reporting.numbers import difference_text
from analysis.reporting.winner import Winner, winner, winner_lines


@dataclass(frozen=True, kw_only=True)
class Opening:
    """The first lines of an experiment that searches or takes apart."""

    lines: list[str]
    """Empty where scores and rates, the summary, are what it is for."""
    decides_none: str
    """Why it decides no claim, a sentence; empty where it may."""
    winner: Winner | None = None
    """Of a joint search that is over."""
    ablation: Ablation | None = None


def opening(sweep: Sweep) -> Opening:
    """The winner of a joint search, the steps of an ablation, and why neither decides a claim."""
    obstacle = exploratory(sweep)
    reason = "" if obstacle is None else f"{obstacle.reason[0].lower()}{obstacle.reason[1:]}"
    decides_none = f"This experiment decides no claim, because {reason}" if reason else ""
    if sweep.is_joint:
        found = winner(sweep)
        return Opening(lines=winner_lines(sweep, found), decides_none=decides_none, winner=found)
    steps = ablation(sweep)
    lines = [] if steps is None else _steps(steps)
    return Opening(lines=lines, decides_none=decides_none, ablation=steps)


def _steps(found: Ablation) -> list[str]:
    """Every change with its gain in a line, and all of them together."""
    how = "in the order of the path" if found.path else "one factor at a time"
    changes = "; ".join(map(_step, found.changes)) or "no step yet"
    text = f"From {found.source} to {found.target}, {how}: {changes}."
    if not found.finished:
        text = f"Unfinished: {text[0].lower()}{text[1:]}"
    return [text, f"All together: {_gain(found.whole)}."]


def _step(change: Change) -> str:
    before, after = change.values
    values = "" if before is None and after is None else f" {_value(before)} to {_value(after)}"
    return f"{change.factor}{values} {_gain(change)}"


def _value(value: object) -> str:
    return "none" if value is None else str(value)


def _gain(change: Change) -> str:
    """The gain on report seeds, and what it is called."""
    if change.gain is None:
        return "not measured yet"
    return f"{difference_text(change.gain)} ({change.verdict})"
