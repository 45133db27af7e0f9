"""C13: reinforcement learning avoids the principal directions of the weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analysis.claims.claim import Claim
from analysis.claims.comparison import Comparer
from analysis.claims.costs import phase
from analysis.claims.groups import model_and_task
from analysis.claims.probed import (
    Measured,
    contrast,
    exact,
    few,
    in_masters,
    is_rl,
    lacks_probes,
    measured_arms,
    over_null,
    times,
)
from analysis.claims.verdict import (
    REFUTED,
    SUPPORTED,
    UNDECIDED,
    Decision,
    Obstacle,
    Verdict,
    decided,
    undecided,
)
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import CONFIDENCE, NO_SPREAD, Contrast
from analysis.reading.arms import Arm, arms
from analysis.reading.sweep import Sweep

NULL = "turned"
"""Updates of equal norm and equal singular values: what is judged is where an update points."""
OVERLAP = "overlap with principal weights"
RATIOS: Mapping[str, Measured] = {
    OVERLAP: over_null("largest_on_principal", NULL),
    "turn of the leading left directions": over_null("angle_left_mean_deg", NULL),
    "turn of the leading right directions": over_null("angle_right_mean_deg", NULL),
    "shift of the singular values": over_null("spectral_shift", NULL),
}
"""What is measured, over its mean in random updates; the first is the estimate that is shown."""


@dataclass(frozen=True)
class _Side:
    """One ratio of one arm."""

    words: str
    found: Contrast

    def bounds(self, confidence: float) -> tuple[float, float]:
        """From three seeds on; equal ones are known exactly."""
        spread = self.found.standard_error > NO_SPREAD
        half = self.found.half_width(confidence) if spread else 0.0
        return self.found.point - half, self.found.point + half


def check(sweep: Sweep, search: SearchSummary) -> list[Verdict]:
    """One verdict per arm of reinforcement learning whose weights were measured.

    Args:
        sweep: An experiment with such an arm.
        search: Of the same sweep; not needed, for weights are no scores.
    """
    obstacle = Comparer(sweep).stopped_or_unfinished
    return [_check(sweep, arm, obstacle) for arm in _asked(sweep)]


def _asked(sweep: Sweep) -> list[Arm]:
    measured = measured_arms(sweep, RATIOS[OVERLAP])
    return [arm for arm in measured if in_masters(sweep, arm)]


def _lacks(sweep: Sweep) -> str:
    lack = lacks_probes(sweep, RATIOS[OVERLAP])
    return lack or ("" if _asked(sweep) else "an arm in float32 whose weights were measured")


def _check(sweep: Sweep, arm: Arm, obstacle: Obstacle | None) -> Verdict:
    statement = (
        f"The update of {arm.description} avoids the principal directions of the weights and "
        f"leaves their spectrum, more than chance does: {model_and_task(sweep, arm)}."
    )
    sides = _sides(sweep, arm)
    overlap = sides[0].found
    found = obstacle or next(filter(None, (few(sweep, side.found) for side in sides)), None)
    if found is not None:
        return undecided("C13", statement, (arm.name,), found)
    decision = _decide(sweep, sides, _others(sweep))
    return decided("C13", statement, (arm.name,), decision, exact(overlap))


def _sides(sweep: Sweep, arm: Arm) -> list[_Side]:
    found = ((words, contrast(sweep, arm, measured)) for words, measured in RATIOS.items())
    return [_Side(words, one) for words, one in found if one is not None]


def _decide(sweep: Sweep, sides: list[_Side], others: str) -> Decision:
    shown = "; ".join(f"{side.words} {times(side.found)}" for side in sides)
    number = f"Over random updates ({sides[0].found.n} seeds): {shown}.{others}"
    # All must hold for support, which needs no correction; one is enough to refute, which does.
    if all(side.bounds(CONFIDENCE)[1] < 1 for side in sides):
        return Decision(SUPPORTED, f"{number} All are below 1.")
    corrected = 1 - (1 - CONFIDENCE) / len(sides)
    above = [side.words for side in sides if side.bounds(corrected)[0] > 1]
    if above:
        return Decision(
            REFUTED, f"{number} Above 1, corrected for {len(sides)}: {', '.join(above)}."
        )
    missing = f"more {phase(sweep)} seeds, or longer runs"
    return Decision(UNDECIDED, f"{number} Some interval holds 1.", missing)


def _others(sweep: Sweep) -> str:
    """The overlap in arms that are not asked: supervised ones, of which the opposite is claimed,
    and those in bfloat16, where rounding avoids large weights by itself.
    """
    said: dict[str, list[str]] = {}
    for other in arms(sweep):
        found = contrast(sweep, other, RATIOS[OVERLAP])
        if found is not None and other not in _asked(sweep):
            where = "pure bfloat16" if is_rl(sweep, other) else "supervised training"
            said.setdefault(where, []).append(f"{other.name} {times(found)}")
    return "".join(f" Overlap in {where}: {', '.join(texts)}." for where, texts in said.items())


CLAIM = Claim(
    claim_id="C13",
    title="off the principals",
    statement=(
        "Updates of reinforcement learning avoid the principal directions of the weights, and "
        "their spectrum drifts little."
    ),
    criterion=(
        "Overlap of the update's largest entries with the principal weights, turn of the leading "
        "singular directions and shift of the singular values, each over its mean in random "
        "updates of equal norm and equal singular values: supported if all 90 % intervals lie "
        "below 1, refuted if one lies above 1 after correction for their number (Zhu et al. 2025, "
        "arXiv 2511.08567)."
    ),
    unit="ratio",
    question="Does reinforcement learning spare the main directions of the weights?",
    lacks=_lacks,
    check=check,
)
