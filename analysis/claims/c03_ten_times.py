"""C3: the best learning rate of LoRA is about ten times that of full fine-tuning."""

from __future__ import annotations

import math
from dataclasses import replace

from analysis.claims.claim import Claim
from analysis.claims.comparison import (
    Comparison,
    comparisons,
    exploratory,
    lacks_baseline,
    setting,
)
from analysis.claims.groups import model_and_task
from analysis.claims.ratios import (
    alpha_note,
    assumed_note,
    curve_obstacle,
    precision_note,
    seeds_advice,
    unstated,
)
from analysis.claims.verdict import (
    REFUTED,
    SUPPORTED,
    UNDECIDED,
    Decision,
    Verdict,
    decided,
    undecided,
)
from analysis.estimates.curve import LrCurve
from analysis.estimates.optimum import LrRatio, log_ratio, lr_ratio
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import Estimate
from analysis.reading.sweep import Sweep

LOW, HIGH = 5.0, 20.0
"""Ratios that count as "about ten"."""


def check(sweep: Sweep, search: SearchSummary) -> list[Verdict]:
    """One verdict per LoRA arm: does the 90 % interval of the ratio lie inside [5, 20]?

    Search seeds only. An arm whose plateau is not bracketed by its grid gives no ratio.

    Args:
        sweep: An experiment with both methods.
        search: Of the same sweep.
    """
    early = exploratory(sweep)
    if early is not None:
        return [undecided("C3", _statement("LoRA", "FullFT", setting(sweep)), (), early)]
    return [_check_arm(sweep, pair, search) for pair in comparisons(sweep)]


def _statement(lora: str, full: str, where: str) -> str:
    return (
        f"The best learning rate of {lora} is about 10 times (5 to 20 times) that of {full}: "
        f"{where}."
    )


def _check_arm(sweep: Sweep, pair: Comparison, search: SearchSummary) -> Verdict:
    where = model_and_task(sweep, pair.arm)
    statement = _statement(pair.arm.description, pair.baseline_text, where)
    obstacle = curve_obstacle(pair, search)
    if obstacle is not None:
        return undecided("C3", statement, pair.names, obstacle)
    lora, full = (search.curves[name] for name in pair.names)
    fraction = search.fraction_of(*pair.names)
    ratio = lr_ratio(lora, full, fraction)
    decision = judge(lora, full, ratio, fraction)
    alpha, precision = alpha_note(sweep, lora.arm, search), precision_note(sweep, pair)
    assumed = ""
    if ratio.centre.interval is None:
        assumed = assumed_note(lora, full, fraction)
    notes = {"alpha_rules_differ": alpha, "precision_unknown": precision}
    decision = replace(decision, reason=decision.reason + assumed + alpha + precision)
    flags = (*ratio.flags, *(flag for flag, note in notes.items() if note))
    return decided("C3", statement, pair.names, decision, ratio.centre, flags)


def judge(lora: LrCurve, full: LrCurve, ratio: LrRatio, fraction: float) -> Decision:
    """The decision on a ratio.

    Args:
        lora: Search phase of the LoRA arm.
        full: Search phase of its baseline.
        ratio: Their ratio.
        fraction: The plateau fraction the ratio was computed with.
    """
    interval = ratio.centre.interval
    if interval is None:
        obstacle = unstated((lora, full), fraction)
        reason, missing = (obstacle.reason, obstacle.missing) if obstacle else ("", "")
        return Decision(UNDECIDED, reason + _other_flank(ratio), missing)
    low, high = interval
    number = f"The ratio {_number(ratio.centre)}"
    shape = _shape_note(ratio)
    if low >= LOW and high <= HIGH:
        return Decision(SUPPORTED, f"{number} lies inside [5, 20]{shape}.")
    if low > HIGH or high < LOW:
        return Decision(REFUTED, f"{number} lies wholly outside [5, 20]{shape}.")
    contrast = log_ratio(lora, full, fraction)
    distance = min(abs(contrast.point - math.log10(bound)) for bound in (LOW, HIGH))
    advice, missing = seeds_advice(contrast, distance)
    return Decision(UNDECIDED, f"{number} crosses a bound of [5, 20]: {advice}{shape}.", missing)


def _other_flank(ratio: LrRatio) -> str:
    """The ratio of the flank that both grids hold, where the other keeps the centre unknown."""
    for name, flank in (("ramps", ratio.ramp), ("cliffs", ratio.cliff)):
        if flank.interval is not None:
            return f" The {name} of the two plateaus give {_number(flank)}."
    return ""


def _shape_note(ratio: LrRatio) -> str:
    """That the two curves are not shifted copies; empty where nothing says so."""
    if "shape_differs" not in ratio.flags:
        return ""
    return (
        f"; ramps give {_number(ratio.ramp)} and cliffs {_number(ratio.cliff)}, so the curves are "
        "not shifted copies and the centre decides by convention"
    )


def _number(found: Estimate) -> str:
    """``4.3 [3.7, 4.9]``."""
    low, high = found.interval or (found.point, found.point)
    return f"{found.point:.1f} [{low:.1f}, {high:.1f}]"


CLAIM = Claim(
    claim_id="C3",
    title="ten times",
    statement="LoRA's best learning rate is about ten times that of full fine-tuning.",
    criterion=(
        "Supported if the 90 % interval of the ratio of the two plateaus' midpoints lies inside "
        "[5, 20], refuted if wholly outside, else undecided."
    ),
    unit="ratio",
    question="Does LoRA want about ten times full fine-tuning's learning rate?",
    lacks=lacks_baseline,
    check=check,
)
