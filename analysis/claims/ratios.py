"""Ratios of best learning rates: what forbids one, and what is said where there is none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from analysis.claims.comparison import Comparison
from analysis.claims.verdict import Obstacle, missing_seeds, more_seeds, seeds_text
from analysis.estimates.curve import LrCurve
from analysis.estimates.optimum import assumed_ratio, optimum
from analysis.estimates.plateau import FRACTION
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import MIN_SEEDS, Contrast
from analysis.reading.arms import rate_text
from analysis.reading.sweep import Sweep

ASSUMED_TAUS = (0.07, 0.11)
"""SD over seeds of one arm's LR*, in decades: with a sharp and with a soft cliff,
simulated."""


NO_PLATEAU = Obstacle(
    "no_base",
    "The untrained model was never evaluated, so no plateau has ends: evaluate it.",
    "an evaluation of the untrained model",
)


def curve_obstacle(comparison: Comparison, search: SearchSummary) -> Obstacle | None:
    """Why two arms' searches cannot be set side by side, if so."""
    if comparison.obstacle is not None:
        return comparison.obstacle
    missing = [name for name in comparison.names if name not in search.curves]
    if not missing:
        return None
    names = " and ".join(missing)
    return Obstacle(
        "incomplete",
        f"The search phase of {names} lacks scores at some learning rate and seed: complete it.",
        f"the missing scores of {names}",
    )


def unstated(curves: Sequence[LrCurve], fraction: float) -> Obstacle | None:
    """What keeps arms from an estimate with an interval, all of it; None if nothing does."""
    found = list(filter(None, (why_unstated(curve, fraction) for curve in on_one_base(curves))))
    if not found:
        return None
    reasons, lacks = ([getattr(one, part) for one in found] for part in ("reason", "missing"))
    few = all(one.flag == "few_seeds" for one in found)
    if few and len(found) > 1:
        return _few_seeds(curves)
    return Obstacle(found[0].flag, " ".join(reasons), "; ".join(dict.fromkeys(lacks)))


def on_one_base(curves: Sequence[LrCurve]) -> list[LrCurve]:
    """The curves as a ratio reads them: where one has no base, all go by their parabolas."""
    if all(curve.base is not None for curve in curves):
        return list(curves)
    return [replace(curve, base=None) for curve in curves]


def why_unstated(curve: LrCurve, fraction: float) -> Obstacle | None:
    """What keeps one arm from an estimate with an interval, and what would change that."""
    arm, flags = curve.arm, optimum(curve, fraction).flags
    if "flat" in flags and "flat" not in optimum(curve, FRACTION).flags:
        return _dragged(arm, fraction)
    if "flat" in flags:
        over = "the grid" if curve.base is None else "the untrained model"
        return Obstacle(
            "flat",
            f"The scores of {arm} rise too little over {over} for their noise: train longer or "
            "evaluate on more prompts.",
            f"longer training of {arm}, or more evaluation prompts",
        )
    for side in ("high", "low"):
        if f"edge_{side}" in flags:
            return _edge(curve, side)
    if "few_points" in flags:
        return Obstacle(
            "few_points",
            f"The grid of {arm} is too coarse beside or on its plateau: add learning rates there.",
            f"learning rates beside the plateau of {arm}",
        )
    return _few_seeds([curve]) if "few_seeds" in flags else None


def _dragged(arm: str, fraction: float) -> Obstacle:
    """The arm is not flat by itself: a shallow one sets the threshold that all arms share."""
    return Obstacle(
        "flat",
        f"The shallowest curve of this model sets the plateau's threshold for all its arms, "
        f"{fraction:.2g} of the rise below the top, which is inside the noise of {arm}: extend the "
        "grid of the shallowest arm upwards, or judge the two apart.",
        f"a wider grid of the shallowest arm, or an experiment without it for {arm}",
    )


def _edge(curve: LrCurve, side: str) -> Obstacle:
    best, rates = int(curve.means.argmax()), curve.learning_rates
    if side == "high":
        why = "best learning rate is" if best == len(rates) - 1 else "plateau has not ended at"
        way, place = "upwards", f"highest one, {rate_text(rates[-1])}"
    else:
        why = "best learning rate is" if best == 0 else "plateau already began at"
        way, place = "downwards", f"lowest one, {rate_text(rates[0])}"
    return Obstacle(
        f"edge_{side}",
        f"Extend the grid of {curve.arm} {way}: its {why} the {place}.",
        f"extend the grid of {curve.arm} {way}",
    )


def _few_seeds(curves: Sequence[LrCurve]) -> Obstacle:
    names = " and ".join(curve.arm for curve in curves)
    fewest = min(curve.n_seeds for curve in curves)
    text = seeds_text(MIN_SEEDS - fewest, "search")
    have = "have" if len(curves) > 1 else "has"
    if fewest == 1:
        held = f"{names} {have} one search seed, and one seed cannot carry an interval"
    else:
        held = f"{names} {have} fewer than 3 search seeds, so no interval"
    return Obstacle("few_seeds", f"{held}: {text} would give one.", text)


def assumed_note(arm: LrCurve, baseline: LrCurve, fraction: float) -> str:
    """What an assumed spread would give where seeds are too few to measure one, if anything."""
    low, high = (assumed_ratio(arm, baseline, fraction, tau) for tau in ASSUMED_TAUS)
    if low.interval is None or high.interval is None:
        return ""
    seeds = "1 seed" if low.n == 1 else f"{low.n} seeds"
    return (
        f" The ratio of {seeds} is {low.point:.1f}; if LR* of an arm scattered over seeds by "
        f"{ASSUMED_TAUS[0]:g} to {ASSUMED_TAUS[1]:g} decades, assumed, not measured, its interval "
        f"would be {_between(low.interval)} to {_between(high.interval)}."
    )


def _between(interval: tuple[float, float]) -> str:
    return f"[{interval[0]:.1f}, {interval[1]:.1f}]"


def seeds_advice(contrast: Contrast, distance: float) -> tuple[str, str]:
    """What would decide a contrast in decades: a clause, and the entry for what is missing.

    Seeds, or a grid so fine that its term vanishes, or nothing feasible.

    Args:
        contrast: An undecided one.
        distance: Half width of the interval, in decades, that would decide it.
    """
    needed = contrast.seeds_for(distance)
    if needed is None and replace(contrast, grid_term=0.0).seeds_for(distance) is not None:
        return (
            "a finer grid at the ends of the plateaus is needed before more seeds can help",
            "a finer grid at the ends of the plateaus",
        )
    return more_seeds(needed, contrast.n, "search"), missing_seeds(needed, contrast.n, "search")


def precision_note(sweep: Sweep, comparison: Comparison) -> str:
    """A warning where an imported sweep does not say in which precision it ran; else empty."""
    mine = sweep.runs["arm"].isin(comparison.names)
    if any(isinstance(dtypes, dict) and dtypes for dtypes in sweep.runs["dtypes"][mine]):
        return ""
    return (
        " In which precision the arms ran is not recorded; full fine-tuning in pure half precision "
        "beside adapters in float32 would make this a comparison of precisions too."
    )


def alpha_note(sweep: Sweep, arm: str, search: SearchSummary) -> str:
    """A warning where LoRA arms scale their update differently; empty where they agree."""
    methods = {name: one["config"]["method"] for name, one in sweep.plan["arms"].items()}
    rules = {
        (m.get("alpha_rule"), None if m.get("alpha_rule") == "2r" else m.get("lora_alpha"))
        for m in methods.values()
        if m["name"] != "full"
    }
    if len(rules) < 2:
        return ""
    alphas = sweep.runs["lora_alpha"][sweep.runs["arm"] == arm].dropna()
    found, product = search.optima.get(arm), ""
    if len(alphas) and found is not None and math.isfinite(found.lr.point):
        product = f" (here {float(alphas.iloc[0]) * found.lr.point:.2g})"
    return (
        " Alpha rules differ between the LoRA arms: compare them by alpha x learning rate"
        f"{product}, never by learning rate."
    )
