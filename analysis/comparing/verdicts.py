"""Does a result carry over from one experiment to the other? Same, different, or undecided.

Only where a margin is stated: learning rates and their ratios within a factor of two, gaps to
FullFT within the smaller margin of the two experiments. Equality by two one-sided tests, Holm's
correction (1979) over the arms of each question, as for the claims on a single experiment.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from analysis.comparing.numbers import Quantity
from analysis.estimates.equivalence import beyond_margin_p, equivalence_p, holm
from analysis.estimates.stats import CONFIDENCE, Contrast

SAME, DIFFERENT, UNDECIDED = "same", "different", "undecided"
NO_MARGIN = "no margin: FullFT's gain over the untrained model is unknown or too small in A or B"
FACTOR = 2.0
"""Learning rates closer than this are one: C5's margin, and less than a step of most grids."""
LEVEL = (1 - CONFIDENCE) / 2
"""Level of each one-sided test."""


@dataclass(frozen=True)
class Question:
    """One question about every matched arm."""

    key: str
    text: str
    """What is judged, and within which margin."""
    phase: str
    """Seeds that would decide it: ``search`` or ``report``."""


RATE = Question(
    "learning_rate", "Does each arm want the same learning rate (within a factor of 2)?", "search"
)
RATIO = Question(
    "ratio_of_ratios",
    "Is the LoRA/FullFT ratio of learning rates the same (within a factor of 2)?",
    "search",
)
GAP = Question("gap", "Is the gap to FullFT the same (within the smaller margin)?", "report")
QUESTIONS = (RATE, RATIO, GAP)


@dataclass(frozen=True)
class Judged:
    """One number to judge, and its margin in the unit of its contrast."""

    arm: str
    quantity: Quantity
    margin: float | None
    """None: no margin is stated, or none applies; the reason is the quantity's."""
    margin_text: str


@dataclass(frozen=True)
class CarryOver:
    """The verdict on one arm."""

    question: str
    arm: str
    verdict: str
    """``same``, ``different`` or ``undecided``."""
    estimate: float | None
    interval: tuple[float, float] | None
    n: int
    margin: str
    p: float | None
    """Of the test that comes nearer to deciding, after Holm's correction."""
    reason: str


def judge(question: Question, tested: Sequence[Judged], obstacle: str = "") -> list[CarryOver]:
    """One verdict per arm.

    Args:
        question: What is asked.
        tested: The arms' numbers; those without an interval or a margin stay undecided.
        obstacle: Why nothing is decided, whatever the numbers say.
    """
    testable = {} if obstacle else {t.arm: test for t in tested if (test := _test(t)) is not None}
    inside, outside = (
        dict(zip(testable, holm([p(*test) for test in testable.values()]), strict=True))
        for p in (equivalence_p, beyond_margin_p)
    )
    return [
        _decided(question, t, testable[t.arm], inside, outside)
        if t.arm in testable
        else _verdict(question, t, UNDECIDED, None, obstacle or t.quantity.reason or NO_MARGIN)
        for t in tested
    ]


def _test(judged: Judged) -> tuple[Contrast, float] | None:
    """What is tested against which margin; None without an interval or a margin."""
    contrast, margin = judged.quantity.contrast, judged.margin
    if contrast is None or margin is None or judged.quantity.interval is None:
        return None
    return contrast, margin


def _decided(
    question: Question,
    tested: Judged,
    test: tuple[Contrast, float],
    inside: Mapping[str, float],
    outside: Mapping[str, float],
) -> CarryOver:
    """The verdict on an arm from the p values of every arm of the question."""
    holds = f" after Holm's correction over {len(inside)} arms" if len(inside) > 1 else ""
    p_inside, p_outside = inside[tested.arm], outside[tested.arm]
    if p_inside < LEVEL:
        reason = f"the interval lies within {tested.margin_text}{holds}"
        return _verdict(question, tested, SAME, p_inside, reason)
    if p_outside < LEVEL:
        reason = f"the interval lies wholly outside {tested.margin_text}{holds}"
        return _verdict(question, tested, DIFFERENT, p_outside, reason)
    advice = _advice(question, tested.margin_text, *test)
    return _verdict(question, tested, UNDECIDED, min(p_inside, p_outside), advice)


def _advice(question: Question, margin_text: str, contrast: Contrast, margin: float) -> str:
    """What would decide: seeds in both experiments, unless only Holm's correction forbids it."""
    alone = {SAME: equivalence_p(contrast, margin), DIFFERENT: beyond_margin_p(contrast, margin)}
    for verdict, p in alone.items():
        if p < LEVEL:
            alone_text = f"{verdict} if judged alone, not after Holm's correction"
            return f"{alone_text}: more {question.phase} seeds"
    distance = abs(abs(contrast.point) - margin)
    seeds = contrast.seeds_for(distance)
    crosses = f"the interval crosses {margin_text}"
    if seeds is not None:
        more = seeds - contrast.n
        return f"{crosses}: at least {more} more {question.phase} seeds in each experiment"
    if contrast.grid_term and replace(contrast, grid_term=0.0).seeds_for(distance) is not None:
        return f"{crosses}: a finer grid at the ends of the plateaus, then more seeds"
    return f"{crosses}: too close to it for more {question.phase} seeds alone"


def _verdict(
    question: Question, tested: Judged, verdict: str, p: float | None, reason: str
) -> CarryOver:
    point, estimate = tested.quantity.point, tested.quantity.estimate
    return CarryOver(
        question=question.key,
        arm=tested.arm,
        verdict=verdict,
        estimate=None if math.isnan(point) else point,
        interval=tested.quantity.interval,
        n=0 if estimate is None else estimate.n,
        margin=tested.margin_text,
        p=p,
        reason=reason,
    )
