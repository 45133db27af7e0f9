"""C4: the ratio of best learning rates is larger in short runs."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from analysis.claims.claim import Claim
from analysis.claims.comparison import Comparison, comparisons, exploratory, lacks_baseline
from analysis.claims.groups import model_and_task, value
from analysis.claims.pairwise import ratio_text
from analysis.claims.ratios import NO_PLATEAU, curve_obstacle, seeds_advice
from analysis.claims.verdict import (
    REFUTED,
    SUPPORTED,
    UNDECIDED,
    Decision,
    Obstacle,
    Verdict,
    decided,
    seeds_text,
    undecided,
)
from analysis.estimates.curve import LrCurve
from analysis.estimates.length import MIN_STEPS, curves_by_step, ratio_slope
from analysis.estimates.optimum import lr_ratio
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import MIN_SEEDS, Contrast
from analysis.reading.arms import signed_text
from analysis.reading.sweep import Sweep

MAX_LENGTHS = 8
"""Lengths that are looked at, evenly spaced on a log scale: neighbours say the same twice."""
CONSTANT = ("constant", "constant_with_warmup")

Lengths = Mapping[int, Mapping[str, LrCurve]]
"""Curves by training length and arm."""


def _lacks(sweep: Sweep) -> str:
    lack = lacks_baseline(sweep)
    if not lack and sweep.metrics.empty and not sweep.selects_only:
        return "evaluations on the way, at three training lengths or more"
    return lack


def check(sweep: Sweep, search: SearchSummary) -> list[Verdict]:
    """One verdict per LoRA arm: does the ratio fall as training goes on?

    Args:
        sweep: An experiment with both methods, evaluated on the way.
        search: Of the same sweep; search seeds decide.
    """
    early = exploratory(sweep)
    if early is not None:
        statement = "The ratio of LoRA's best learning rate to FullFT's falls as training goes on."
        return [undecided("C4", statement, (), early)]
    lengths = _spread(curves_by_step(sweep))
    return [_check_arm(sweep, pair, search, lengths) for pair in comparisons(sweep)]


def _spread(lengths: Lengths) -> Lengths:
    """At most ``MAX_LENGTHS`` of the lengths, those nearest to even spacing on a log scale."""
    steps = sorted(lengths)
    if len(steps) <= MAX_LENGTHS:
        return lengths
    wanted = np.geomspace(steps[0], steps[-1], MAX_LENGTHS)
    kept = {min(steps, key=lambda step: abs(step - target)) for target in wanted}
    return {step: lengths[step] for step in sorted(kept)}


def _check_arm(sweep: Sweep, pair: Comparison, search: SearchSummary, lengths: Lengths) -> Verdict:
    statement = (
        f"The ratio of the best learning rate of {pair.arm.description} to that of "
        f"{pair.baseline_text} falls as training goes on: {model_and_task(sweep, pair.arm)}."
    )
    obstacle = curve_obstacle(pair, search) or _schedule(sweep, pair)
    if obstacle is not None:
        return undecided("C4", statement, pair.names, obstacle)
    if any(search.curves[name].base is None for name in pair.names):
        return undecided("C4", statement, pair.names, NO_PLATEAU)
    arm, baseline = (
        {step: curves[name] for step, curves in lengths.items() if name in curves}
        for name in pair.names
    )
    fraction = search.fraction_of(*pair.names)
    slope = ratio_slope(arm, baseline, fraction)
    if slope is None:
        return undecided("C4", statement, pair.names, NO_SLOPE)
    decision = _decide(slope, _ends_text(arm, baseline, fraction))
    estimate = slope.estimate()
    flags = ("few_seeds",) if estimate.interval is None else ()
    return decided("C4", statement, pair.names, decision, estimate, flags)


NO_SLOPE = Obstacle(
    "few_lengths",
    f"A slope needs {MIN_STEPS} training lengths at which both arms have a plateau inside their "
    "grids: evaluate more often, or widen the grids.",
    "evaluations at more steps, or wider grids",
)


def _schedule(sweep: Sweep, pair: Comparison) -> Obstacle | None:
    """Under a schedule with a horizon a run on its way is not one that ends there."""
    for arm in (pair.arm, pair.baseline):
        schedule = None if arm is None else value(sweep, arm, "objective.lr_scheduler_type")
        if schedule is not None and schedule not in CONSTANT:
            name = arm.name if arm is not None else ""
            return Obstacle(
                "schedule",
                f"{name} follows a {schedule} schedule, under which a run on its way is not one "
                "that ended there: train at a constant learning rate, or to each length apart.",
                "runs at a constant learning rate",
            )
    return None


def _ends_text(arm: Mapping[int, LrCurve], baseline: Mapping[int, LrCurve], fraction: float) -> str:
    """The ratio at the longest training that has one, for orientation."""
    steps = sorted(set(arm) & set(baseline), reverse=True)
    ratios = ((step, lr_ratio(arm[step], baseline[step], fraction).centre) for step in steps)
    last, ratio = next((step, found) for step, found in ratios if math.isfinite(found.point))
    return f"ratio at step {last}: {ratio_text(ratio)}"


def _decide(slope: Contrast, ends: str) -> Decision:
    interval = slope.estimate().interval
    if interval is None:
        text = seeds_text(MIN_SEEDS - slope.n, "search")
        reason = f"Fewer than 3 search seeds, so no interval: {text} would give one ({ends})."
        return Decision(UNDECIDED, reason, text)
    low, high = (signed_text(bound, 2) for bound in interval)
    number = (
        "The log ratio on log training length has the slope "
        f"{signed_text(slope.point, 2)} [{low}, {high}] ({ends})"
    )
    if interval[1] < 0:
        return Decision(SUPPORTED, f"{number}, below 0.")
    if interval[0] > 0:
        return Decision(REFUTED, f"{number}, wholly above 0.")
    advice, missing = seeds_advice(slope, abs(slope.point))
    return Decision(UNDECIDED, f"{number}, which holds 0: {advice}.", missing)


CLAIM = Claim(
    claim_id="C4",
    title="short runs",
    statement="The ratio of best learning rates is larger in short runs.",
    criterion=(
        "Slope of the log ratio on the log training length, over the lengths at which runs were "
        "evaluated: supported if the 90 % interval lies below 0, refuted if wholly above, else "
        "undecided."
    ),
    unit="slope",
    question="Is the ratio of learning rates larger in short runs?",
    lacks=_lacks,
    check=check,
)
