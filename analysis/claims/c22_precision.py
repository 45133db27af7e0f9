"""C22: full fine-tuning in pure bfloat16 shrinks its best learning rate, which makes the ten."""

from __future__ import annotations

import math
from dataclasses import replace

from analysis.claims.c11_sparsity import precision_text
from analysis.claims.claim import Claim
from analysis.claims.comparison import Comparer, Comparison, comparisons, exploratory
from analysis.claims.groups import matched, model_and_task, value
from analysis.claims.pairwise import linear, ratio_text
from analysis.claims.ratios import assumed_note, curve_obstacle, seeds_advice, unstated
from analysis.claims.verdict import (
    REFUTED,
    SUPPORTED,
    UNDECIDED,
    Decision,
    Verdict,
    decided,
    undecided,
)
from analysis.estimates.optimum import log_ratio, lr_ratio
from analysis.estimates.search import SearchSummary
from analysis.reading.arms import Arm
from analysis.reading.sweep import Sweep

KEY = "model.dtype"
MASTERS, PURE = "float32", "bfloat16"
SAME = 1.25
"""Ratios within this factor of 1 count as none: a tenth of a decade, under half of what separates a
ratio of 10 from 5, the bound of C3."""
NO_PROBES = (
    " That pure bfloat16 makes updates sparse too is another part of the claim, which needs "
    "weights measured by probes."
)


def _pairs(sweep: Sweep) -> list[tuple[Arm, Arm]]:
    """FullFT arms in float32 and in bfloat16 that differ in nothing else."""
    found = []
    for group in matched(sweep, (KEY,), lambda arm: arm.is_full):
        by_dtype = {value(sweep, arm, KEY): arm for arm in reversed(group)}
        if MASTERS in by_dtype and PURE in by_dtype:
            found.append((by_dtype[MASTERS], by_dtype[PURE]))
    return found


def _lacks(sweep: Sweep) -> str:
    return (
        "" if _pairs(sweep) else "FullFT arms in float32 and bfloat16 that differ in nothing else"
    )


def check(sweep: Sweep, search: SearchSummary) -> list[Verdict]:
    """One verdict per pair of FullFT arms that differ in precision alone.

    Args:
        sweep: An experiment with such a pair; precision must be one of its factors.
        search: Of the same sweep; search seeds decide.
    """
    comparer = Comparer(sweep)
    pairs = [comparer.compare(masters, pure) for masters, pure in _pairs(sweep)]
    return [_check_pair(sweep, pair, search) for pair in pairs]


def _check_pair(sweep: Sweep, pair: Comparison, search: SearchSummary) -> Verdict:
    statement = (
        f"The best learning rate of FullFT in {MASTERS} ({pair.names[0]}) is above that in pure "
        f"{PURE} ({pair.names[1]}), so the latter inflates the ratio of LoRA to FullFT: "
        f"{model_and_task(sweep, pair.arm)}."
    )
    obstacle = exploratory(sweep) or curve_obstacle(pair, search)
    if obstacle is not None:
        return undecided("C22", statement, pair.names, obstacle)
    own, other = (search.curves[name] for name in pair.names)
    ratio = lr_ratio(own, other, search.fraction_of(*pair.names))
    decision = _decide(pair, search)
    reason = decision.reason + _by_precision(sweep, pair, search) + _sparsity(sweep, pair)
    decision = replace(decision, reason=reason)
    return decided("C22", statement, pair.names, decision, ratio.centre, ratio.flags)


def _decide(pair: Comparison, search: SearchSummary) -> Decision:
    curves = [search.curves[name] for name in pair.names]
    fraction = search.fraction_of(*pair.names)
    blocked = unstated(curves, fraction)
    if blocked is not None:
        note = assumed_note(curves[0], curves[1], fraction)
        return Decision(UNDECIDED, blocked.reason + note, blocked.missing)
    contrast = log_ratio(curves[0], curves[1], fraction)
    found = linear(contrast)
    low, high = found.interval or (0.0, math.inf)
    number = f"LR* in {MASTERS} over LR* in {PURE} is {ratio_text(found)}"
    band = f"[{1 / SAME:g}, {SAME:g}]"
    if low >= 1 / SAME and high <= SAME:
        return Decision(REFUTED, f"{number}, inside {band}: too little to make a ratio of ten.")
    if low > 1:
        return Decision(SUPPORTED, f"{number}, above 1: {PURE} shrinks FullFT's best rate.")
    if high < 1:
        return Decision(REFUTED, f"{number}, wholly below 1: {PURE} raises FullFT's best rate.")
    # Either way of a decision will do: away from 1, or inside the band.
    distance = max(abs(contrast.point), math.log10(SAME) - abs(contrast.point))
    advice, missing = seeds_advice(contrast, distance)
    return Decision(UNDECIDED, f"{number}, which holds 1 and leaves {band}: {advice}.", missing)


def _by_precision(sweep: Sweep, pair: Comparison, search: SearchSummary) -> str:
    """LoRA over FullFT against either baseline; empty without LoRA arms."""
    parts = []
    for other in comparisons(sweep):
        if other.baseline in (pair.arm, pair.baseline) and curve_obstacle(other, search) is None:
            curves = [search.curves[name] for name in other.names]
            fraction = search.fraction_of(*other.names)
            if unstated(curves, fraction) is None:
                ratio = linear(log_ratio(curves[0], curves[1], fraction))
                parts.append(f"{other.names[0]}/{other.names[1]} {ratio_text(ratio)}")
    return f" LoRA over FullFT: {', '.join(parts)}." if parts else ""


def _sparsity(sweep: Sweep, pair: Comparison) -> str:
    """What either precision leaves unchanged, paired by seed."""
    assert pair.baseline is not None, "pairs are of two arms"
    return precision_text(sweep, pair.arm, pair.baseline) or NO_PROBES


CLAIM = Claim(
    claim_id="C22",
    title="precision",
    statement=(
        "Full fine-tuning in pure bfloat16 has a smaller best learning rate than with float32 "
        "masters, and so makes LoRA's ratio to it larger."
    ),
    criterion=(
        "The ratio of LR* in float32 to LR* in bfloat16: supported if its 90 % interval lies above "
        "1, refuted if wholly below 1 or inside [0.8, 1.25], else undecided."
    ),
    unit="ratio",
    question="Does half precision make the ratio of ten?",
    lacks=_lacks,
    check=check,
)
