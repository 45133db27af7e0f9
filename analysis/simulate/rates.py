"""How often intervals cover and verdicts are right, for a design that nobody has paid for yet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from tqdm import tqdm

from analysis.claims.c03_ten_times import HIGH, LOW
from analysis.estimates.curve import LrCurve
from analysis.estimates.equivalence import beyond_margin_p, equivalence_p, holm
from analysis.estimates.optimum import LrRatio, Optimum, log_ratio, lr_ratio, optimum
from analysis.estimates.plateau import shared_fraction
from analysis.estimates.stats import CONFIDENCE, Estimate
from analysis.simulate.draws import Design, simulate_curve, simulate_pair
from analysis.simulate.regimes import Regime
from analysis.simulate.truths import Truth

LEVEL = (1 - CONFIDENCE) / 2
FRACTION = 0.2


@dataclass(frozen=True)
class Rate:
    """A share of simulated sweeps, with its Monte-Carlo error."""

    share: float
    n: int
    """Sweeps it is a share of; 0: none qualified, and the share is NaN."""

    @property
    def error(self) -> float:
        """Standard error of the share."""
        return math.sqrt(self.share * (1 - self.share) / self.n) if self.n else math.nan


def rate(hits: Sequence[bool]) -> Rate:
    """The share of hits."""
    return Rate(float(np.mean(hits)) if len(hits) else math.nan, len(hits))


@dataclass(frozen=True)
class RatioRates:
    """What one design does to LR*, its ratio, C3 and C6."""

    stated: Rate
    """Sweeps that give the ratio an interval: no edge, not flat, enough points and seeds."""
    covers: Rate
    """Of those, whose interval holds the true ratio."""
    width: float
    """Median full width of the interval in decades."""
    bias: float
    """Mean error of the ratio in decades."""
    bias_error: float
    lr_covers: Rate
    """Intervals of LR* of either arm that hold the truth."""
    lr_width: float
    """Median full width in decades."""
    flanks_cover: tuple[Rate, Rate, Rate]
    """Intervals of the ramp ratio, the cliff ratio and the width difference."""
    supported: dict[float, Rate]
    """C3 over all sweeps, by true ratio."""
    refuted: dict[float, Rate]
    """What is neither supported nor refuted is undecided."""
    wider: Rate
    """C6 over all sweeps: LoRA's plateau is called wider."""

    def correct(self, ratio: float) -> Rate:
        """C3 verdicts that are the true one: supported inside [5, 20], refuted outside."""
        return (self.supported if LOW <= ratio <= HIGH else self.refuted)[ratio]


def ratio_rates(
    regime: Regime,
    replications: int,
    rng: Generator,
    *,
    ratios: Sequence[float] = (10.0,),
    progress: bool = False,
) -> RatioRates:
    """Simulate one design.

    Shifting LoRA's truth shifts its estimates and nothing else, so one set of sweeps serves every
    true ratio.

    Args:
        regime: Arms and design.
        replications: Simulated sweeps.
        rng: Source of every draw.
        ratios: True LR*(LoRA) / LR*(FullFT) at which C3 is decided.
        progress: Show a bar.

    Raises:
        ValueError: for fewer than one replication or a ratio that is not positive.
    """
    if replications < 1:
        raise ValueError(f"at least one replication is needed, got {replications}")
    wrong = [ratio for ratio in ratios if not (ratio > 0 and math.isfinite(ratio))]
    if wrong:
        raise ValueError(f"a ratio must be positive and finite, got {wrong[0]}")
    sweeps = []
    for _ in tqdm(
        range(replications), unit="sweep", disable=None if progress else True, leave=False
    ):
        curves = simulate_pair(regime.lora, regime.full, regime.design, rng, regime.full_design)
        sweeps.append(_measure(*curves))
    return _summary(sweeps, regime, ratios)


@dataclass(frozen=True)
class _Measured:
    ratio: LrRatio
    lora: Optimum
    full: Optimum


def _measure(lora: LrCurve, full: LrCurve) -> _Measured:
    fraction = shared_fraction((lora, full))
    optima = optimum(lora, fraction), optimum(full, fraction)
    return _Measured(lr_ratio(lora, full, fraction), *optima)


def _summary(sweeps: list[_Measured], regime: Regime, ratios: Sequence[float]) -> RatioRates:
    target = regime.true_log_ratio(FRACTION)
    centres = [_decades(s.ratio.centre) for s in sweeps]
    stated = [e for e in centres if e.interval]
    errors = [e.point - target for e in stated]
    own = [(_decades(s.lora.lr), regime.lora.best(FRACTION)) for s in sweeps]
    own += [(_decades(s.full.lr), regime.full.best(FRACTION)) for s in sweeps]
    lr_stated = [e for e, _ in own if e.interval]
    verdicts = {ratio: [decide(e, math.log10(ratio) - target) for e in centres] for ratio in ratios}
    widths = [s.ratio.width_difference.interval for s in sweeps]
    return RatioRates(
        stated=rate([bool(e.interval) for e in centres]),
        covers=_coverage((e, target) for e in centres),
        width=_median_width(stated),
        bias=float(np.mean(errors)) if errors else math.nan,
        bias_error=float(np.std(errors) / math.sqrt(len(errors))) if errors else math.nan,
        lr_covers=_coverage(own),
        lr_width=_median_width(lr_stated),
        flanks_cover=_flanks(sweeps, regime),
        supported={r: rate([v == "supported" for v in found]) for r, found in verdicts.items()},
        refuted={r: rate([v == "refuted" for v in found]) for r, found in verdicts.items()},
        wider=rate([i is not None and i[0] > 0 for i in widths]),
    )


def _flanks(sweeps: list[_Measured], regime: Regime) -> tuple[Rate, Rate, Rate]:
    if regime.lora.base is None or regime.full.base is None:
        return rate([]), rate([]), rate([])
    (ramp, cliff), (full_ramp, full_cliff) = (
        truth.plateau(FRACTION) for truth in (regime.lora, regime.full)
    )
    return (
        _coverage((_decades(s.ratio.ramp), ramp - full_ramp) for s in sweeps),
        _coverage((_decades(s.ratio.cliff), cliff - full_cliff) for s in sweeps),
        _coverage(
            (s.ratio.width_difference, cliff - ramp - full_cliff + full_ramp) for s in sweeps
        ),
    )


def decide(log_ratio: Estimate, shift: float = 0.0) -> str:
    """C3's criterion on one ratio in decades: ``supported``, ``refuted`` or ``undecided``.

    Args:
        log_ratio: With its interval.
        shift: Decades to add to it.
    """
    if log_ratio.interval is None:
        return "undecided"
    low, high = (10 ** (end + shift) for end in log_ratio.interval)
    if low >= LOW and high <= HIGH:
        return "supported"
    return "refuted" if low > HIGH or high < LOW else "undecided"


def _decades(estimate: Estimate) -> Estimate:
    """An estimate in linear units on the log10 axis."""
    low, high = (
        (math.log10(end) for end in estimate.interval) if estimate.interval else (None, None)
    )
    return replace(estimate, point=math.log10(estimate.point), low=low, high=high)


def _coverage(found: Iterable[tuple[Estimate, float]]) -> Rate:
    """Share of the stated intervals that hold their truth."""
    return rate([e.interval[0] <= truth <= e.interval[1] for e, truth in found if e.interval])


def _median_width(stated: list[Estimate]) -> float:
    widths = [e.interval[1] - e.interval[0] for e in stated if e.interval]
    return float(np.median(widths)) if widths else math.nan


@dataclass(frozen=True)
class RankFreeRates:
    """C5 over several arms: all pairs within a factor, refuted after Holm."""

    supported: Rate
    refuted: Rate


def rank_free_rates(
    truths: Sequence[Truth],
    design: Design,
    replications: int,
    rng: Generator,
    *,
    margin: float = math.log10(2),
) -> RankFreeRates:
    """How often arms are said to share their LR*, and how often not.

    Args:
        truths: One per rank.
        design: Of every arm; they share their seeds.
        replications: Simulated experiments.
        rng: Source of every draw.
        margin: In decades.
    """
    verdicts = [_rank_free(truths, design, rng, margin) for _ in range(replications)]
    supported, refuted = zip(*verdicts, strict=True)
    return RankFreeRates(rate(supported), rate(refuted))


def _rank_free(
    truths: Sequence[Truth], design: Design, rng: Generator, margin: float
) -> tuple[bool, bool]:
    effects = rng.standard_normal(design.seeds)
    curves = [
        simulate_curve(f"r{i}", truth, design, rng, effects) for i, truth in enumerate(truths)
    ]
    fraction = shared_fraction(curves)
    pairs = [(a, b) for i, b in enumerate(curves) for a in curves[i + 1 :]]
    stated = [pair for pair in pairs if lr_ratio(*pair, fraction).centre.interval]
    contrasts = [log_ratio(*pair, fraction) for pair in stated]
    inside = all(equivalence_p(c, margin) < LEVEL for c in contrasts)
    outside = holm([beyond_margin_p(c, margin) for c in contrasts])
    return inside and len(stated) == len(pairs), any(p < LEVEL for p in outside)
