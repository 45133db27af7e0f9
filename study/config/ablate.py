"""Changing one factor at a time between two configurations."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import dataclass

from study.config.laws import require

MOST_FACTORS = 6
"""On a path; between source and target lie 2^6 configurations then."""


@dataclass(kw_only=True)
class AblateConfig:
    """Which of the factors in which two arms differ make the difference between their scores.

    The arms ``source`` and ``target`` are configurations; those in between, each with some factors
    of the target and the others of the source, are made from them (Fawcett and Hoos 2016,
    "Analysing differences between algorithm configurations through ablation").
    """

    source: str
    """The arm that is changed one factor at a time."""
    target: str
    """The arm whose values the factors are changed to."""
    path: bool
    """Go on from the source to the target, each time by the factor that scores best (ties: the
    first in ``factors``); without, each factor is changed alone."""

    def check(self, arms: Collection[str], factors: list[str]) -> None:
        """Refuse arms and factors between which nothing could be changed one by one.

        Raises:
            ValueError: naming the law.
        """
        ends = {self.source, self.target}
        if len(ends) < 2 or ends != set(arms):
            raise ValueError(
                "experiment.arms of an ablation are its source and its target, the others are made "
                f"from them; got source={self.source!r}, target={self.target!r} and experiment."
                f"arms {', '.join(arms)}"
            )
        require(len(factors) >= 2, "an ablation has at least 2 experiment.factors", factors=factors)
        for one, other in itertools.permutations(factors, 2):
            if one == other or other.startswith(f"{one}."):
                raise ValueError(
                    "the factors of an ablation are changed one by one, so none may be or lie "
                    f"below another, got {one} and {other}"
                )
        if self.path and len(factors) > MOST_FACTORS:
            raise ValueError(
                f"experiment.ablate.path takes at most {MOST_FACTORS} factors, since every "
                f"configuration between its ends is checked beforehand, got {len(factors)}: "
                "change keys together by the factor above them, or set path: false"
            )
