"""The configurations between two: each factor has the source's value or the target's."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from study.config import ExperimentConfig
from study.config.laws import check_name


@dataclass(frozen=True, kw_only=True)
class Lattice:
    """Every arm of an ablation, by which of its factors have been changed to the target's value.

    Raises:
        ValueError: if two arms would have one name.
    """

    source: str
    target: str
    factors: tuple[str, ...]
    """In the order of the experiment's file, which breaks ties."""
    path: bool

    def __post_init__(self) -> None:
        between = 2 ** len(self.factors) if self.path else len(self.factors) + 2
        if len(self.changed) < between:
            raise ValueError(
                f"the arms between {self.source} and {self.target} need names of their own, but "
                f"two of {', '.join(self.changed)} are called alike: rename source or target"
            )

    @cached_property
    def changed(self) -> dict[str, tuple[str, ...]]:
        """Changed factors by arm: source, target, then those in between, fewer changes first."""
        sizes = range(1, len(self.factors)) if self.path else (1,)
        between = [some for size in sizes for some in itertools.combinations(self.factors, size)]
        return {self.name(some): some for some in [(), self.factors, *between]}

    @property
    def first(self) -> list[str]:
        """The arms that are run whatever comes out: both ends, and each factor changed alone."""
        return [self.source, self.target, *self.candidates(self.source)]

    def name(self, changed: Collection[str]) -> str:
        """What the arm with these factors changed is called: ``default.rank.steps``."""
        if not changed or len(changed) == len(self.factors):
            return self.target if changed else self.source
        return ".".join([self.source, *(self.label(f) for f in self.factors if f in changed)])

    def label(self, factor: str) -> str:
        """A factor's last word, or all of it where another ends alike."""
        last = factor.rsplit(".", 1)[-1]
        alike = [other for other in self.factors if other.rsplit(".", 1)[-1] == last]
        return last if len(alike) == 1 else factor

    def candidates(self, arm: str) -> list[str]:
        """The arms that have one more factor changed than ``arm``, in the order of the factors."""
        before = self.changed[arm]
        return [self.name((*before, factor)) for factor in self.factors if factor not in before]

    def change(self, before: str, after: str) -> str:
        """The factor in which two neighbouring arms differ."""
        return next(f for f in self.changed[after] if f not in self.changed[before])

    def walked(self, decided: Collection[str]) -> list[str]:
        """The path as far as it is decided: the source, then an arm a round."""
        way = [self.source]
        while step := next((arm for arm in self.candidates(way[-1]) if arm in decided), None):
            way.append(step)
        return way

    @property
    def searched_in_all(self) -> int:
        """Arms that are run in the search phase by the end."""
        k = len(self.factors)
        return 1 + k * (k + 1) // 2 if self.path else k + 2

    @property
    def reported_in_all(self) -> int:
        """Arms that are run in the report phase by the end."""
        return len(self.factors) + (1 if self.path else 2)


def lattice_of(experiment: ExperimentConfig) -> Lattice | None:
    """The arms of an ablation; None for an experiment that is none."""
    if experiment.ablate is None:
        return None
    return Lattice(
        source=experiment.ablate.source,
        target=experiment.ablate.target,
        factors=tuple(experiment.factors),
        path=experiment.ablate.path,
    )


def arm_overrides(experiment: ExperimentConfig) -> dict[str, list[str]]:
    """The overrides of every arm that an experiment may run.

    Raises:
        ValueError: if the ends of an ablation differ outside its factors, or agree in one, or an
            arm's name gets too long.
    """
    lattice = lattice_of(experiment)
    if lattice is None:
        return dict(experiment.arms)
    for arm in lattice.changed:
        check_name(arm)
    ends = [_by_factor(experiment.arms[name], lattice) for name in (lattice.source, lattice.target)]
    for factor in lattice.factors:
        if ends[0][factor] == ends[1][factor]:
            raise ValueError(
                f"{lattice.source} and {lattice.target} must differ in each of experiment.factors, "
                f"but both set {factor} alike"
            )
    for override in sorted({*ends[0][""]} ^ {*ends[1][""]}):
        raise ValueError(
            f"{lattice.source} and {lattice.target} may differ only in experiment.factors="
            f"{list(lattice.factors)}, but one of them sets {override!r}"
        )
    return {
        arm: [*ends[0][""], *_chain(ends[factor in changed][factor] for factor in lattice.factors)]
        for arm, changed in lattice.changed.items()
    }


def _by_factor(overrides: Sequence[str], lattice: Lattice) -> dict[str, list[str]]:
    """Overrides by the factor that they belong to; under the empty key those of none."""
    found: dict[str, list[str]] = {key: [] for key in ("", *lattice.factors)}
    for override in overrides:
        key = override.partition("=")[0].lstrip("+~")
        owners = (f for f in lattice.factors if key == f or key.startswith(f"{f}."))
        found[next(owners, "")].append(override)
    return found


def _chain(parts: Iterable[list[str]]) -> list[str]:
    return [override for part in parts for override in part]
