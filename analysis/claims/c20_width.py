"""C20: the ratio of best learning rates grows with the width of the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.claims.claim import Claim
from analysis.claims.comparison import Comparison, exploratory, pairs
from analysis.claims.facts import hidden_size
from analysis.claims.groups import fingerprint, settings, task_of, value
from analysis.claims.pairwise import linear, ratio_text
from analysis.claims.ratios import curve_obstacle, unstated
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
from analysis.estimates.fits import weighted_slope
from analysis.estimates.optimum import log_ratio, lr_ratio
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import MAX_SEEDS, Contrast, Estimate
from analysis.reading.arms import signed_text
from analysis.reading.sweep import Sweep

MIN_WIDTHS = 4
MAX_ERROR = 0.06
"""Largest standard error of one log10 ratio, in decades."""
THEORY_SLOPE = 0.5
"""The ratio goes with the square root of the hidden size (Chen, Villar and Hayou 2602.06204)."""
FLAT_SLOPE = THEORY_SLOPE / 2
"""A slope wholly below this refutes the growth."""

Group = Sequence[tuple[int, Comparison]]


@dataclass(frozen=True)
class _Point:
    """The ratio at one width."""

    width: int
    pair: Comparison
    contrast: Contrast
    flags: tuple[str, ...]

    @property
    def error(self) -> float:
        """Standard error in decades, the grid's share included."""
        return math.hypot(self.contrast.standard_error, self.contrast.grid_term)


def _groups(sweep: Sweep) -> list[Group]:
    """LoRA arms, with their baselines, that differ in the model alone: at least two widths.

    Models in different precision are no such group: precision moves the ratio too (C22).
    """
    flat = settings(sweep)
    groups: dict[str, list[tuple[int, Comparison]]] = {}
    for pair in pairs(sweep):
        width = None if pair.baseline is None else hidden_size(sweep, pair.arm)
        if width is not None:
            key = fingerprint(flat[pair.arm.name], ("model",))
            key += str(value(sweep, pair.arm, "model.dtype"))
            groups.setdefault(key, []).append((width, pair))
    ordered = (sorted(group, key=lambda one: one[0]) for group in groups.values())
    return [group for group in ordered if len({width for width, _ in group}) > 1]


def _lacks(sweep: Sweep) -> str:
    return "" if _groups(sweep) else "LoRA and FullFT arms on models of different hidden size"


def check(sweep: Sweep, search: SearchSummary) -> list[Verdict]:
    """One verdict per group of LoRA arms that differ in the model alone.

    Args:
        sweep: An experiment on models of two widths or more, both methods on each.
        search: Of the same sweep; search seeds decide.
    """
    return [_check_group(sweep, group, search) for group in _groups(sweep)]


def _check_group(sweep: Sweep, group: Group, search: SearchSummary) -> Verdict:
    names = tuple(dict.fromkeys(name for _, pair in group for name in pair.names))
    widths = ", ".join(str(width) for width in sorted({width for width, _ in group}))
    statement = (
        f"The ratio of best learning rates of LoRA at rank {group[0][1].arm.rank} and FullFT grows "
        f"with the hidden size ({widths}): {task_of(sweep, group[0][1].arm)}."
    )
    early = exploratory(sweep)
    if early is not None:
        return undecided("C20", statement, names, early)
    points, obstacles = _points(group, search)
    slope = None
    if len({point.width for point in points}) >= MIN_WIDTHS:
        slope = _slope(points)
    decision = _decide(points, obstacles, slope)
    notes = (flag for point in points for flag in point.flags)
    flags = (*(one.flag for one in obstacles), *_error_flags(points), *notes)
    seeds = min((point.contrast.n for point in points), default=0)
    return decided("C20", statement, names, decision, slope, flags, seeds)


def _points(group: Group, search: SearchSummary) -> tuple[list[_Point], list[Obstacle]]:
    points, obstacles = [], []
    for width, pair in group:
        obstacle = curve_obstacle(pair, search)
        if obstacle is None:
            own, other = (search.curves[name] for name in pair.names)
            fraction = search.fraction_of(*pair.names)
            obstacle = unstated((own, other), fraction)
        if obstacle is not None:
            obstacles.append(obstacle)
            continue
        flags = lr_ratio(own, other, fraction).flags
        points.append(_Point(width, pair, log_ratio(own, other, fraction), flags))
    return points, obstacles


def _slope(points: Sequence[_Point]) -> Estimate:
    return weighted_slope(
        [math.log10(point.width) for point in points],
        [point.contrast.point for point in points],
        [point.error for point in points],
    ).estimate()


def _error_flags(points: Sequence[_Point]) -> tuple[str, ...]:
    return ("wide_error",) if any(point.error > MAX_ERROR for point in points) else ()


def _decide(
    points: Sequence[_Point], obstacles: Sequence[Obstacle], slope: Estimate | None
) -> Decision:
    ratios = ", ".join(f"{p.width}: {ratio_text(linear(p.contrast))}" for p in points) or "none"
    blocked = "".join(f" {reason}" for reason in dict.fromkeys(one.reason for one in obstacles))
    if slope is None or slope.interval is None:
        return _too_few_widths(points, obstacles, ratios, blocked)
    low, high = slope.interval
    number = (
        f"The log ratio on log hidden size has the slope {signed_text(slope.point, 2)} "
        f"[{signed_text(low, 2)}, {signed_text(high, 2)}] (ratios by hidden size {ratios})"
    )
    wide = [point for point in points if point.error > MAX_ERROR]
    if wide:
        return _too_wide(number, wide)
    if low > 0:
        slower = "" if high >= FLAT_SLOPE else f", yet slower than half the theory's {THEORY_SLOPE}"
        return Decision(SUPPORTED, f"{number}, above 0{slower}.{blocked}")
    half = f"{FLAT_SLOPE}, half the theory's {THEORY_SLOPE}"
    if high < FLAT_SLOPE:
        return Decision(REFUTED, f"{number}, wholly below {half}.{blocked}")
    missing = "hidden sizes that lie further apart, or more search seeds"
    return Decision(UNDECIDED, f"{number}, which holds 0 and {half}.{blocked}", missing)


def _too_few_widths(
    points: Sequence[_Point], obstacles: Sequence[Obstacle], ratios: str, blocked: str
) -> Decision:
    """Fewer than four ratios: what blocks the others, else how many sizes are missing."""
    count = len({point.width for point in points})
    more = MIN_WIDTHS - count
    lacks = [one.missing for one in obstacles if one.missing]
    if not lacks:
        lacks = [f"models of {more} more hidden size{'' if more == 1 else 's'}"]
    text = f"A slope needs ratios at {MIN_WIDTHS} hidden sizes, known are {count} ({ratios})."
    return Decision(UNDECIDED, f"{text}{blocked}", "; ".join(dict.fromkeys(lacks)))


def _too_wide(number: str, wide: Sequence[_Point]) -> Decision:
    """Widths whose ratio is too uncertain for a slope, each with what would mend it."""
    errors = ", ".join(f"{p.width} ({p.error:.2f})" for p in wide)
    missing = "; ".join(_remedy(point) for point in wide)
    reason = (
        f"{number}, but the standard error of the log10 ratio is above {MAX_ERROR} at {errors}."
    )
    return Decision(UNDECIDED, reason, missing)


def _remedy(point: _Point) -> str:
    names = " and ".join(point.pair.names)
    error, grid, n = point.contrast.standard_error, point.contrast.grid_term, point.contrast.n
    counts = range(n + 1, MAX_SEEDS + 1)
    needed = next((m for m in counts if math.hypot(error * math.sqrt(n / m), grid) <= MAX_ERROR), 0)
    if not needed:
        return f"a finer grid for {names}"
    return f"{seeds_text(needed - n, 'search')} for {names}"


CLAIM = Claim(
    claim_id="C20",
    title="width",
    statement="The ratio of LoRA's and FullFT's best learning rates grows with the model's width.",
    criterion=(
        "Slope of log ratio on log hidden size by weighted least squares, from 4 widths whose "
        "log10 ratio has a standard error of at most 0.06: supported if the 90 % interval lies "
        "above 0; else refuted if it lies wholly below 0.25, half of what theory expects (0.5); "
        "else undecided."
    ),
    unit="slope",
    question="Does the ratio of learning rates grow with the model?",
    lacks=_lacks,
    check=check,
)
