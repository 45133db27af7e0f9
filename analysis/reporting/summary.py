"""Two sentences for the first screen: what each arm scored, and the learning rate it wanted."""

from __future__ import annotations

import math
from collections.abc import Sequence

from analysis.estimates.stats import MIN_SEEDS, Estimate
from analysis.reading.arms import model_name, rate_text, task_name
from analysis.reading.sweep import Sweep
from analysis.reporting.glossary import meaning
from analysis.reporting.numbers import listed, ratio_text, score_text
from analysis.reporting.tables import REPORTED, ArmRow

MAX_NAMED = 4
"""LoRA arms that a sentence names one by one; with more, the tables do."""


def summary(sweep: Sweep, rows: Sequence[ArmRow]) -> list[str]:
    """What each arm scored, and which learning rate it wanted: a sentence or two."""
    subjects = len(_labels(model_name(sweep))) * len(_labels(task_name(sweep)))
    lora = [row for row in rows if not row.arm.is_full]
    full = [row for row in rows if row.arm.is_full]
    sentences = []
    if any(row.score for row in rows):
        scores = _score_sentence(lora, full) if subjects == 1 else _range_sentence(rows)
        better = " Lower is better." if sweep.direction == "minimize" else ""
        sentences.append(scores + better)
    if any(row.choice for row in rows):
        sentences.append(_rate_sentence(lora, full))
    return sentences or ["No run has a score yet."]


def _labels(names: str) -> list[str]:
    return names.split(" / ")


def _range_sentence(rows: Sequence[ArmRow]) -> str:
    """Of several models or tasks, whose scores make no ranking."""
    points = sorted(row.score.point for row in rows if row.score)
    return (
        f"Scores of {len(points)} arms lie between {points[0]:.3f} and {points[-1]:.3f}; models or "
        "tasks differ, so arms are compared within each only."
    )


def _score_sentence(lora: Sequence[ArmRow], full: Sequence[ArmRow]) -> str:
    ordered = [*_ends(lora), *_ends(full)]
    sources = {row.score_from for row in ordered}
    shared = sources.pop() if len(sources) == 1 else ""
    parts = [f"{row.arm.description} scores {_scored(row, shared)}" for row in ordered]
    base = next((row.base for row in reversed(ordered) if row.base), None)
    ends = "the lowest and the highest LoRA arm: " if len(lora) > MAX_NAMED else ""
    how = f" ({shared})" if shared and shared != REPORTED else ""
    text = f"At its own learning rate{how}, {ends}{listed(parts)}"
    return text + (f"; the untrained model scores {base.point:.3f}." if base else ".")


def _ends(arms: Sequence[ArmRow]) -> Sequence[ArmRow]:
    """All arms if they are few, else the one of lowest and the one of highest score."""
    if len(arms) <= MAX_NAMED:
        return arms
    scored = sorted((row for row in arms if row.score), key=lambda row: _point(row.score))
    return [scored[0], scored[-1]] if len(scored) > 1 else scored


def _point(estimate: Estimate | None) -> float:
    return math.nan if estimate is None else estimate.point


def _scored(row: ArmRow, shared: str) -> str:
    """The score; where it comes from unless that is said of all."""
    if row.score is None:
        return "nothing yet"
    if row.score_from == REPORTED:
        return score_text(row.score)
    shown = score_text(row.score) if row.score.interval else f"{row.score.point:.3f}"
    return shown if shared else f"{shown} ({row.score_from})"


def _rate_sentence(lora: Sequence[ArmRow], full: Sequence[ArmRow]) -> str:
    chosen = [(row, row.choice) for row in (*full, *lora) if row.choice]
    by_rate: dict[float, list[str]] = {}
    for row, choice in chosen:
        by_rate.setdefault(choice.learning_rate, []).append(row.arm.name)
    how = "selected" if all(choice.final for _, choice in chosen) else "of best mean"
    if any(choice.so_far for _, choice in chosen):
        how = "best so far"
    rates = sorted(by_rate)
    shown = "; ".join(f"{listed(names)} {rate_text(rate)}" for rate, names in by_rate.items())
    if len(by_rate) > 2 * MAX_NAMED or len(chosen) > 4 * MAX_NAMED:
        shown = f"from {rate_text(rates[0])} to {rate_text(rates[-1])} over {len(chosen)} arms"
    text = f"Learning rates {how}: {shown}."
    ratios = _ratios(lora)
    if 0 < len(ratios) <= MAX_NAMED:
        text += f" Best rate (LR*) over FullFT's: {'; '.join(ratios)}."
    return text


def _ratios(lora: Sequence[ArmRow]) -> list[str]:
    """Ratio and n by arm, then the arms that are not compared, by what forbids it."""
    found = [
        f"{row.arm.name} {_with_n(row.ratio.centre)}"
        for row in lora
        if row.ratio and math.isfinite(row.ratio.centre.point)
    ]
    apart: dict[str, list[str]] = {}
    for row in lora:
        if row.ratio_obstacle:
            apart.setdefault(meaning(row.ratio_obstacle), []).append(row.arm.name)
    return found + [f"{listed(names)} not compared: {why}" for why, names in apart.items()]


def _with_n(ratio: Estimate) -> str:
    text = ratio_text(ratio)  # names n itself where n is why there is no interval
    return text if ratio.n < MIN_SEEDS else f"{text}, n = {ratio.n}"
