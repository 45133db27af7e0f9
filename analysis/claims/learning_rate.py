"""C3: the best learning rate of LoRA is about ten times that of full fine-tuning."""

from __future__ import annotations

import math
from dataclasses import replace

from analysis.claims.comparison import (
    Comparison,
    comparisons,
    setting,
    whole_sweep_obstacle,
)
from analysis.claims.verdict import (
    REFUTED,
    SUPPORTED,
    UNDECIDED,
    Obstacle,
    Verdict,
    more_seeds,
    undecided,
)
from analysis.estimates.curve import LrCurve
from analysis.estimates.optimum import LrRatio, Optimum, log_ratio, lr_ratio, optimum
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import CONFIDENCE, MIN_SEEDS, Contrast
from analysis.reading.arms import rate_text
from analysis.reading.sweep import Sweep

CLAIM = "C3"
LOW, HIGH = 5.0, 20.0
"""Ratios that count as "about ten"."""


def check(sweep: Sweep, search: SearchSummary) -> list[Verdict]:
    """One verdict per LoRA arm: does the 90 % interval of the ratio lie inside [5, 20]?

    Search seeds only. An arm whose plateau is not bracketed by its grid gives no ratio.

    Args:
        sweep: An experiment with both methods; otherwise one undecided verdict says what lacks.
        search: Of the same sweep.
    """
    obstacle = whole_sweep_obstacle(sweep, methods_only=True)
    if obstacle is not None:
        return [undecided(CLAIM, _statement("LoRA", "FullFT", sweep), (), obstacle)]
    return [_check_arm(sweep, comparison, search) for comparison in comparisons(sweep)]


def _statement(lora: str, full: str, sweep: Sweep) -> str:
    return (
        f"The best learning rate of {lora} is about 10 times (5 to 20 times) that of {full}: "
        f"{setting(sweep)}."
    )


def _check_arm(sweep: Sweep, comparison: Comparison, search: SearchSummary) -> Verdict:
    statement = _statement(comparison.lora.description, comparison.baseline, sweep)
    obstacle = comparison.obstacle or _hole(comparison, search)
    if obstacle is not None:
        return undecided(CLAIM, statement, comparison.names, obstacle)
    lora, full = (search.curves[name] for name in comparison.names)
    ratio = lr_ratio(lora, full, search.fraction)
    verdict, reason = judge(lora, full, ratio, search.fraction)
    flags = ratio.flags
    note = _alpha_note(sweep, comparison, search.optima[lora.arm])
    if note:
        flags = (*flags, "alpha_rules_differ")
    return Verdict(
        claim_id=CLAIM,
        statement=statement,
        arms=comparison.names,
        estimate=None if math.isnan(ratio.centre.point) else ratio.centre.point,
        interval=ratio.centre.interval,
        confidence=CONFIDENCE,
        verdict=verdict,
        reason=reason + note,
        n_seeds=ratio.centre.n,
        flags=flags,
    )


def _hole(comparison: Comparison, search: SearchSummary) -> Obstacle | None:
    missing = [name for name in comparison.names if name not in search.curves]
    if not missing:
        return None
    return Obstacle(
        "incomplete",
        f"The search phase of {' and '.join(missing)} lacks scores at some learning rate and seed: "
        "complete it.",
    )


def judge(lora: LrCurve, full: LrCurve, ratio: LrRatio, fraction: float) -> tuple[str, str]:
    """The verdict on a ratio, and its reason.

    Args:
        lora: Search phase of the LoRA arm.
        full: Search phase of its baseline.
        ratio: Their ratio.
        fraction: The plateau fraction the ratio was computed with.
    """
    interval = ratio.centre.interval
    if interval is None:
        optima = ((curve, optimum(curve, fraction)) for curve in (lora, full))
        return UNDECIDED, " ".join(filter(None, (_why_unstated(*pair) for pair in optima)))
    low, high = interval
    number = f"The ratio {ratio.centre.point:.1f} [{low:.1f}, {high:.1f}]"
    shape = _shape_note(ratio)
    if low >= LOW and high <= HIGH:
        return SUPPORTED, f"{number} lies inside [5, 20]{shape}."
    if low > HIGH or high < LOW:
        return REFUTED, f"{number} lies wholly outside [5, 20]{shape}."
    advice = _advice(log_ratio(lora, full, fraction))
    return UNDECIDED, f"{number} crosses a bound of [5, 20]: {advice}{shape}."


def _advice(contrast: Contrast) -> str:
    """What would decide: seeds, or a grid so fine that its term vanishes, or nothing feasible."""
    distance = min(abs(contrast.point - math.log10(bound)) for bound in (LOW, HIGH))
    seeds = contrast.seeds_for(distance)
    resolved = replace(contrast, grid_term=0.0)
    if seeds is None and resolved.seeds_for(distance) is not None:
        return "a finer grid at the ends of the plateaus is needed before more seeds can help"
    return more_seeds(seeds, contrast.n, "search")


def _shape_note(ratio: LrRatio) -> str:
    if "shape_differs" not in ratio.flags:
        return ""
    return (
        f"; ramps give {ratio.ramp.point:.1f} and cliffs {ratio.cliff.point:.1f}, so the curves "
        "are not shifted copies and the centre decides by convention"
    )


def _why_unstated(curve: LrCurve, found: Optimum) -> str:
    """What keeps an arm from a ratio, with what would change that; empty if nothing does."""
    arm, rates, flags = curve.arm, curve.learning_rates, found.flags
    best = int(curve.means.argmax())
    if "flat" in flags:
        return (
            f"The scores of {arm} rise too little over the untrained model for their noise: train "
            "longer or evaluate on more prompts."
        )
    if "edge_high" in flags:
        last = best == len(rates) - 1
        why = "best learning rate is" if last else "plateau has not ended at"
        return (
            f"Extend the grid of {arm} upwards: its {why} the highest one, {rate_text(rates[-1])}."
        )
    if "edge_low" in flags:
        why = "best learning rate is" if best == 0 else "plateau already began at"
        return (
            f"Extend the grid of {arm} downwards: its {why} the lowest one, {rate_text(rates[0])}."
        )
    if "few_points" in flags:
        return (
            f"The grid of {arm} is too coarse beside or on its plateau: add learning rates there."
        )
    if "few_seeds" in flags:
        more = MIN_SEEDS - curve.n_seeds
        plural = "seed" if more == 1 else "seeds"
        return (
            f"{arm} has fewer than 3 search seeds, so no interval: {more} more search {plural} "
            "would give one."
        )
    return ""


def _alpha_note(sweep: Sweep, comparison: Comparison, found: Optimum) -> str:
    """A warning where LoRA arms scale their update differently; empty where they agree."""
    methods = {name: arm["config"]["method"] for name, arm in sweep.plan["arms"].items()}
    rules = {
        (m.get("alpha_rule"), None if m.get("alpha_rule") == "2r" else m.get("lora_alpha"))
        for m in methods.values()
        if m["name"] != "full"
    }
    alphas = sweep.runs["lora_alpha"][sweep.runs["arm"] == comparison.lora.name].dropna()
    if len(rules) < 2:
        return ""
    product = ""
    if len(alphas) and math.isfinite(found.lr.point):
        product = f" (here {float(alphas.iloc[0]) * found.lr.point:.2g})"
    return (
        " Alpha rules differ between the LoRA arms: compare them by alpha x learning rate"
        f"{product}, never by learning rate."
    )
