"""Equality of two arms' scores, the decision that C1, C2 and C8 share.

Equality is claimed only by two one-sided tests against a margin: supported if the 90 % interval
of the difference lies inside it, refuted if wholly outside, undecided otherwise.
"""

from __future__ import annotations

from analysis.claims.comparison import Comparison
from analysis.claims.difference import Finding, ScoreDifference
from analysis.claims.verdict import (
    LEVEL,
    REFUTED,
    SUPPORTED,
    UNDECIDED,
    Decision,
    Obstacle,
    Verdict,
    decided,
    direction,
    missing_seeds,
    more_seeds,
    seeds_text,
    undecided,
)
from analysis.estimates.stats import MIN_SEEDS
from analysis.reading.arms import signed_text


def equality_verdict(
    claim_id: str, statement: str, comparison: Comparison, found: Finding
) -> Verdict:
    """Whether two arms score the same, without correction for other tests."""
    if isinstance(found, Obstacle):
        return undecided(claim_id, statement, comparison.names, found)
    return difference_verdict(claim_id, statement, found, equality(found))


def difference_verdict(
    claim_id: str, statement: str, found: ScoreDifference, decision: Decision
) -> Verdict:
    """The verdict of a decision on a score difference."""
    estimate = found.stated
    flags = found.flags if estimate.interval else (*found.flags, "few_seeds")
    return decided(
        claim_id, statement, found.comparison.names, decision, estimate, flags, unit="difference"
    )


def equality(
    found: ScoreDifference, p_values: tuple[float, float] | None = None, tests: int = 1
) -> Decision:
    """Whether a difference lies inside its margin, or outside.

    Args:
        found: The difference.
        p_values: For inside and for outside, corrected for the ``tests``; its own by default. At
            most one of them is small.
        tests: Tests they are corrected for.
    """
    if found.stated.interval is None:
        return few_seeds(found)
    inside_p, outside_p = p_values or (found.inside_p, found.outside_p)
    number, band = number_text(found), f"±{found.margin:.3f}"
    holds = f" after Holm's correction over {tests} arms" if tests > 1 else ""
    if inside_p < LEVEL:
        return Decision(SUPPORTED, f"{number} lies inside {band}{holds}.")
    if outside_p < LEVEL:
        return Decision(REFUTED, f"{number} lies wholly outside {band}{holds}: {side_text(found)}.")
    advice, missing = _advice(found, min(inside_p, outside_p), band, tests)
    return Decision(UNDECIDED, f"{number} {advice}.", missing)


def number_text(found: ScoreDifference) -> str:
    """``The difference -0.012 [-0.020, -0.004] (5 report seeds, paired t)``."""
    estimate = found.stated
    low, high = estimate.interval or (estimate.point, estimate.point)
    point, low_text, high_text = (signed_text(x, 3) for x in (estimate.point, low, high))
    return f"The difference {point} [{low_text}, {high_text}] ({found.source})"


def side_text(found: ScoreDifference) -> str:
    """``LoRA scores lower than FullFT``; where lower is better, whether that is good."""
    pair, stated = found.comparison, found.stated.point
    text = f"{pair.arm_noun} scores {direction(stated)} {pair.baseline_noun}"
    if found.lower_is_better:
        text += f", which is {'better' if stated < 0 else 'worse'}"
    return text


def few_seeds(found: ScoreDifference) -> Decision:
    """What is said of a difference without an interval."""
    more = MIN_SEEDS - found.contrast.n
    plural = "seed" if more == 1 else "seeds"
    reason = (
        f"Fewer than 3 report seeds, so no interval: at least {more} more report {plural}, better "
        "5 in all."
    )
    return Decision(UNDECIDED, reason, seeds_text(more, "report"))


def _advice(found: ScoreDifference, p: float, band: str, tests: int) -> tuple[str, str]:
    """What keeps a difference undecided; seeds are counted only where one test is made."""
    phase = found.phase
    if min(found.inside_p, found.outside_p) < LEVEL:
        word = "support" if found.inside_p < LEVEL else "refute"
        clause = (
            f"would {word} the claim against {band} uncorrected, but does not after Holm's "
            f"correction over {tests} arms (p = {p:.2f}): more {phase} seeds are needed"
        )
        return clause, f"more {phase} seeds"
    if tests > 1:
        clause = f"crosses a bound of {band}: more {phase} seeds are needed"
        return clause, f"more {phase} seeds"
    contrast = found.contrast
    needed = contrast.seeds_for(abs(abs(contrast.point) - found.margin))
    clause = f"crosses a bound of {band}: {more_seeds(needed, contrast.n, phase)}"
    return clause, missing_seeds(needed, contrast.n, phase)
