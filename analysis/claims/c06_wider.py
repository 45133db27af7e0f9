"""C6: LoRA tolerates a wider range of learning rates than full fine-tuning."""

from __future__ import annotations

import math

from analysis.claims.claim import Claim
from analysis.claims.comparison import (
    Comparison,
    comparisons,
    exploratory,
    lacks_baseline,
    setting,
)
from analysis.claims.groups import model_and_task
from analysis.claims.ratios import NO_PLATEAU, curve_obstacle, seeds_advice, unstated
from analysis.claims.verdict import (
    REFUTED,
    SUPPORTED,
    UNDECIDED,
    Decision,
    Obstacle,
    Verdict,
    decided,
    undecided,
)
from analysis.estimates.optimum import LrRatio, lr_ratio, width_contrast
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import Contrast, Estimate
from analysis.reading.arms import signed_text
from analysis.reading.sweep import Sweep


def check(sweep: Sweep, search: SearchSummary) -> list[Verdict]:
    """One verdict per LoRA arm: is its plateau wider than that of its baseline?

    Args:
        sweep: An experiment with both methods.
        search: Of the same sweep; search seeds decide.
    """
    early = exploratory(sweep)
    if early is not None:
        return [undecided("C6", _statement("LoRA", "FullFT", setting(sweep)), (), early)]
    return [_check_arm(sweep, pair, search) for pair in comparisons(sweep)]


def _statement(lora: str, full: str, where: str) -> str:
    return f"The plateau of learning rates of {lora} is wider than that of {full}: {where}."


def _check_arm(sweep: Sweep, pair: Comparison, search: SearchSummary) -> Verdict:
    where = model_and_task(sweep, pair.arm)
    statement = _statement(pair.arm.description, pair.baseline_text, where)
    obstacle = curve_obstacle(pair, search)
    if obstacle is not None:
        return undecided("C6", statement, pair.names, obstacle)
    curves = [search.curves[name] for name in pair.names]
    if any(curve.base is None for curve in curves):
        return undecided("C6", statement, pair.names, NO_PLATEAU)
    fraction = search.fraction_of(*pair.names)
    ratio = lr_ratio(curves[0], curves[1], fraction)
    width = ratio.width_difference
    blocked = unstated(curves, fraction) if width.interval is None else None
    contrast = width_contrast(curves[0], curves[1], fraction)
    decision = _decide(pair, ratio, blocked, contrast)
    return decided("C6", statement, pair.names, decision, width, ratio.flags)


def _decide(
    pair: Comparison, ratio: LrRatio, blocked: Obstacle | None, contrast: Contrast
) -> Decision:
    width = ratio.width_difference
    if width.interval is None:
        reason, missing = (blocked.reason, blocked.missing) if blocked else ("", "")
        if math.isfinite(width.point):
            reason += f" As points: {signed_text(width.point, 2)} decades; {_sides(ratio)}."
        return Decision(UNDECIDED, reason, missing)
    low, high = width.interval
    number = (
        f"The width of {pair.arm.name} minus that of {pair.baseline_noun} is "
        f"{signed_text(width.point, 2)} [{signed_text(low, 2)}, {signed_text(high, 2)}] decades"
    )
    sides = f"its two sides: {_sides(ratio)}"
    if low > 0:
        return Decision(SUPPORTED, f"{number}, above 0; {sides}.")
    if high < 0:
        return Decision(REFUTED, f"{number}, wholly below 0; {sides}.")
    advice, missing = seeds_advice(contrast, abs(contrast.point))
    return Decision(UNDECIDED, f"{number}, which holds 0: {advice}; {sides}.", missing)


def _sides(ratio: LrRatio) -> str:
    """How far ramp and cliff lie above the baseline's: a plateau is wider by either or both."""
    return f"the ramp lies at {_times(ratio.ramp)}, the cliff at {_times(ratio.cliff)} FullFT's"


def _times(flank: Estimate) -> str:
    interval = flank.interval
    if interval is None:
        return f"{flank.point:.1f} times"
    return f"{flank.point:.1f} [{interval[0]:.1f}, {interval[1]:.1f}] times"


CLAIM = Claim(
    claim_id="C6",
    title="wider",
    statement="LoRA tolerates a wider range of learning rates than full fine-tuning.",
    criterion=(
        "The width of LoRA's plateau minus FullFT's, in decades: supported if the 90 % interval "
        "lies above 0, refuted if wholly below, else undecided; undecided if either plateau has no "
        "end inside its grid."
    ),
    unit="decades",
    question="Does LoRA forgive a wrong learning rate more than full fine-tuning?",
    lacks=lacks_baseline,
    check=check,
)
