"""What a verdict is: a claim in words, the numbers that decide it, and the reason."""

from __future__ import annotations

import math
from dataclasses import dataclass

from analysis.estimates.stats import CONFIDENCE, Estimate

SUPPORTED, REFUTED, UNDECIDED = "supported", "refuted", "undecided"
LEVEL = (1 - CONFIDENCE) / 2
"""Level of each one-sided test."""


@dataclass(frozen=True)
class Verdict:
    """One claim about named arms of one sweep."""

    claim_id: str
    statement: str
    """The claim as a sentence that names arms, model and task."""
    arms: tuple[str, ...]
    """The arms it is about, the baseline last."""
    estimate: float | None
    """The number that decides, None where there is none."""
    interval: tuple[float, float] | None
    """Its interval, None where none may be stated; the reason says why."""
    confidence: float
    """Level of the interval."""
    verdict: str
    """``supported``, ``refuted`` or ``undecided``."""
    reason: str
    """Why, in a sentence or two; of an undecided verdict also what would decide it."""
    n_seeds: int
    """Seeds behind the estimate; 0 without one."""
    flags: tuple[str, ...] = ()
    missing: str = ""
    """What would decide an undecided verdict, as "2 more search seeds"; empty otherwise."""
    unit: str = ""
    """How the estimate reads: ``difference`` (score), ``ratio`` (times), ``decades``, ``slope``,
    ``share``."""


@dataclass(frozen=True)
class Obstacle:
    """Why a claim cannot be judged, and what would remove the obstacle."""

    flag: str
    reason: str
    missing: str = ""
    """What would remove it, for :attr:`Verdict.missing`."""


@dataclass(frozen=True)
class Decision:
    """The outcome of a criterion: verdict, reason, and what is missing if undecided."""

    verdict: str
    reason: str
    missing: str = ""


def decided(
    claim_id: str,
    statement: str,
    arms: tuple[str, ...],
    decision: Decision,
    estimate: Estimate | None,
    flags: tuple[str, ...] = (),
    n_seeds: int | None = None,
    unit: str = "",
) -> Verdict:
    """The verdict that a criterion came to.

    Args:
        claim_id: Of the claim.
        statement: The claim as a sentence that names arms, model and task.
        arms: The arms it is about, the baseline last.
        decision: Outcome of the criterion.
        estimate: The number that decided; None or NaN where there is none.
        flags: What a reader should know of the estimate.
        n_seeds: Seeds behind it, where the estimate does not say.
        unit: How the estimate reads, if not as the claim says.
    """
    shown = estimate is not None and math.isfinite(estimate.point)
    return Verdict(
        claim_id=claim_id,
        statement=statement,
        arms=arms,
        estimate=estimate.point if estimate is not None and shown else None,
        interval=estimate.interval if estimate is not None else None,
        confidence=CONFIDENCE,
        verdict=decision.verdict,
        reason=decision.reason,
        n_seeds=n_seeds if n_seeds is not None else (estimate.n if estimate else 0),
        flags=tuple(dict.fromkeys(flags)),
        missing=decision.missing,
        unit=unit,
    )


def undecided(claim_id: str, statement: str, arms: tuple[str, ...], obstacle: Obstacle) -> Verdict:
    """The verdict where an obstacle leaves no estimate."""
    decision = Decision(UNDECIDED, obstacle.reason, obstacle.missing)
    return decided(claim_id, statement, arms, decision, None, (obstacle.flag,))


def more_seeds(needed: int | None, present: int, phase: str) -> str:
    """The advice that follows from ``Contrast.seeds_for``, as a clause."""
    if needed is None:
        return f"too close to the bound for more {phase} seeds alone"
    return (
        f"about {seeds_text(needed - present, phase)} would decide it if the estimate stays where "
        "it is"
    )


def missing_seeds(needed: int | None, present: int, phase: str) -> str:
    """The same as an entry of what is missing."""
    if needed is None:
        return f"more than 100 {phase} seeds, or an effect farther from the bound"
    return seeds_text(needed - present, phase)


def seeds_text(more: int, phase: str) -> str:
    """``1 more search seed``, ``2 more search seeds``."""
    return f"{more} more {phase} seed{'' if more == 1 else 's'}"


def direction(difference: float) -> str:
    """On which side of the baseline a refuted difference lies, in words."""
    return "higher than" if difference > 0 else "lower than"
