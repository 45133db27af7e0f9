"""C21: at equal rank, what alpha does to LoRA is a change of step size."""

from __future__ import annotations

import math
from collections.abc import Sequence

from analysis.claims.claim import Claim
from analysis.claims.comparison import Comparer
from analysis.claims.facts import ALPHA_KEYS, alpha_of
from analysis.claims.groups import matched, model_and_task
from analysis.claims.pairwise import Family, family, family_verdict, judge_family, ratio_text
from analysis.claims.ratios import seeds_advice
from analysis.claims.verdict import SUPPORTED, UNDECIDED, Decision, Verdict, undecided
from analysis.estimates.search import SearchSummary
from analysis.reading.arms import Arm
from analysis.reading.sweep import Sweep

FACTOR = 2.0
"""Products alpha x LR* within this factor of each other count as one: the margin of C5."""


def _groups(sweep: Sweep) -> list[tuple[Arm, ...]]:
    """LoRA arms that differ in alpha alone, by alpha; an alpha that occurs twice counts once."""
    found = []
    for group in matched(sweep, ALPHA_KEYS, lambda arm: not arm.is_full):
        by_alpha: dict[float, Arm] = {}
        for arm in group:
            alpha = alpha_of(sweep, arm)
            if alpha is not None:
                by_alpha.setdefault(alpha, arm)
        if len(by_alpha) > 1:
            found.append(tuple(by_alpha[alpha] for alpha in sorted(by_alpha)))
    return found


def _lacks(sweep: Sweep) -> str:
    return "" if _groups(sweep) else "LoRA arms of one rank that differ in alpha alone"


def check(sweep: Sweep, search: SearchSummary) -> list[Verdict]:
    """One verdict per rank at which arms differ in alpha alone.

    Args:
        sweep: An experiment with two such arms or more.
        search: Of the same sweep; search seeds decide.
    """
    comparer = Comparer(sweep)
    return [_check_group(comparer, group, search) for group in _groups(sweep)]


def _check_group(comparer: Comparer, group: Sequence[Arm], search: SearchSummary) -> Verdict:
    sweep = comparer.sweep
    alphas = {arm.name: alpha_of(sweep, arm) or math.nan for arm in group}
    shown = ", ".join(f"{alphas[arm.name]:g}" for arm in group)
    statement = (
        f"At rank {group[0].rank} and alpha {shown}, alpha x the best learning rate is the same "
        f"within a factor of {FACTOR:g} while the best learning rate falls: "
        f"{model_and_task(sweep, group[0])}."
    )
    obstacle = comparer.stopped_or_unfinished
    if obstacle is not None:
        return undecided("C21", statement, tuple(arm.name for arm in group), obstacle)
    products = family(comparer, group, search, lambda arm: alphas[arm.name])
    rates = family(comparer, group, search)
    return family_verdict("C21", statement, products, _decide(products, rates))


def _decide(products: Family, rates: Family) -> Decision:
    """Equal products explain something only where the learning rate falls as alpha grows.

    Whether it does is asked of the smallest and the largest alpha, a pair no result has chosen.
    Alphas close to each other may have equal products while the rate moves the other way.
    """
    decision = judge_family(products, FACTOR, "products alpha x LR*")
    ends = rates.ends
    if decision.verdict != SUPPORTED or ends is None:
        return decision
    text = f"LR* of {ends.second.name} over {ends.first.name} is {ratio_text(ends.ratio)}"
    low, high = ends.ratio.interval or (0.0, math.inf)
    if high < 1:
        return Decision(SUPPORTED, f"{decision.reason} {text}: the step is what alpha changes.")
    if low > 1:
        reason = (
            f"{decision.reason} Yet {text}: it grows with alpha, which a step does not explain."
        )
        return Decision(UNDECIDED, reason, "alphas that lie further apart")
    advice, missing = seeds_advice(ends.contrast, abs(ends.contrast.point))
    reason = (
        f"{decision.reason} Yet {text}, which holds 1, so there is nothing to explain: {advice}."
    )
    return Decision(UNDECIDED, reason, f"{missing}, or alphas that lie further apart")


CLAIM = Claim(
    claim_id="C21",
    title="alpha",
    statement="What alpha does to LoRA is to change its step: alpha x learning rate counts.",
    criterion=(
        "LoRA arms of one rank that differ in alpha alone. Supported if all pairs' 90 % intervals "
        "of the ratio of alpha x LR* lie inside [1/2, 2] while LR* itself is smaller at the "
        "largest alpha than at the smallest; refuted if any pair lies wholly outside after Holm's "
        "correction."
    ),
    unit="ratio",
    question="Are effects of alpha, and of a rank that alpha goes with, effects of step size?",
    lacks=_lacks,
    check=check,
)
