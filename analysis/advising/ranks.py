"""Which rank to start with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.advising.own import OwnSweep
from analysis.claims.c02_rank_one import CLAIM as EVERY_RANK
from analysis.claims.verdict import SUPPORTED, Verdict
from analysis.reading.arms import arms

DEFAULT_RANK, LAB_RANK = 32, 8
LAB_WIDTH = 256
"""Up to this hidden size a rank of 32 exceeds the smaller side of some matrices."""
PUBLISHED = (
    "TRL's table: rank 1 to 32 in RL for any model (a recipe, not a sweep)",
    "tinker-cookbook: rank 32 by default",
    "rank 1 scores as FullFT within noise: Schulman et al. 2025 (interval not published), Zhu 2025 "
    "(one seed), Gernitis 2026 (3 seeds: .550 +- .022 against .553 +- .029, mean and SD)",
    "against low ranks: PeRL, verl (at least 32) and others, where alpha or the learning rate went "
    "with the rank or was not tuned for it",
)


@dataclass(frozen=True)
class RankVerdict:
    """What one own sweep says of one rank: the verdict of C2 with its numbers."""

    rank: int
    sweep: str
    verdict: Verdict


@dataclass(frozen=True)
class RankAdvice:
    """A rank, why, and everything that was looked at."""

    rank: int
    why: str
    own: tuple[RankVerdict, ...]


def rank_advice(
    owned: Sequence[OwnSweep], asked: int | None, hidden_size: int | None
) -> RankAdvice:
    """The asked rank; else the lowest one that own sweeps show equal to FullFT; else a default.

    Args:
        owned: The user's sweeps.
        asked: ``--rank``.
        hidden_size: Of the model, where it is known.
    """
    verdicts = tuple(sorted(_verdicts(owned), key=lambda v: v.rank))
    equal = [v for v in verdicts if v.verdict.verdict == SUPPORTED]
    if asked is not None:
        return RankAdvice(asked, "the rank you asked for", verdicts)
    if equal:
        why = f"the lowest rank that {equal[0].sweep} shows equal to FullFT, within its margin"
        return RankAdvice(equal[0].rank, why, verdicts)
    small = hidden_size is not None and hidden_size <= LAB_WIDTH
    rank = LAB_RANK if small else DEFAULT_RANK
    reason = "no own sweep shows a rank equal to FullFT" if owned else "no own sweep was given"
    limit = f", and {LAB_RANK} where matrices are as small as here" if small else ""
    return RankAdvice(
        rank, f"{reason}; published defaults for RL go up to {DEFAULT_RANK}{limit}", verdicts
    )


def _verdicts(owned: Sequence[OwnSweep]) -> list[RankVerdict]:
    found = []
    for own in owned:
        if not own.sweep.is_experiment or EVERY_RANK.lacks(own.sweep):
            continue
        ranks = {arm.name: arm.rank for arm in arms(own.sweep)}
        for verdict in EVERY_RANK.check(own.sweep, own.search):
            rank = ranks.get(verdict.arms[0]) if len(verdict.arms) == 2 else None
            if rank is not None:
                found.append(RankVerdict(rank, own.sweep.origin, verdict))
    return found
