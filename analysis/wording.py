"""Numbers and codes in words: what the report and the terminal say."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from analysis.arms import Arm, count_text, model_name, rate_text, task_name
from analysis.claims.verdict import Verdict
from analysis.load import Sweep
from analysis.stats import MIN_SEEDS, Estimate
from analysis.tables import REPORTED, ArmRow

MEANINGS = {
    "completed": "the run went to its last step",
    "diverged": "the loss, a weight or a probability became infinite or undefined; the run counts "
    "with the worst score, 0",
    "no_signal": "no group of completions had unequal rewards in the first steps: a fault of the "
    "set-up, no score",
    "pruned": "stopped early by the search; no score",
    "given up": "no record, and every attempt so far failed; launching the sweep again retries it",
    "missing": "planned, no record yet",
    "few_seeds": "fewer than 3 seeds: points, no interval, no verdict",
    "edge_low": "the plateau reaches the low end of the grid: the best learning rate is an upper "
    "bound, extend the grid downwards",
    "edge_high": "the plateau reaches the high end of the grid: the best learning rate is a lower "
    "bound, extend the grid upwards",
    "edge_seed": "the curve of some single seed does not leave the plateau inside the grid",
    "few_points": "too few learning rates, or too coarse a grid beside the plateau: no interval",
    "flat": "the rise over the untrained model is too small against the noise: no best learning "
    "rate",
    "unresolved": "an edge of the plateau is sharper than the grid; a finer grid there would "
    "narrow the interval",
    "not_unimodal": "the mean curve has more than one hump; look at the points",
    "shape_differs": "the two curves are not shifted copies of each other: ramp and cliff give "
    "different ratios, the verdict uses the centre",
    "saturated": "every completion of the last steps was correct",
    "truncated": "more than half of the last completions hit the length limit",
    "scorer_errors": "the scorer raised an error on some completions, which counted as wrong",
    "low": "the selected learning rate is the lowest of the grid",
    "high": "the selected learning rate is the highest of the grid",
}


def meaning(code: str) -> str:
    """A status or flag in words; the code itself where no words are known."""
    return MEANINGS.get(code, code.replace("_", " "))


def score_text(estimate: Estimate | None) -> str:
    """``0.495 [0.488, 0.502], n = 3``."""
    return _estimate_text(estimate, lambda x: f"{x:.3f}")


def difference_text(estimate: Estimate | None) -> str:
    """``-0.010 [-0.021, +0.001], n = 3``."""
    return _estimate_text(estimate, lambda x: f"{x:+.3f}")


def rate_estimate_text(estimate: Estimate | None) -> str:
    """``2.7e-4 [1.8e-4, 4.1e-4], n = 3``."""
    return _estimate_text(estimate, rate_text)


def ratio_text(estimate: Estimate | None) -> str:
    """``10.2 [6.8, 15.3], n = 3``."""
    return _estimate_text(estimate, lambda x: f"{x:.1f}")


def _estimate_text(estimate: Estimate | None, show: Any) -> str:
    if estimate is None or not math.isfinite(estimate.point):
        return "none"
    if estimate.interval is None:
        why = f"{count_text([estimate.n], 'seed')}" if estimate.n < MIN_SEEDS else "see notes"
        return f"{show(estimate.point)} (no interval: {why})"
    low, high = estimate.interval
    return f"{show(estimate.point)} [{show(low)}, {show(high)}], n = {estimate.n}"


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
    """What is unfinished, or that the kind of sweep carries no verdict; empty if neither."""
    parts = []
    if not sweep.complete:
        given_up = int((sweep.planned["status"] == "given up").sum())
        lost = f" ({given_up} without a result after failed attempts)" if given_up else ""
        parts.append(
            f"Unfinished: {len(sweep.runs)} of {sweep.expected} runs{lost}. What exists is drawn; "
            "every verdict is undecided."
        )
    if sweep.kind == "adhoc":
        parts.append("An ad-hoc sweep: no criterion was declared, so it is drawn without verdicts.")
    if sweep.kind == "single":
        parts.append("A single run: drawn without verdicts.")
    return " ".join(parts)


def headlines(rows: Sequence[ArmRow], verdicts: Sequence[Verdict]) -> list[str]:
    """Did LoRA keep up, and which learning rate did each arm want: a sentence or two."""
    lora = [row for row in rows if not row.arm.is_full]
    full = next((row for row in rows if row.arm.is_full), None)
    sentences = []
    if any(row.score for row in rows):
        sentences.append(_score_sentence(lora, full, verdicts))
    if any(row.choice for row in rows):
        sentences.append(_rate_sentence(lora, full, verdicts))
    return sentences or ["No run has a score yet."]


def _score_sentence(
    lora: Sequence[ArmRow], full: ArmRow | None, verdicts: Sequence[Verdict]
) -> str:
    base = next((row.base for row in (full, *lora) if row and row.base), None)
    parts = []
    for row in lora:
        verdict = _verdict(verdicts, ("C2", "C1"), row.arm)
        judged = f" (parity with FullFT: {verdict.verdict})" if verdict else ""
        parts.append(f"{row.arm.description} scores {_scored(row)}{judged}")
    if full is not None:
        parts.append(f"{full.arm.description} scores {_scored(full)}")
    text = "At its own learning rate, " + _listed(parts)
    return text + (f"; the untrained model scores {base.point:.3f}." if base else ".")


def _scored(row: ArmRow) -> str:
    if row.score is None:
        return "nothing yet"
    source = "" if row.score_from == REPORTED else f" ({row.score_from})"
    return f"{score_text(row.score)}{source}"


def _rate_sentence(lora: Sequence[ArmRow], full: ArmRow | None, verdicts: Sequence[Verdict]) -> str:
    chosen = [
        f"{row.arm.name} {rate_text(row.choice.learning_rate)}"
        for row in (full, *lora)
        if row and row.choice
    ]
    final = all(row.choice.final for row in (full, *lora) if row and row.choice)
    text = f"Learning rates {'selected' if final else 'best so far'}: {_listed(chosen)}."
    ratios = [_ratio_clause(row, verdicts) for row in lora if row.ratio is not None]
    if ratios:
        text += f" In units of FullFT's best learning rate, {_listed(ratios)}."
    return text


def _ratio_clause(row: ArmRow, verdicts: Sequence[Verdict]) -> str:
    assert row.ratio is not None
    verdict = _verdict(verdicts, ("C3",), row.arm)
    judged = f' ("ten times": {verdict.verdict})' if verdict else ""
    if not math.isfinite(row.ratio.centre.point):
        return f"{row.arm.name} has no ratio{judged}"
    return f"{row.arm.name} wants {ratio_text(row.ratio.centre)}{judged}"


def _verdict(verdicts: Sequence[Verdict], claims: tuple[str, ...], arm: Arm) -> Verdict | None:
    for claim in claims:
        for verdict in verdicts:
            if verdict.claim_id == claim and arm.name in verdict.arms and len(verdict.arms) <= 2:
                return verdict
    return None


def _listed(parts: Sequence[str]) -> str:
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else "".join(parts)


def verdict_line(verdict: Verdict) -> str:
    """One verdict for the terminal."""
    names = ", ".join(verdict.arms)
    return f"{verdict.claim_id} {verdict.verdict} [{names}]: {verdict.reason}"


def verdict_estimate(verdict: Verdict) -> str:
    """A verdict's estimate with its interval, or why there is none."""
    if verdict.estimate is None or not math.isfinite(verdict.estimate):
        return "no estimate"
    point = f"{verdict.estimate:.3g}"
    if verdict.interval is None:
        return f"{point} (no interval)"
    low, high = verdict.interval
    return f"{point} [{low:.3g}, {high:.3g}], {verdict.confidence:.0%}"


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
