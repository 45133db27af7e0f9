"""C1 and C2: LoRA scores the same as full fine-tuning, at its highest rank and at every rank.

Equality is claimed only by two one-sided tests against a margin: supported if the 90 % interval
of the difference lies inside it, refuted if wholly outside, undecided otherwise.
"""

from __future__ import annotations

from analysis.claims.comparison import (
    Comparison,
    comparisons,
    setting,
    whole_sweep_obstacle,
)
from analysis.claims.difference import Finding, ScoreDifference, measure
from analysis.claims.verdict import (
    REFUTED,
    SUPPORTED,
    UNDECIDED,
    Obstacle,
    Verdict,
    direction,
    more_seeds,
    undecided,
)
from analysis.estimates.equivalence import holm
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import CONFIDENCE, MIN_SEEDS
from analysis.reading.sweep import Sweep

HIGH_RANK, EVERY_RANK = "C1", "C2"
LEVEL = (1 - CONFIDENCE) / 2
"""Level of each one-sided test."""


def check(sweep: Sweep, search: SearchSummary) -> list[Verdict]:
    """C1 for the highest rank, C2 for each LoRA arm (Holm over arms), C2 for all of them.

    Report seeds decide; where an experiment has none, its search seeds do by cross-fitting.

    Args:
        sweep: An experiment with both methods; otherwise one undecided verdict per claim says
            what lacks.
        search: Of the same sweep.
    """
    obstacle = whole_sweep_obstacle(sweep, methods_only=True)
    if obstacle is not None:
        return [
            undecided(claim, _statement(f"LoRA at {ranks}", "FullFT", sweep), (), obstacle)
            for claim, ranks in ((HIGH_RANK, "its highest rank"), (EVERY_RANK, "every rank"))
        ]
    found = [(c, measure(sweep, c, search)) for c in comparisons(sweep)]
    top = max(c.lora.rank or 0 for c, _ in found)
    high = [_judge(sweep, HIGH_RANK, c, p) for c, p in found if (c.lora.rank or 0) == top]
    each = _judge_each(sweep, found)
    return [*high, *each, *_judge_all(sweep, found, each)]


def _statement(lora: str, full: str, sweep: Sweep) -> str:
    return f"{lora} scores the same as {full}, within the margin: {setting(sweep)}."


def _judge(sweep: Sweep, claim: str, comparison: Comparison, found: Finding) -> Verdict:
    """A verdict without correction for the number of ranks."""
    if isinstance(found, Obstacle):
        statement = _pair_statement(sweep, claim, comparison)
        return undecided(claim, statement, comparison.names, found)
    return _verdict(sweep, claim, found, found.inside_p, found.outside_p, ranks=1)


def _judge_each(sweep: Sweep, found: list[tuple[Comparison, Finding]]) -> list[Verdict]:
    """One C2 verdict per LoRA arm, with Holm's correction over those that have an interval."""
    tested = [p for _, p in found if isinstance(p, ScoreDifference) and p.contrast.n >= MIN_SEEDS]
    inside = dict(zip(map(id, tested), holm([p.inside_p for p in tested]), strict=True))
    outside = dict(zip(map(id, tested), holm([p.outside_p for p in tested]), strict=True))
    return [
        _verdict(sweep, EVERY_RANK, p, inside[id(p)], outside[id(p)], ranks=len(tested))
        if isinstance(p, ScoreDifference) and id(p) in inside
        else _judge(sweep, EVERY_RANK, comparison, p)
        for comparison, p in found
    ]


def _pair_statement(sweep: Sweep, claim: str, comparison: Comparison) -> str:
    lora = comparison.lora.description
    if claim == HIGH_RANK and comparison.lora.rank is not None:
        lora += f", the highest rank of this sweep (r = {comparison.lora.rank}),"
    return _statement(lora, comparison.baseline, sweep)


def _verdict(
    sweep: Sweep, claim: str, found: ScoreDifference, inside_p: float, outside_p: float, ranks: int
) -> Verdict:
    estimate = found.contrast.estimate()
    verdict, reason = UNDECIDED, _few_seeds_reason(found)
    flags = found.flags if estimate.interval else (*found.flags, "few_seeds")
    if estimate.interval:
        verdict, reason = _decide(found, inside_p, outside_p, ranks)
    return Verdict(
        claim_id=claim,
        statement=_pair_statement(sweep, claim, found.comparison),
        arms=found.comparison.names,
        estimate=estimate.point,
        interval=estimate.interval,
        confidence=estimate.confidence,
        verdict=verdict,
        reason=reason,
        n_seeds=estimate.n,
        flags=flags,
    )


def _few_seeds_reason(found: ScoreDifference) -> str:
    more = MIN_SEEDS - found.contrast.n
    return (
        f"Fewer than 3 report seeds, so no interval: at least {more} more report "
        f"{'seed' if more == 1 else 'seeds'}, better 5 in all."
    )


def _decide(
    found: ScoreDifference, inside_p: float, outside_p: float, ranks: int
) -> tuple[str, str]:
    """Verdict and reason from (possibly adjusted) p values; at most one of them is small."""
    low, high = found.contrast.estimate().interval or (0.0, 0.0)
    number = (
        f"The difference {found.contrast.point:+.3f} [{low:+.3f}, {high:+.3f}] ({found.source})"
    )
    band = f"±{found.margin:.3f}"
    holds = f" after Holm's correction over {ranks} arms" if ranks > 1 else ""
    if inside_p < LEVEL:
        return SUPPORTED, f"{number} lies inside {band}{holds}."
    if outside_p < LEVEL:
        side = direction(found.contrast.point)
        return REFUTED, f"{number} lies wholly outside {band}{holds}: LoRA scores {side} FullFT."
    return UNDECIDED, f"{number} {_undecided_advice(found, min(inside_p, outside_p), band, ranks)}."


def _undecided_advice(found: ScoreDifference, p: float, band: str, ranks: int) -> str:
    """What keeps a difference undecided; seeds are counted only where one test is made."""
    phase = "search" if "cross_fitted" in found.flags else "report"
    if min(found.inside_p, found.outside_p) < LEVEL:
        word = "support" if found.inside_p < LEVEL else "refute"
        return (
            f"would {word} the claim against {band} uncorrected, but does not after Holm's "
            f"correction over {ranks} arms (p = {p:.2f}): more {phase} seeds are needed"
        )
    if ranks > 1:
        return f"crosses a bound of {band}: more {phase} seeds are needed"
    distance = abs(abs(found.contrast.point) - found.margin)
    advice = more_seeds(found.contrast.seeds_for(distance), found.contrast.n, phase)
    return f"crosses a bound of {band}: {advice}"


def _judge_all(
    sweep: Sweep, found: list[tuple[Comparison, Finding]], each: list[Verdict]
) -> list[Verdict]:
    """The claim on every rank: supported if each is uncorrected, refuted if any is after Holm."""
    if len(found) < 2:
        return []
    single = [_judge(sweep, EVERY_RANK, comparison, p) for comparison, p in found]
    reasons = {p.reason for _, p in found if isinstance(p, Obstacle)}
    refuted = [v for v in each if v.verdict == REFUTED]
    doubtful = [v.arms[0] for v in single if v.verdict != SUPPORTED]
    if refuted:
        sides = [f"{v.arms[0]} scores {direction(v.estimate or 0.0)} FullFT" for v in refuted]
        verdict, reason = REFUTED, f"{', '.join(sides)}, after Holm's correction."
    elif not doubtful:
        verdict, reason = SUPPORTED, f"Each of the {len(each)} arms scores the same as FullFT."
    elif len(reasons) == 1 and len(doubtful) == len(each):
        verdict, reason = UNDECIDED, reasons.pop()
    else:
        verdict = UNDECIDED
        reason = f"Undecided for {', '.join(doubtful)}: see the verdicts on single arms."
    baselines = sorted({v.arms[1] for v in each if len(v.arms) > 1})
    ranks = ", ".join(str(rank) for rank in sorted({c.lora.rank or 0 for c, _ in found}))
    return [
        Verdict(
            claim_id=EVERY_RANK,
            statement=_statement(f"LoRA at every rank of the sweep ({ranks})", "FullFT", sweep),
            arms=(*(c.lora.name for c, _ in found), *baselines),
            estimate=None,
            interval=None,
            confidence=CONFIDENCE,
            verdict=verdict,
            reason=reason,
            n_seeds=min(v.n_seeds for v in each),
            flags=tuple(dict.fromkeys(flag for v in each for flag in v.flags)),
        )
    ]
