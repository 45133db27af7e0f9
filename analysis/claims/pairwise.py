"""Best learning rates of a family of arms, every pair of them tested for equality.

The largest over the smallest of noisy values is biased upwards, so it is never the statistic:
each pair has its two one-sided tests, and Holm's correction over pairs guards the refutation.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from analysis.claims.comparison import Comparer
from analysis.claims.ratios import (
    assumed_note,
    curve_obstacle,
    on_one_base,
    seeds_advice,
    why_unstated,
)
from analysis.claims.verdict import (
    LEVEL,
    REFUTED,
    SUPPORTED,
    UNDECIDED,
    Decision,
    Obstacle,
    Verdict,
    decided,
    seeds_text,
)
from analysis.estimates.curve import LrCurve
from analysis.estimates.equivalence import beyond_margin_p, equivalence_p, holm
from analysis.estimates.optimum import from_decades, log_ratio, optimum
from analysis.estimates.plateau import FRACTION
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import MIN_SEEDS, Contrast, Estimate
from analysis.reading.arms import Arm


@dataclass(frozen=True)
class Pair:
    """Two arms of a family and the ratio of what is compared, the second arm over the first."""

    first: Arm
    second: Arm
    contrast: Contrast
    """In decades."""

    @property
    def ratio(self) -> Estimate:
        """The ratio in linear units."""
        return linear(self.contrast)

    @property
    def text(self) -> str:
        """``lora-r16/lora-r4 1.3 [1.1, 1.6]``."""
        return f"{self.second.name}/{self.first.name} {ratio_text(self.ratio)}"


@dataclass(frozen=True)
class Family:
    """Arms whose pairs can be judged, and those that cannot with the reason."""

    group: tuple[Arm, ...]
    kept: tuple[Arm, ...]
    curves: tuple[LrCurve, ...]
    """Of the arms kept."""
    pairs: tuple[Pair, ...]
    left_out: tuple[tuple[Arm, Obstacle], ...]
    fraction: float

    @property
    def n(self) -> int:
        """Seeds of the arm that has the fewest; 0 without arms."""
        return min((curve.n_seeds for curve in self.curves), default=0)

    @property
    def ends(self) -> Pair | None:
        """The last arm over the first, a pair that no result has chosen."""
        names = (self.kept[0], self.kept[-1]) if self.kept else None
        return next((p for p in self.pairs if (p.first, p.second) == names), None)


def family(
    comparer: Comparer,
    group: Sequence[Arm],
    search: SearchSummary,
    scale: Callable[[Arm], float] = lambda _: 1.0,
) -> Family:
    """The pairs of a group; an arm whose optimum is not bracketed, or unknown, is left out.

    Args:
        comparer: Of the sweep.
        group: Arms that differ only in what is asked about.
        search: Of the same sweep.
        scale: Factor of each arm's LR* in what is compared; alpha, for alpha x LR*.
    """
    known = [search.curves[arm.name] for arm in group if arm.name in search.curves]
    curves = {curve.arm: curve for curve in on_one_base(known)}
    kept: list[Arm] = []
    left_out: list[tuple[Arm, Obstacle]] = []
    for arm in group:
        obstacle = _alone(comparer, arm, kept[0] if kept else arm, search, curves)
        if obstacle is None:
            kept.append(arm)
        else:
            left_out.append((arm, obstacle))
    fraction = min((search.fraction_of(arm.name) for arm in kept), default=FRACTION)
    pairs = [
        Pair(a, b, _contrast(curves[b.name], curves[a.name], fraction, scale(b) / scale(a)))
        for a, b in itertools.combinations(kept, 2)
    ]
    own = tuple(curves[arm.name] for arm in kept)
    return Family(tuple(group), tuple(kept), own, tuple(pairs), tuple(left_out), fraction)


def _alone(
    comparer: Comparer,
    arm: Arm,
    other: Arm,
    search: SearchSummary,
    curves: Mapping[str, LrCurve],
) -> Obstacle | None:
    """Why an arm has no place in a family, if so; few seeds are said of the family as a whole."""
    obstacle = curve_obstacle(comparer.compare(arm, other), search)
    if obstacle is None:
        obstacle = why_unstated(curves[arm.name], search.fraction_of(arm.name))
    return None if obstacle is not None and obstacle.flag == "few_seeds" else obstacle


def _contrast(arm: LrCurve, baseline: LrCurve, fraction: float, factor: float) -> Contrast:
    found = log_ratio(arm, baseline, fraction)
    return replace(found, point=found.point + math.log10(factor))


def family_verdict(
    claim_id: str, statement: str, found: Family, decision: Decision, note: str = ""
) -> Verdict:
    """The verdict on a family; its estimate is the ratio of the last arm to the first."""
    ends = found.ends.ratio if found.ends else None
    flags = [obstacle.flag for _, obstacle in found.left_out]
    flags += [flag for one in found.curves for flag in optimum(one, found.fraction).flags]
    left_out = " ".join(obstacle.reason for _, obstacle in found.left_out)
    reason = decision.reason + (f" Left out: {left_out}" if left_out else "") + note
    arms = tuple(arm.name for arm in found.group)
    decision = replace(decision, reason=reason)
    return decided(claim_id, statement, arms, decision, ends, tuple(flags), found.n)


def judge_family(found: Family, factor: float, noun: str) -> Decision:
    """Whether all pairs agree within a factor.

    Supported if every pair's 90 % interval lies inside [1/factor, factor]; refuted if any lies
    wholly outside after Holm's correction over pairs; else undecided. An arm that is left out is
    one of those the statement names, so it keeps the family from support, never from refutation.

    Args:
        found: The family.
        factor: Ratios up to it, either way, count as equal.
        noun: What is compared, ``best learning rates``.
    """
    if len(found.kept) < 2:
        return _too_few_arms(found)
    if found.n < MIN_SEEDS:
        return _too_few_seeds(found, noun)
    margin, count = math.log10(factor), len(found.pairs)
    outside = [beyond_margin_p(pair.contrast, margin) for pair in found.pairs]
    corrected = holm(outside)
    refuted = [p for p, value in zip(found.pairs, corrected, strict=True) if value < LEVEL]
    doubtful = [p for p in found.pairs if equivalence_p(p.contrast, margin) >= LEVEL]
    band = f"[{1 / factor:g}, {factor:g}]"
    holm_note = f" after Holm's correction over {count} pairs" if count > 1 else ""
    if refuted:
        names = ", ".join(pair.text for pair in refuted)
        return Decision(REFUTED, f"{names} lies wholly outside {band}{holm_note}.")
    if not doubtful:
        pairs = "The pair lies" if count == 1 else f"All {count} pairs lie"
        text = f"{pairs} inside {band}: the {noun} agree{_ends_text(found)}"
        return _unless_left_out(found, text)
    names = ", ".join(pair.text for pair in doubtful)
    held = f"{len(doubtful)} of {count} pairs not inside {band} ({names})"
    if count == 1:
        held = f"{names} crosses a bound of {band}"
    clause, missing = _advice(doubtful, margin)
    return Decision(UNDECIDED, f"{held}: {clause}.", missing)


def _unless_left_out(found: Family, text: str) -> Decision:
    if not found.left_out:
        return Decision(SUPPORTED, f"{text}.")
    names = ", ".join(arm.name for arm, _ in found.left_out)
    return Decision(UNDECIDED, f"{text}, but {names} cannot be judged.", _lacking(found))


def _lacking(found: Family) -> str:
    """What would bring the arms that are left out back in."""
    return "; ".join(filter(None, (obstacle.missing for _, obstacle in found.left_out)))


def _ends_text(found: Family) -> str:
    return f" ({found.ends.text})" if found.ends else ""


def _advice(doubtful: Sequence[Pair], margin: float) -> tuple[str, str]:
    """What would decide the pair that is farthest from a decision."""
    worst = max(doubtful, key=lambda pair: _seeds(pair, margin))
    return seeds_advice(worst.contrast, _distance(worst, margin))


def _seeds(pair: Pair, margin: float) -> float:
    """Seeds that would decide a pair; infinity if more than a hundred."""
    found = pair.contrast.seeds_for(_distance(pair, margin))
    return math.inf if found is None else found


def _distance(pair: Pair, margin: float) -> float:
    return abs(abs(pair.contrast.point) - margin)


def _too_few_arms(found: Family) -> Decision:
    known = f"Only of {found.kept[0].name} is" if found.kept else "Of no arm is"
    return Decision(UNDECIDED, f"{known} the optimum known, and two are needed.", _lacking(found))


def _too_few_seeds(found: Family, noun: str) -> Decision:
    """One or two seeds: the points, and what an assumed spread would make of them."""
    points = ", ".join(
        f"{pair.second.name} {pair.ratio.point:.2g}"
        for pair in found.pairs
        if pair.first == found.kept[0]
    )
    few = "one seed cannot" if found.n == 1 else "two seeds cannot"
    text = f"{few[0].upper()}{few[1:]} carry an interval. The {noun} over that of "
    text += f"{found.kept[0].name}: {points}."
    note = assumed_note(found.curves[-1], found.curves[0], found.fraction)
    return Decision(UNDECIDED, text + note, seeds_text(MIN_SEEDS - found.n, "search"))


def linear(contrast: Contrast) -> Estimate:
    """A contrast in decades as a ratio."""
    return from_decades(contrast.estimate())


def ratio_text(found: Estimate) -> str:
    """``1.3 [1.1, 1.6]``, or the point alone."""
    if found.interval is None:
        return f"{found.point:.2g}"
    return f"{found.point:.2g} [{found.interval[0]:.2g}, {found.interval[1]:.2g}]"
