"""What a verdict is: a claim in words, the numbers that decide it, and the reason."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.estimates.stats import CONFIDENCE

SUPPORTED, REFUTED, UNDECIDED = "supported", "refuted", "undecided"


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


@dataclass(frozen=True)
class Obstacle:
    """Why a claim cannot be judged, and what would remove the obstacle."""

    flag: str
    reason: str


def undecided(claim_id: str, statement: str, arms: tuple[str, ...], obstacle: Obstacle) -> Verdict:
    """The verdict where an obstacle leaves no estimate."""
    return Verdict(
        claim_id=claim_id,
        statement=statement,
        arms=arms,
        estimate=None,
        interval=None,
        confidence=CONFIDENCE,
        verdict=UNDECIDED,
        reason=obstacle.reason,
        n_seeds=0,
        flags=(obstacle.flag,),
    )


def more_seeds(needed: int | None, present: int, phase: str) -> str:
    """The advice that follows from ``Contrast.seeds_for``, as a clause."""
    if needed is None:
        return f"too close to the bound for more {phase} seeds alone"
    more = needed - present
    plural = "seed" if more == 1 else "seeds"
    return f"about {more} more {phase} {plural} would decide it if the estimate stays where it is"


def direction(difference: float) -> str:
    """On which side of FullFT a refuted difference lies, in words."""
    return "higher than" if difference > 0 else "lower than"
