"""C8: all layers beat attention alone, also at equal parameter count; the MLPs alone do as well."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from analysis.claims.claim import Claim
from analysis.claims.comparison import Comparer, exploratory
from analysis.claims.difference import Finding, ScoreDifference, measure
from analysis.claims.facts import layer_set, parameters
from analysis.claims.groups import matched, model_and_task
from analysis.claims.parity import (
    difference_verdict,
    equality,
    few_seeds,
    number_text,
    side_text,
)
from analysis.claims.verdict import (
    REFUTED,
    SUPPORTED,
    UNDECIDED,
    Decision,
    Obstacle,
    Verdict,
    missing_seeds,
    more_seeds,
    undecided,
)
from analysis.estimates.search import SearchSummary
from analysis.reading.arms import Arm
from analysis.reading.sweep import Sweep

EQUAL_SHARE = 0.1
"""Parameter counts within this share of each other are equal (Schulman et al. 2025 match
0.25 against 0.24 billion)."""
KEYS = ("method.rank", "method.target_modules")
PARTS = ("attention", "mlp")


@dataclass(frozen=True)
class _Contrast:
    """All layers against one part of them: what is asked, and between which arms."""

    part: str
    """``attention`` or ``mlp``."""
    everything: Arm
    single: Arm
    at_equal: str
    """``rank`` or ``parameters``; the latter decides."""


def _groups(sweep: Sweep) -> list[dict[str, list[Arm]]]:
    """Arms that differ in rank and layers only, by layer set; those with all and a part."""
    found = []
    for group in matched(sweep, KEYS, lambda arm: not arm.is_full):
        by_set: dict[str, list[Arm]] = {}
        for arm in group:
            by_set.setdefault(layer_set(sweep, arm), []).append(arm)
        if "all" in by_set and any(part in by_set for part in PARTS):
            found.append(by_set)
    return found


def _lacks(sweep: Sweep) -> str:
    if _groups(sweep):
        return ""
    return "LoRA arms on all layers and on attention or MLPs alone, of equal parameter count"


def check(sweep: Sweep, search: SearchSummary) -> list[Verdict]:
    """All layers against attention, then MLPs against all: at equal parameters, then equal rank.

    Args:
        sweep: An experiment with an arm on all layers and one on a part of them.
        search: Of the same sweep.
    """
    comparer = Comparer(sweep)
    return [
        verdict
        for by_set in _groups(sweep)
        for part in PARTS
        if part in by_set
        for verdict in _check_part(comparer, part, by_set, search)
    ]


def _check_part(
    comparer: Comparer, part: str, by_set: dict[str, list[Arm]], search: SearchSummary
) -> list[Verdict]:
    sweep, every, single = comparer.sweep, by_set["all"], by_set[part]
    equal = _equal_parameters(sweep, part, every, single)
    raw = [
        _Contrast(part, a, b, "rank")
        for a in every
        for b in single
        if a.rank is not None and a.rank == b.rank
    ]
    same = {(contrast.everything, contrast.single) for contrast in equal}
    raw = [contrast for contrast in raw if (contrast.everything, contrast.single) not in same]
    verdicts = [_check(comparer, contrast, search) for contrast in equal]
    if not equal:
        verdicts = [_nothing_equal(comparer, part, every, single)]
    return [*verdicts, *(_check(comparer, contrast, search) for contrast in raw)]


def _equal_parameters(
    sweep: Sweep, part: str, every: Sequence[Arm], single: Sequence[Arm]
) -> list[_Contrast]:
    """Each arm on all layers with the arm of the part that comes nearest in parameters."""
    found = []
    for arm in every:
        own = parameters(sweep, arm)
        sizes = {other: parameters(sweep, other) for other in single}
        gaps = {
            other: abs(size - own) / max(size, own)
            for other, size in sizes.items()
            if size is not None and own is not None
        }
        nearest = min(gaps, key=lambda other: gaps[other], default=None)
        if nearest is not None and gaps[nearest] <= EQUAL_SHARE:
            found.append(_Contrast(part, arm, nearest, "parameters"))
    return found


def _check(comparer: Comparer, contrast: _Contrast, search: SearchSummary) -> Verdict:
    sweep = comparer.sweep
    statement = _statement(sweep, contrast)
    arms = (contrast.everything, contrast.single)
    pair = comparer.compare(*(arms if contrast.part == "attention" else reversed(arms)))
    early = exploratory(sweep)
    one_sided = contrast.part == "attention"
    found: Finding = early or measure(sweep, pair, search, equality=not one_sided)
    if isinstance(found, Obstacle):
        return undecided("C8", statement, pair.names, found)
    decision = _better(found) if one_sided else equality(found)
    if contrast.at_equal == "rank":
        decision = _not_equal(found, *(_count(parameters(sweep, arm)) for arm in arms))
    verdict = difference_verdict("C8", statement, found, decision)
    return replace(verdict, flags=(*verdict.flags, f"equal_{contrast.at_equal}"))


def _statement(sweep: Sweep, contrast: _Contrast) -> str:
    every, single = contrast.everything, contrast.single
    if contrast.at_equal == "rank":
        equal = f"equal rank ({every.rank})"
    else:
        counts = (_count(parameters(sweep, arm)) for arm in (every, single))
        equal = f"equal parameter count ({' and '.join(counts)})"
    where = model_and_task(sweep, every)
    if contrast.part == "attention":
        return (
            f"LoRA on all layers ({every.name}) scores better than on attention alone "
            f"({single.name}) at {equal}: {where}."
        )
    return (
        f"LoRA on the MLPs alone ({single.name}) scores the same as on all layers ({every.name}) "
        f"at {equal}, within the margin: {where}."
    )


def _better(found: ScoreDifference) -> Decision:
    """Whether the arm scores better than its baseline: the interval on one side of 0."""
    contrast = found.contrast
    interval = contrast.estimate().interval
    if interval is None:
        return few_seeds(found)
    number = number_text(found)
    if interval[0] > 0:
        return Decision(SUPPORTED, f"{number} excludes 0: {side_text(found)}.")
    if interval[1] < 0:
        return Decision(REFUTED, f"{number} excludes 0: {side_text(found)}.")
    needed = contrast.seeds_for(abs(contrast.point))
    return Decision(
        UNDECIDED,
        f"{number} holds 0: {more_seeds(needed, contrast.n, found.phase)}.",
        missing_seeds(needed, contrast.n, found.phase),
    )


def _not_equal(found: ScoreDifference, own: str, other: str) -> Decision:
    """The contrast at equal rank: a number to look at, which never decides the claim."""
    return Decision(
        UNDECIDED,
        f"{number_text(found)} is between arms of equal rank that train {own} and {other} "
        "parameters: arms of equal parameter count decide.",
        "the contrast at equal parameter count",
    )


def _nothing_equal(
    comparer: Comparer, part: str, every: Sequence[Arm], single: Sequence[Arm]
) -> Verdict:
    """The deciding contrast where no two arms have equal parameter counts."""
    sweep, first, other = comparer.sweep, every[-1], single[-1]
    names = tuple(arm.name for arm in (*single, *every))
    own, own_other = parameters(sweep, first), parameters(sweep, other)
    if own is None or own_other is None or other.rank is None:
        reason = "Parameter counts of the arms are not known, so none are equal: record them."
        obstacle = Obstacle("parameters_differ", reason, "parameter counts of the arms")
    else:
        wanted = _equal_ranks(first.rank or 1, other.rank * own / own_other / (first.rank or 1))
        counts = f"{_count(own)} ({first.name}) and {_count(own_other)} ({other.name})"
        obstacle = Obstacle(
            "parameters_differ",
            f"No two arms have parameter counts within {EQUAL_SHARE:.0%} of each other, as "
            f"{counts}: add {_arms_text(part, wanted, first)}.",
            _arms_text(part, wanted, first),
        )
    relation = "all layers scores better than on attention alone"
    if part == "mlp":
        relation = "the MLPs alone scores the same as on all layers"
    where = model_and_task(sweep, first)
    statement = f"LoRA on {relation} at equal parameter count: {where}."
    return undecided("C8", statement, names, obstacle)


def _equal_ranks(rank: int, factor: float) -> tuple[int, int]:
    """Smallest ranks, of all layers from ``rank`` on and of the part, that train equally many.

    Args:
        rank: Of the arm on all layers that is there.
        factor: Rank of the part over that of all layers at exactly equal counts.
    """

    def share(own: int) -> float:
        exact, part = own * factor, max(1, round(own * factor))
        return abs(part - exact) / max(part, exact)

    own = next(own for own in itertools.count(rank) if share(own) <= EQUAL_SHARE)
    return own, max(1, round(own * factor))


def _arms_text(part: str, ranks: tuple[int, int], first: Arm) -> str:
    """The arms to add; at small ranks no whole rank of the part may match."""
    text = f"an arm on {_words(part)} alone at rank {ranks[1]}"
    return text if ranks[0] == first.rank else f"one on all layers at rank {ranks[0]} and {text}"


def _words(part: str) -> str:
    return "attention" if part == "attention" else "the MLPs"


def _count(number: float | None) -> str:
    return "an unknown number of" if number is None else f"{number:,.0f}"


CLAIM = Claim(
    claim_id="C8",
    title="layers",
    statement=(
        "LoRA on all layers beats LoRA on attention alone, at equal parameter count too; on the "
        "MLPs alone it does about as well as on all."
    ),
    criterion=(
        "Score differences on report seeds at parameter counts within 10 %; those at equal rank "
        "are shown and decide nothing. All against attention: supported if the 90 % interval lies "
        "above 0, refuted if wholly below. MLPs against all: an equality within the margin of C1, "
        "the gain being that of the arm on all layers."
    ),
    unit="difference",
    question="Should LoRA go on all layers, or is attention or the MLPs enough?",
    lacks=_lacks,
    check=check,
)
