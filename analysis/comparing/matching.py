"""Which arm of one experiment is which of the other: by what it is, its name only breaks ties."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.comparing.facts import ArmFacts


@dataclass(frozen=True)
class Pair:
    """Two arms that are the same arm of two experiments."""

    a: ArmFacts
    b: ArmFacts

    @property
    def label(self) -> str:
        """How tables call it: the name, or both where they differ."""
        return self.a.name if self.a.name == self.b.name else f"{self.a.name} = {self.b.name}"


@dataclass(frozen=True)
class Matching:
    """The arms of two experiments, paired as far as they go."""

    pairs: tuple[Pair, ...]
    """FullFT first, then by rank."""
    only_a: tuple[ArmFacts, ...]
    only_b: tuple[ArmFacts, ...]
    ambiguous: tuple[tuple[str, ...], ...] = ()
    """Names, of A first, of arms that several partners fit equally well: left unmatched."""


def match(a: Sequence[ArmFacts], b: Sequence[ArmFacts]) -> Matching:
    """Pair arms of equal method, rank, target modules and batch.

    A fact that one side does not state fits any value. A batch, or a set of target modules, that
    all LoRA arms of an experiment share is a setting of the experiment: it is listed as a
    difference and keeps no arms apart. Of several partners the one whose config differs in the
    fewest keys is taken, then the one of the same name; if that leaves several, none is.

    Args:
        a: Arms of the first experiment, in the order of the result.
        b: Arms of the second.
    """
    keys = [key for key in ("targets", "batch") if not _is_setting(key, a, b)]
    fitting = [pair for pair in itertools.starmap(Pair, itertools.product(a, b))
               if _fits(pair, keys)]  # fmt: skip
    chosen, ambiguous = _choose(fitting)
    order = [facts.name for facts in a]
    taken = [facts for pair in chosen for facts in (pair.a, pair.b)]
    return Matching(
        pairs=tuple(sorted(chosen, key=lambda pair: order.index(pair.a.name))),
        only_a=tuple(facts for facts in a if not _among(facts, taken)),
        only_b=tuple(facts for facts in b if not _among(facts, taken)),
        ambiguous=ambiguous,
    )


def _choose(fitting: Sequence[Pair]) -> tuple[list[Pair], tuple[tuple[str, ...], ...]]:
    """The nearest pairs first; an arm that two partners fit equally well gets neither."""
    chosen: list[Pair] = []
    spent: list[ArmFacts] = []
    ambiguous: list[tuple[str, ...]] = []
    for _, group in itertools.groupby(sorted(fitting, key=_distance), _distance):
        tier = [p for p in group if not (_among(p.a, spent) or _among(p.b, spent))]
        for pair in tier:
            rivals = [p for p in tier if p.a is pair.a or p.b is pair.b]
            spent += [pair.a, pair.b]
            if len(rivals) == 1:
                chosen.append(pair)
            elif rivals[0] is pair:
                ambiguous.append(
                    tuple(dict.fromkeys([p.a.name for p in rivals] + [p.b.name for p in rivals]))
                )
    return chosen, tuple(ambiguous)


def _among(facts: ArmFacts, others: Sequence[ArmFacts]) -> bool:
    return any(facts is other for other in others)


def _is_setting(key: str, a: Sequence[ArmFacts], b: Sequence[ArmFacts]) -> bool:
    return all(len(_values(key, side)) <= 1 for side in (a, b))


def _values(key: str, side: Sequence[ArmFacts]) -> set[object]:
    """Values of a fact; FullFT has no target modules to differ in."""
    counted = [facts for facts in side if key != "targets" or not facts.arm.is_full]
    return {getattr(facts, key) for facts in counted}


def _fits(pair: Pair, keys: Sequence[str]) -> bool:
    a, b = pair.a, pair.b
    if a.arm.is_full != b.arm.is_full or a.arm.rank != b.arm.rank:
        return False
    return all(None in (x := (getattr(a, key), getattr(b, key))) or x[0] == x[1] for key in keys)


def _distance(pair: Pair) -> tuple[int, bool]:
    shared = set(pair.a.settings) & set(pair.b.settings)
    unequal = sum(pair.a.settings[key] != pair.b.settings[key] for key in shared)
    return unequal, pair.a.name != pair.b.name
