"""Search modes beside the plain grid: how an experiment chooses what it runs next."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from study.config.laws import require

MOST_POINTS = 10
"""More would not fit between two learning rates of a grid."""


@dataclass(kw_only=True)
class RefineConfig:
    """Learning rates added around each arm's best grid rate once its grid has been recorded.

    A Gaussian process on the arm's seed means places them within one grid step of the best rate;
    all search seeds run at each. Curves and ratios are estimated from the grid alone.
    """

    points: int
    """Learning rates added to each arm: an arm with more of them would win by selection."""

    def __post_init__(self) -> None:
        inside = 1 <= self.points <= MOST_POINTS
        require(inside, f"1 <= experiment.refine.points <= {MOST_POINTS}", points=self.points)


@dataclass(kw_only=True)
class BestConfig:
    """A joint search over settings and learning rates, for those who only want a good setting.

    An arm is a combination of ``choices``, a trial an arm at a learning rate. Which trials are
    tried follows from earlier ones, so arms are unequally searched: no claim is decided.
    """

    choices: dict[str, list[Any]] = field(default_factory=dict)
    """Config key -> values to choose from; the arms are all their combinations. Empty: the arms of
    ``experiment.arms``."""
    low: float | None = None
    """Lowest learning rate; null: the least of the arm's list in ``space.learning_rate``."""
    high: float | None = None
    """Highest learning rate; null: the largest of that list."""
    trials: int
    """Trials in all; may grow later."""
    finalists: int
    """Trials of best mean search score that run again on the report seeds; the best of them by
    those seeds wins."""

    def __post_init__(self) -> None:
        where = "experiment.best"
        require(self.trials >= 2, f"{where}.trials >= 2", trials=self.trials)
        inside = 1 <= self.finalists <= self.trials
        require(inside, f"1 <= {where}.finalists <= trials", finalists=self.finalists)
        self._check_range()
        for key, values in self.choices.items():
            if len({repr(value) for value in values}) != len(values) or not values:
                raise ValueError(f"{where}.choices.{key} must be distinct values, got {values}")
            for value in values:
                if not isinstance(value, bool | int | float | str):
                    raise ValueError(
                        f"{where}.choices.{key} must be numbers, words or true and false, "
                        f"got {value!r}"
                    )

    def _check_range(self) -> None:
        if (self.low is None) != (self.high is None):
            raise ValueError(
                "experiment.best.low and high are set together or not at all, got "
                f"{self.low} and {self.high}"
            )
        if self.low is not None and self.high is not None:
            check_span("experiment.best", self.low, self.high)

    def grows(self, later: BestConfig) -> bool:
        """Whether ``later`` only continues this search: more trials, or further values of a key."""
        more = later.trials >= self.trials and later.choices.keys() == self.choices.keys()
        return (
            more
            and all(
                all(value in later.choices[key] for value in values)
                for key, values in self.choices.items()
            )
            and (later.low, later.high, later.finalists) == (self.low, self.high, self.finalists)
        )


LEAST_SPAN = 2.0
"""Highest over lowest learning rate of a range that is worth a search."""


def check_span(who: str, low: float, high: float) -> None:
    """Refuse a range of learning rates that is none.

    Raises:
        ValueError: naming ``who``.
    """
    if not (low > 0 and math.isfinite(high) and high >= LEAST_SPAN * low):
        raise ValueError(
            f"{who} searches learning rates in 0 < low, {LEAST_SPAN:g} low <= high, "
            f"got low={low:g} and high={high:g}"
        )
