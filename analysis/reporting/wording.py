"""Numbers and codes in words: what the report and the terminal say."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from analysis.claims.verdict import REFUTED, SUPPORTED, UNDECIDED, Verdict, direction
from analysis.estimates.stats import MIN_SEEDS, Estimate
from analysis.reading.arms import count_text, model_name, rate_text, task_name
from analysis.reading.sweep import Sweep
from analysis.reporting.glossary import meaning
from analysis.reporting.tables import REPORTED, ArmRow

EQUAL, NOTED = "all values equal", "see notes"
"""Why an estimate from enough seeds has no interval."""
MAX_NAMED = 4
"""LoRA arms that a sentence names one by one; with more, the tables do."""
RATIO_CLAIMS = ("C3",)
QUESTIONS = {
    "Does LoRA score the same as full fine-tuning?": ("C1", "C2"),
    "Does LoRA want about ten times its learning rate?": RATIO_CLAIMS,
}


def score_text(estimate: Estimate | None) -> str:
    """``0.495 [0.488, 0.502]``."""
    return _estimate_text(estimate, lambda x: f"{x:.3f}", EQUAL)


def difference_text(estimate: Estimate | None) -> str:
    """``-0.010 [-0.021, +0.001]``."""
    return _estimate_text(estimate, lambda x: f"{x:+.3f}", EQUAL)


def rate_estimate_text(estimate: Estimate | None) -> str:
    """``2.7e-4 [1.8e-4, 4.1e-4]``."""
    return _estimate_text(estimate, rate_text, NOTED)


def ratio_text(estimate: Estimate | None) -> str:
    """``10.2 [6.8, 15.3]``."""
    return _estimate_text(estimate, lambda x: f"{x:.1f}", NOTED)


def difference_cell(row: ArmRow) -> str:
    """An arm's difference to FullFT, or why there is none."""
    return _compared(row, row.difference_obstacle) or difference_text(row.difference)


def ratio_cell(row: ArmRow) -> str:
    """An arm's ratio of best learning rates to FullFT's, or why there is none."""
    centre = row.ratio.centre if row.ratio else None
    return _compared(row, row.ratio_obstacle) or ratio_text(centre)


def _compared(row: ArmRow, obstacle: str) -> str:
    """What stands in the place of a comparison that is not made; empty if it is."""
    if row.arm.is_full:
        return "baseline"
    return f"not compared: {meaning(obstacle)}" if obstacle else ""


def _estimate_text(estimate: Estimate | None, show: Callable[[float], str], why: str) -> str:
    """The point with its interval, or with the reason why none may be stated."""
    if estimate is None or not math.isfinite(estimate.point):
        return "none"
    if estimate.interval is None:
        few = f"n = {estimate.n}" if estimate.n < MIN_SEEDS else ""
        return f"{show(estimate.point)} (no interval, {few or why})"
    low, high = estimate.interval
    return f"{show(estimate.point)} [{show(low)}, {show(high)}]"


def first_line(sweep: Sweep) -> str:
    """Which model, task and seeds; for a lab model, how far its verdicts reach."""
    seeds = sweep.experiment["seeds"]
    search = count_text([len(seeds.get("search", []))], "search seed")
    report = count_text([len(seeds.get("report", []))], "report seed")
    line = f"Model {model_name(sweep)}, task {task_name(sweep)}, {search} and {report} per arm."
    if model_name(sweep).startswith("lab"):
        line += " A lab-scale verdict is a verdict about the lab model."
    return line


def banner(sweep: Sweep) -> str:
    """What is unfinished, stopped early, or that the sweep carries no verdict; empty if none."""
    parts = []
    if not sweep.complete:
        given_up = int((sweep.planned["status"] == "given up").sum())
        lost = f" ({given_up} without a result after failed attempts)" if given_up else ""
        parts.append(
            f"Unfinished: {len(sweep.runs)} of {sweep.expected} runs{lost}. What exists is drawn; "
            "every verdict is undecided."
        )
    if sweep.stops_early:
        statuses = sweep.planned["status"][sweep.planned["phase"] == "search"]
        pruned = int((statuses == "pruned").sum())
        parts.append(
            f"Early stopping: {pruned} of {len(statuses)} search runs were stopped early and have "
            "no score. What stands is the selected learning rate and its score on report seeds; "
            "curves and ratios are not estimated, and every verdict is undecided."
        )
    if sweep.kind == "adhoc":
        parts.append("An ad-hoc sweep: no criterion was declared, so it is drawn without verdicts.")
    if sweep.kind == "single":
        parts.append("A single run: drawn without verdicts.")
    return " ".join(parts)


def headlines(verdicts: Sequence[Verdict]) -> list[str]:
    """The verdicts on single arms, a line per question; empty without verdicts."""
    lines = []
    for question, claims in QUESTIONS.items():
        # The verdict on all ranks names more arms, and no baseline only where no arm has one.
        judged = [v for v in verdicts if v.claim_id in claims and len(v.arms) == 2 - _alone(v)]
        # C2 judges every rank, and C1 the highest once more: the last claim that speaks counts.
        last = max((v.claim_id for v in judged), default="")
        answers = _answers([v for v in judged if v.claim_id == last])
        if answers:
            text = "; ".join(answers)
            lines.append(f"{question} {text[0].upper()}{text[1:]}.")
    return lines


def _alone(verdict: Verdict) -> bool:
    return "no_baseline" in verdict.flags


def _answers(judged: Sequence[Verdict]) -> list[str]:
    """What is said of which arms, the supported first."""
    order = {SUPPORTED: 0, REFUTED: 1, UNDECIDED: 2}
    said: dict[str, list[str]] = {}
    for verdict in sorted(judged, key=lambda v: (_alone(v), order[v.verdict])):
        said.setdefault(_answer(verdict), []).append(verdict.arms[0])
    return [
        text.format(names=_listed(names), s="s" if len(names) == 1 else "")
        for text, names in said.items()
    ]


def _answer(verdict: Verdict) -> str:
    """A template; a refuted equality says on which side of full fine-tuning the arm lies."""
    if _alone(verdict):
        return f"not compared: {{names}} ({meaning('no_baseline')})"
    if verdict.verdict == REFUTED and verdict.claim_id not in RATIO_CLAIMS:
        side = direction(verdict.estimate or 0.0)
        return f"refuted: {{names}} score{{s}} {side} full fine-tuning"
    return f"{verdict.verdict} for {{names}}"


def summary(rows: Sequence[ArmRow]) -> list[str]:
    """What each arm scored, and which learning rate it wanted: a sentence or two."""
    lora = [row for row in rows if not row.arm.is_full]
    full = next((row for row in rows if row.arm.is_full), None)
    sentences = []
    if any(row.score for row in rows):
        sentences.append(_score_sentence(lora, full))
    if any(row.choice for row in rows):
        sentences.append(_rate_sentence(lora, full))
    return sentences or ["No run has a score yet."]


def _score_sentence(lora: Sequence[ArmRow], full: ArmRow | None) -> str:
    ordered = [row for row in (*_ends(lora), full) if row is not None]
    parts = [f"{row.arm.description} scores {_scored(row)}" for row in ordered]
    base = next((row.base for row in reversed(ordered) if row.base), None)
    ends = "the lowest and the highest LoRA arm: " if len(lora) > MAX_NAMED else ""
    text = f"At its own learning rate, {ends}{_listed(parts)}"
    return text + (f"; the untrained model scores {base.point:.3f}." if base else ".")


def _ends(lora: Sequence[ArmRow]) -> Sequence[ArmRow]:
    """All arms if they are few, else the one of lowest and the one of highest score."""
    if len(lora) <= MAX_NAMED:
        return lora
    scored = sorted((row for row in lora if row.score), key=lambda row: _point(row.score))
    return [scored[0], scored[-1]] if len(scored) > 1 else scored


def _point(estimate: Estimate | None) -> float:
    return math.nan if estimate is None else estimate.point


def _scored(row: ArmRow) -> str:
    if row.score is None:
        return "nothing yet"
    if row.score_from == REPORTED:
        return score_text(row.score)
    shown = score_text(row.score) if row.score.interval else f"{row.score.point:.3f}"
    return f"{shown} ({row.score_from})"


def _rate_sentence(lora: Sequence[ArmRow], full: ArmRow | None) -> str:
    chosen = [(row, row.choice) for row in (full, *lora) if row and row.choice]
    by_rate: dict[float, list[str]] = {}
    for row, choice in chosen:
        by_rate.setdefault(choice.learning_rate, []).append(row.arm.name)
    shown = [f"{_listed(names)} {rate_text(rate)}" for rate, names in by_rate.items()]
    how = "selected" if all(choice.final for _, choice in chosen) else "of best mean"
    if any(choice.so_far for _, choice in chosen):
        how = "best so far"
    text = f"Learning rates {how}: {'; '.join(shown)}."
    ratios = _ratios(lora)
    if 0 < len(ratios) <= MAX_NAMED:
        text += f" Best rate (middle of the plateau) over FullFT's: {'; '.join(ratios)}."
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
    return found + [f"{_listed(names)} not compared: {why}" for why, names in apart.items()]


def _with_n(ratio: Estimate) -> str:
    text = ratio_text(ratio)  # names n itself where n is why there is no interval
    return text if ratio.n < MIN_SEEDS else f"{text}, n = {ratio.n}"


def _listed(parts: Sequence[str]) -> str:
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else "".join(parts)


def verdict_line(verdict: Verdict) -> str:
    """One verdict for the terminal."""
    names = ", ".join(verdict.arms)
    return f"{verdict.claim_id} {verdict.verdict} [{names}]: {verdict.reason}"


def verdict_estimate(verdict: Verdict) -> str:
    """A verdict's estimate with its interval; the reason says why there is none."""
    if verdict.estimate is None or not math.isfinite(verdict.estimate):
        return "no estimate"
    low, high = verdict.interval or (None, None)
    estimate = Estimate(verdict.estimate, low, high, verdict.n_seeds, verdict.confidence)
    if verdict.claim_id in RATIO_CLAIMS:
        return ratio_text(estimate)
    return difference_text(estimate)


def quantity_text(value: float | None) -> str:
    """A large number to three digits: ``131,712`` or ``1.60e12``; a dash for none."""
    if value is None:
        return "-"
    if value < 1e9:
        return f"{value:,.0f}"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def seconds_text(value: float | None) -> str:
    """``90 s`` or ``12 min`` or ``3.4 h``; a dash for none."""
    if value is None:
        return "-"
    if value < 120:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


def claims_json(found: Sequence[Verdict]) -> str:
    """Verdicts as a JSON list; numbers that are not finite become null."""
    return json.dumps(_finite([asdict(verdict) for verdict in found]), indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
