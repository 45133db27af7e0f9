"""One matched arm in numbers: scores, gains, best learning rates, and what they are to FullFT's."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.comparing.matching import Pair
from analysis.comparing.numbers import Quantity, nothing
from analysis.comparing.rates import Flanks, rate_ratio, ratio_of_ratios
from analysis.comparing.scores import arm_score, difference
from analysis.comparing.side import Side, no_curve
from analysis.comparing.units import Units


@dataclass(frozen=True)
class Triple:
    """A number in A, in B, and what lies between them: a difference or a ratio, B against A."""

    a: Quantity
    b: Quantity
    between: Quantity


@dataclass(frozen=True)
class ArmRow:
    """One matched arm in numbers."""

    pair: Pair
    score: Triple
    score_from: tuple[str, str]
    """Which seeds the scores come from, in A and in B."""
    gain: Triple
    """Improvement over the untrained model; positive is better."""
    rate: Triple
    """LR*, and the ratio B/A."""
    flanks: Flanks
    """The same ratio with those of the plateau's ends."""
    over_full: Triple | None
    """LR* over that of FullFT, and the ratio of ratios; None for FullFT itself."""
    gap: Triple | None
    """Score minus FullFT's, positive is better; None for FullFT itself."""
    gap_margin: float | None
    """The smaller margin of the two experiments."""


def arm_row(a: Side, b: Side, pair: Pair, fraction: float, units: Units) -> ArmRow:
    """Everything about one pair of arms.

    Args:
        a: The first experiment.
        b: The second.
        pair: One arm of each.
        fraction: The plateau threshold of every number.
        units: What may be subtracted.
    """
    scores = (
        arm_score(a.sweep, pair.a.name, a.search),
        arm_score(b.sweep, pair.b.name, b.search),
    )
    flanks = rate_ratio(
        a.search.curves.get(pair.a.name),
        b.search.curves.get(pair.b.name),
        fraction,
        (f"A: {no_curve(a.sweep)}", f"B: {no_curve(b.sweep)}"),
    )
    gap, margin = (None, None) if pair.a.arm.is_full else _gap(a, b, pair, units)
    return ArmRow(
        pair=pair,
        score=_between(scores[0].score, scores[1].score, units.scores),
        score_from=(scores[0].source, scores[1].source),
        gain=_between(scores[0].gain, scores[1].gain, units.gains),
        rate=Triple(
            a.best_rate(pair.a.name, fraction),
            b.best_rate(pair.b.name, fraction),
            flanks.centre,
        ),
        flanks=flanks,
        over_full=None if pair.a.arm.is_full else _over_full(a, b, pair, fraction),
        gap=gap,
        gap_margin=margin,
    )


def _between(a: Quantity, b: Quantity, refused: str) -> Triple:
    return Triple(a, b, nothing(refused) if refused else difference(b, a))


def _over_full(a: Side, b: Side, pair: Pair, fraction: float) -> Triple:
    first, second = a.over_full(pair.a.name, fraction), b.over_full(pair.b.name, fraction)
    return Triple(first, second, ratio_of_ratios(first, second))


def _gap(a: Side, b: Side, pair: Pair, units: Units) -> tuple[Triple, float | None]:
    (first, margin_a), (second, margin_b) = a.gap(pair.a.name), b.gap(pair.b.name)
    margins = [margin for margin in (margin_a, margin_b) if margin is not None]
    margin = min(margins) if len(margins) == 2 else None
    return _between(first, second, units.gains), margin
