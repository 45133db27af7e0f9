"""What each change between two configurations gained, from seeds that did not choose it.

The path is chosen on search seeds; its gains are estimated on report seeds, paired by seed, so that
the largest of several noisy gains is not taken at its word. A gain is called one where Holm's
correction over the changes leaves it apart from zero, else it is undecided.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from scipy.special import stdtr

from analysis.estimates.curve import oriented_scores
from analysis.estimates.equivalence import holm
from analysis.estimates.stats import CONFIDENCE, MIN_SEEDS, Contrast, Estimate, paired_difference
from analysis.reading.ablated import ablation_lattice
from analysis.reading.arms import choice, reported, same_rate, scored
from analysis.reading.sweep import Sweep
from study.plan.arms import RATE_KEY, is_factor
from study.plan.lattice import Lattice

GAIN, LOSS, UNDECIDED = "gain", "loss", "undecided"
ALL = "all"
"""The row of the whole difference, target against source."""

Scores = Mapping[int, float]
"""By seed, higher is better."""


@dataclass(frozen=True)
class Change:
    """One factor changed, or all of them."""

    factor: str
    """Key of the config; :data:`ALL` for the target against the source."""
    before: str
    after: str
    """The arms that are compared."""
    values: tuple[Any, Any]
    """The factor's value in them; None where it has several parts, or for all factors."""
    gain: Estimate | None
    """Score of ``after`` minus ``before``, on report seeds; None until both have some."""
    verdict: str
    """``gain``, ``loss`` or ``undecided``."""
    alone: float | None = None
    """Gain of the same factor changed alone in the source, on search seeds."""
    rival: str = ""
    """On a path, the factor whose gain on search seeds came next in this round."""
    order_open: bool = False
    """Whether search seeds cannot tell the two apart."""


@dataclass(frozen=True)
class Ablation:
    """The changes of an ablation, in the order in which they were made."""

    source: str
    target: str
    path: bool
    changes: tuple[Change, ...]
    whole: Change
    """All factors together."""
    finished: bool
    """Whether the path has reached the target, or every factor was changed alone."""


def ablation(sweep: Sweep) -> Ablation | None:
    """What an ablation found so far; None for an experiment that is none."""
    lattice = ablation_lattice(sweep)
    if lattice is None:
        return None
    found = _Scores(sweep)
    way = lattice.walked(sweep.selections)
    pairs = list(pairwise(way))
    if not lattice.path:
        pairs = [(lattice.source, arm) for arm in lattice.candidates(lattice.source)]
    gains = [found.gain(*pair, "report") for pair in pairs]
    words = [_word(gain, p) for gain, p in zip(gains, _corrected(gains), strict=True)]
    changes = tuple(
        _change(found, lattice, pair, gain, word)
        for pair, gain, word in zip(pairs, gains, words, strict=True)
    )
    whole = found.gain(lattice.source, lattice.target, "report")
    return Ablation(
        source=lattice.source,
        target=lattice.target,
        path=lattice.path,
        changes=changes,
        whole=Change(
            factor=ALL,
            before=lattice.source,
            after=lattice.target,
            values=(None, None),
            gain=None if whole is None else whole.estimate(),
            verdict=_word(whole, _p(whole)),
        ),
        finished=way[-1] == lattice.target if lattice.path else all(gains),
    )


@dataclass(frozen=True)
class _Scores:
    """Scores of arms by seed."""

    sweep: Sweep

    def of(self, arm: str, phase: str) -> Scores:
        """Scores at the learning rate that the arm goes by; runs of one seed are one."""
        if arm not in self.sweep.plan["arms"]:
            return {}
        rows = reported(self.sweep, arm)
        if phase == "search":
            rows = scored(self.sweep.runs, arm, "search")
            chosen = choice(self.sweep, arm)
            rate = None if chosen is None else chosen.learning_rate
            rows = rows[[rate is not None and same_rate(x, rate) for x in rows["learning_rate"]]]
        oriented = rows.assign(oriented=oriented_scores(rows, "score_final"))
        means = oriented.groupby("seed")["oriented"].mean()
        return dict(zip(means.index.astype(int), means.astype(float), strict=True))

    def gain(self, before: str, after: str, phase: str) -> Contrast | None:
        """Score of ``after`` minus ``before`` over the seeds that both have; None without any."""
        first, second = self.of(before, phase), self.of(after, phase)
        shared = sorted(first.keys() & second.keys())
        if not shared:
            return None
        return paired_difference([second[s] for s in shared], [first[s] for s in shared])


def _change(
    found: _Scores, lattice: Lattice, pair: tuple[str, str], gain: Contrast | None, word: str
) -> Change:
    before, after = pair
    factor = lattice.change(before, after)
    alone = found.gain(lattice.source, lattice.name((factor,)), "search")
    rival, order_open = _rival(found, lattice, pair)
    return Change(
        factor=factor,
        before=before,
        after=after,
        values=_values(found.sweep, factor, pair),
        gain=None if gain is None else gain.estimate(),
        verdict=word,
        alone=None if alone is None else alone.point,
        rival=rival,
        order_open=order_open,
    )


def _rival(found: _Scores, lattice: Lattice, pair: tuple[str, str]) -> tuple[str, bool]:
    """The factor that came next in a round of the path, and whether it might have come first."""
    before, after = pair
    others = [arm for arm in lattice.candidates(before) if lattice.path and arm != after]
    leads = {arm: lead for arm in others if (lead := found.gain(arm, after, "search")) is not None}
    if not leads:
        return "", False
    nearest = min(leads, key=lambda arm: leads[arm].point)
    interval = leads[nearest].estimate().interval
    return lattice.change(before, nearest), interval is None or interval[0] <= 0


def _values(sweep: Sweep, factor: str, pair: tuple[str, str]) -> tuple[Any, Any]:
    arms = [sweep.plan["arms"].get(arm, {}) for arm in pair]
    if factor == RATE_KEY:
        before, after = (arm.get("learning_rates", [None])[0] for arm in arms)
        return before, after
    settings = [arm.get("factors", {}) for arm in arms]
    keys = {key for values in settings for key in values if is_factor(key, [factor])}
    differing = [key for key in keys if settings[0].get(key) != settings[1].get(key)]
    named = f"{factor}.name"
    key = named if named in differing else differing[0] if len(differing) == 1 else ""
    return settings[0].get(key), settings[1].get(key)


def _p(contrast: Contrast | None) -> float:
    """Two-sided p value for no difference; 1 where no interval may be stated."""
    if contrast is None or contrast.n < MIN_SEEDS or not contrast.has_spread:
        return 1.0
    return 2 * float(stdtr(contrast.df, -abs(contrast.point) / contrast.standard_error))


def _corrected(gains: list[Contrast | None]) -> list[float]:
    return holm([_p(gain) for gain in gains])


def _word(contrast: Contrast | None, p: float) -> str:
    if contrast is None or p >= 1 - CONFIDENCE:
        return UNDECIDED
    return GAIN if contrast.point > 0 else LOSS
