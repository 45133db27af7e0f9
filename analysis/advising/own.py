"""What the user's own sweeps say: best rates of the nearest arms, ratios, noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from analysis.advising.published import Sourced, to_width
from analysis.comparing.facts import ArmFacts, arm_facts
from analysis.comparing.numbers import Quantity
from analysis.comparing.side import Side
from analysis.estimates.plateau import FRACTION
from analysis.estimates.search import search_summary
from analysis.estimates.stats import Estimate
from analysis.reading.arms import model_name, task_name
from analysis.reading.sweep import Sweep

RANK_FACTOR = 2.0
"""LR* moves less than this between ranks (4 to 128; rank 1 is 1.1 to 1.8 times lower): 12 of 12
models of the cookbook's SFT sweep with interior optima."""
ASSUMED_FACTOR = 2.0
"""Each way, around a best rate without an interval; an assumption that is printed as one."""
UNKNOWN_WIDTH, NO_INTERVAL = 4.0, 2.0
"""Octaves of distance that an unknown width, and a rate without an interval, count for: enough
to come after a measured arm that is a doubling or two away."""
BOUND_FACTOR = 10.0
"""How far beyond a bound a grid looks."""


class OwnSweep(Side):
    """One of the user's sweeps."""

    @property
    def label(self) -> str:
        """Place, model and task."""
        return f"{self.sweep.origin} ({model_name(self.sweep)}, {task_name(self.sweep)})"


@dataclass(frozen=True)
class OwnArm:
    """One arm of the asked method."""

    own: OwnSweep
    facts: ArmFacts
    rate: Quantity
    """LR*."""
    ratio: Quantity | None
    """Over FullFT's; None for FullFT itself."""
    width: Estimate | None
    """Of its plateau, in decades."""

    @property
    def label(self) -> str:
        """Arm, place, and the arm's model and task."""
        about = ", ".join(
            str(self.facts.settings.get(key, f"unnamed {key.split('.')[0]}"))
            for key in ("model.name", "task.name")
        )
        return f"{self.facts.name} of {self.own.sweep.origin} ({about})"

    @property
    def supervised(self) -> bool:
        """Whether it is no RL: a loss for a score, or another objective than GRPO."""
        objective = self.facts.settings.get("objective.name")
        return self.own.sweep.direction == "minimize" or objective == "sft"


def own_sweeps(sweeps: Sequence[Sweep]) -> tuple[OwnSweep, ...]:
    """The sweeps with their search summaries."""
    return tuple(OwnSweep(sweep, search_summary(sweep)) for sweep in sweeps)


def nearest_arms(
    owned: Sequence[OwnSweep], method: str, rank: int | None, hidden_size: int | None
) -> list[OwnArm]:
    """Every arm of a method, the nearest first: RL before SFT, then rank, then width.

    Args:
        owned: The user's sweeps.
        method: ``full`` or ``lora``.
        rank: The asked rank; not read for full fine-tuning.
        hidden_size: The asked width, None if none was.
    """
    found = [_own_arm(own, facts) for own, facts in arms_of(owned, method)]
    return sorted(found, key=lambda arm: _distance(arm, rank, hidden_size))


def arms_of(owned: Sequence[OwnSweep], method: str) -> list[tuple[OwnSweep, ArmFacts]]:
    """Every arm of a method, ``full`` or ``lora``, with its sweep."""
    return [
        (own, facts)
        for own in owned
        for facts in arm_facts(own.sweep)
        if facts.arm.is_full == (method == "full")
    ]


def _own_arm(own: OwnSweep, facts: ArmFacts) -> OwnArm:
    optimum = own.search.optima.get(facts.name)
    fraction = own.search.fractions.get(facts.name, FRACTION)
    return OwnArm(
        own=own,
        facts=facts,
        rate=own.best_rate(facts.name, fraction),
        ratio=None if facts.arm.is_full else own.over_full(facts.name, fraction),
        width=None if optimum is None else optimum.width,
    )


def _distance(arm: OwnArm, rank: int | None, hidden_size: int | None) -> tuple[float, ...]:
    """RL before SFT; then octaves of rank and width, with a fine for what is not known."""
    width = arm.facts.hidden_size
    unknown = UNKNOWN_WIDTH if hidden_size is not None and width is None else 0.0
    unstated = 0.0 if arm.rate.interval else NO_INTERVAL
    octaves = _octaves(arm.facts.arm.rank, rank) + _octaves(width, hidden_size)
    return (not math.isfinite(arm.rate.point), arm.supervised, octaves + unknown + unstated)


def _octaves(value: int | None, wanted: int | None) -> float:
    """How often a number is doubled or halved to the other; 0 where either is unknown."""
    return abs(math.log2(value / wanted)) if value and wanted else 0.0


def sourced(
    arm: OwnArm, rank: int | None, hidden_size: int | None, family: str | None
) -> Sourced | None:
    """The best rate of an arm carried over to the asked rank and width; None if it has none.

    Each step away from what was measured widens the range, and says so.
    """
    if not math.isfinite(arm.rate.point) or arm.rate.estimate is None:
        return None
    low, high, what = _range(arm.rate)
    facts = arm.facts
    found = Sourced(
        arm.rate.point,
        low,
        high,
        what,
        arm.label,
        f"alpha {facts.alpha:g}" if facts.alpha else "as that sweep ran",
        "your own sweep",
        n=arm.rate.estimate.n,
    )
    if facts.arm.rank and rank and facts.arm.rank != rank:
        found = _to_rank(found, facts.arm.rank, rank)
    if facts.hidden_size is not None:
        return to_width(found, facts.hidden_size, hidden_size, family)
    if hidden_size is not None:
        text = f"{found.range_is}; the sweep does not state its hidden size, so it is not scaled"
        return replace(found, range_is=text)
    return found


def _range(rate: Quantity) -> tuple[float, float, str]:
    """Where the best rate may be, and what that range is."""
    if rate.interval is not None and rate.estimate is not None:
        level = f"{rate.estimate.confidence:.0%}".replace("%", " %")
        return (*rate.interval, f"{level} interval over {rate.estimate.n} seeds")
    point = rate.point
    if rate.bound == "at least":
        return point, point * BOUND_FACTOR, f"only a lower bound ({rate.reason})"
    if rate.bound == "at most":
        return point / BOUND_FACTOR, point, f"only an upper bound ({rate.reason})"
    text = f"no interval ({rate.reason}); a factor of {ASSUMED_FACTOR:g} each way is assumed"
    return point / ASSUMED_FACTOR, point * ASSUMED_FACTOR, text


def _to_rank(found: Sourced, had: int, wanted: int) -> Sourced:
    """A higher rank may want up to twice the rate, a lower one down to half of it."""
    assert found.low is not None and found.high is not None
    up = wanted > had
    return replace(
        found,
        low=found.low if up else found.low / RANK_FACTOR,
        high=found.high * RANK_FACTOR if up else found.high,
        range_is=f"{found.range_is}; widened from rank {had} to {wanted} by the factor of "
        f"{RANK_FACTOR:g} within which ranks keep their best rate in public SFT sweeps",
    )
