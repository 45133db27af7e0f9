"""Published learning rates, as numbers with their source, their scope and how far they hold.

All are for alpha = 32 scaled by alpha / rank, B = 0 at the start, one rate for A and B, AdamW,
constant rate. Two rates under other alpha rules are not comparable: compare alpha x rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

BASE_RATE = 5e-5
LORA_MULTIPLIER = 10.0
REFERENCE_WIDTH = 2000.0
EXPONENTS = {"llama": 0.781, "qwen3": 0.0775}
"""Exponent of the width by model family in the cookbook's rule."""
OBSERVED_FACTORS = {"llama": (1.0, 2.1), "qwen3": (0.41, 2.1)}
"""Smallest and largest LR* over the rule in the public half of the cookbook's own sweep (SFT on
Tulu 3): vertices of interior optima, and optima at the grid's high end as the bounds they are, so
the upper end is itself a lower bound."""
PUBLIC_WIDTH = 2048
"""Hidden size of Qwen3-1.7B, of the one public GRPO sweep over learning rates."""
STEEPEST_EXPONENT = 1.0
"""Of the width: theory has LR* fall with width to the power 1/2 (A random, as here) or 1."""


@dataclass(frozen=True)
class Sourced:
    """A number from somewhere, with its range or the reason why it has none."""

    value: float
    low: float | None
    high: float | None
    range_is: str
    """What the range is, or why there is none; never empty."""
    source: str
    scope: str
    """What it was found for."""
    checked: str
    """How far anyone has checked it."""
    n: int | None = None
    """Seeds behind it, where it was measured."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """``(low, high)``, or None where nothing was published."""
        return None if self.low is None or self.high is None else (self.low, self.high)


@dataclass(frozen=True)
class Place:
    """One published optimum: the middle of a plateau with its ends."""

    rate: float
    low: float
    high: float


GRPO_PLATEAUS = {
    0: Place(1.4486e-5, 5.2e-6, 4.0e-5),
    1: Place(4.9506e-5, 1.2e-5, 2.1e-4),
    16: Place(4.1289e-5, 1.4e-5, 1.2e-4),
}
"""By LoRA rank, 0 for FullFT: the plateaus (f = 0.2, final accuracy) of the public GRPO sweep."""
GRPO_RATIOS = {1: Place(3.2, 0.9, 5.2), 16: Place(5.2, 2.7, 17.0)}
"""By rank: LR* of LoRA over FullFT's in the same sweep."""
USED_IN_RL = Place(math.sqrt(1e-5 * 1e-4), 1e-5, 1e-4)
USED_IN_RL_FULL = Place(math.sqrt(1e-6 * 1e-5), 1e-6, 1e-5)
REPLICATION = "public replication 'Reproducing LoRA without Regret' (Zhu, 2025): raw data"


def check_family(family: str | None) -> str | None:
    """The family as the rules know it.

    Raises:
        ValueError: for one without a published rule, listing those that have one.
    """
    known = None if family is None else family.lower()
    if known is None or known in EXPONENTS:
        return known
    raise ValueError(
        f"no rule is published for the model family {family!r}; known are "
        f"{', '.join(sorted(EXPONENTS))}: leave --model-family out to go without the rule"
    )


def cookbook_rate(family: str, hidden_size: int) -> float:
    """Learning rate of LoRA: 5e-5 * 10 * (2000 / H)^P, P = 0.781 (Llama) or 0.0775 (Qwen).

    Source: tinker-cookbook (Thinking Machines Lab), ``hyperparam_utils.get_lr``; the form is
    fitted in Schulman et al. 2025, "LoRA Without Regret".

    Args:
        family: One of :data:`EXPONENTS`.
        hidden_size: At least 1.
    """
    return BASE_RATE * LORA_MULTIPLIER * math.pow(REFERENCE_WIDTH / hidden_size, EXPONENTS[family])


def supervised_rule(method: str, family: str, hidden_size: int) -> Sourced:
    """The cookbook's rule for a model; for FullFT, without its factor of ten."""
    rate = cookbook_rate(family, hidden_size)
    source = (
        "tinker-cookbook get_lr: 5e-5 * 10 * (2000 / hidden)^P, with P = "
        f"{EXPONENTS[family]:g} for {family}"
    )
    if method == "full":
        return Sourced(
            rate / LORA_MULTIPLIER,
            None,
            None,
            "no interval published",
            f"{source}, without the factor 10 of LoRA",
            "supervised fine-tuning",
            "one public check: Qwen3-4B on No Robots wants 2.5e-5, 0.51 times the rule",
        )
    low, high = OBSERVED_FACTORS[family]
    return Sourced(
        rate,
        low * rate,
        high * rate,
        f"spread of the best rates of {family} models over the rule, {low:g} to at least {high:g} "
        "times (the grid ends there), not a confidence interval",
        source,
        "supervised fine-tuning on Tulu 3, LoRA rank 1 to 128",
        "claimed within 0.5 % of the best loss, in supervised fine-tuning only; in the public GRPO "
        "sweep of Qwen3-1.7B, LoRA runs collapse from 2e-4 on, below this rule",
    )


def reinforced_rate(method: str, rank: int, family: str | None, hidden_size: int | None) -> Sourced:
    """What the one public GRPO sweep wanted, at its nearest rank, carried over to a width."""
    nearest = 0 if method == "full" else min((1, 16), key=lambda r: abs(math.log2(r / rank)))
    place = GRPO_PLATEAUS[nearest]
    arm = "FullFT in pure bfloat16" if method == "full" else f"LoRA rank {nearest}"
    found = Sourced(
        place.rate,
        place.low,
        place.high,
        "plateau of one sweep of one seed, not a confidence interval",
        REPLICATION,
        f"GRPO on MATH, Qwen3-1.7B (hidden size {PUBLIC_WIDTH}), 50 steps, {arm}",
        "never repeated; pure bfloat16 pushes FullFT's best rate up"
        if method == "full"
        else "never repeated",
        n=1,
    )
    return to_width(found, PUBLIC_WIDTH, hidden_size, family)


def to_width(found: Sourced, width: int, wanted: int | None, family: str | None) -> Sourced:
    """A rate carried from one hidden size to another, its range widened by the exponent's.

    The point moves by the family's exponent of the supervised rule (not at all without a family);
    the range takes in every exponent from 0 to 1, since none is established for RL.

    Args:
        found: The rate at ``width``.
        width: Hidden size it was found at.
        wanted: Hidden size asked for; None: leave the rate where it is.
        family: For the exponent.
    """
    if wanted is None or wanted == width:
        return found
    scale = width / wanted
    far = scale**STEEPEST_EXPONENT
    exponent = 0.0 if family is None else EXPONENTS[family]
    low, high = found.low, found.high
    return Sourced(
        found.value * scale**exponent,
        None if low is None else low * min(1.0, far),
        None if high is None else high * max(1.0, far),
        f"{found.range_is}; widened from hidden size {width} to {wanted} by every exponent from 0 "
        f"to {STEEPEST_EXPONENT:g} (the point by {exponent:g})",
        found.source,
        found.scope,
        found.checked,
        found.n,
    )


def used_rates(method: str) -> Sourced:
    """The rates that published RL recipes use; none of them is known to be a best one."""
    full = method == "full"
    place = USED_IN_RL_FULL if full else USED_IN_RL
    recipes = (
        "TRL's page and PeRL 1e-6, Gernitis 2026 1e-5"
        if full
        else "TRL's page and PeRL 1e-5, tinker-cookbook 2e-5 to 1e-4, Gernitis 2026 3e-5"
    )
    return Sourced(
        place.rate,
        place.low,
        place.high,
        "range of the rates in use (the point is its middle), not a confidence interval",
        recipes,
        "GRPO and policy gradient on math, 0.6B to 9B parameters",
        "one rate each; no sweep over rates is public for them",
    )


def _middles(rank: int) -> float:
    return GRPO_PLATEAUS[rank].rate / GRPO_PLATEAUS[0].rate


def published_ratio(rank: int | None) -> tuple[Sourced, Sourced]:
    """LR* of LoRA over FullFT's: the ten of the paper, and what the public GRPO sweep has."""
    nearest = 16 if rank is None else min(GRPO_RATIOS, key=lambda r: abs(math.log2(r / rank)))
    place = GRPO_RATIOS[nearest]
    ten = Sourced(
        LORA_MULTIPLIER,
        None,
        None,
        "no interval published",
        "Schulman et al. 2025, 'LoRA Without Regret' (fitted: 9.8 over 14 models)",
        "supervised fine-tuning and RL, rank 1 to 512",
        "supervised, Qwen3-4B: 10 at rank 256, 8.8 at rank 16, 4.8 at rank 1; in RL not confirmed "
        "outside the paper",
    )
    grpo = Sourced(
        place.rate,
        place.low,
        place.high,
        "90 % interval of a quadratic, from resampled evaluations and an assumed run noise of 1.2 "
        f"points; the middles of the plateaus give {_middles(nearest):.1f}",
        REPLICATION,
        f"GRPO on MATH, Qwen3-1.7B, 50 steps, rank {nearest}",
        "one seed; FullFT in pure bfloat16, which biases the ratio down",
        n=1,
    )
    return ten, grpo
