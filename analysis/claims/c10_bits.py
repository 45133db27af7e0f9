"""C10: what rewards can tell fits into an adapter, of rank 1 already."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.claims.claim import Claim
from analysis.claims.comparison import Comparer, pairs
from analysis.claims.costs import by_seed, chosen_runs, numbers, phase, records
from analysis.claims.facts import parameters
from analysis.claims.groups import fingerprint, model_and_task, settings
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
from analysis.estimates.capacity import BITS_PER_PARAMETER, capacity_load, gap_slope
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import CONFIDENCE, MIN_SEEDS, Contrast, mean_contrast
from analysis.reading.arms import Arm, arms, signed_text
from analysis.reading.sweep import Sweep

BITS, VALUES, EPISODES = "probes.reward_bits", "probes.reward_values", "episodes"


@dataclass(frozen=True)
class _Load:
    """Bits over capacity of one arm."""

    arm: Arm
    contrast: Contrast
    bits_per_episode: float
    most_bits: float
    """log2 of the number of reward values."""


@dataclass(frozen=True)
class _Gap:
    """How far an arm's score is below FullFT's, in mean."""

    load: _Load
    gap: float
    error: float
    """Standard error of the arm's own mean."""


def _groups(sweep: Sweep) -> list[list[Arm]]:
    """LoRA arms that differ in rank alone, by rank; one arm is a group too."""
    flat = settings(sweep)
    groups: dict[str, list[Arm]] = {}
    for arm in arms(sweep):
        if arm.rank is not None and parameters(sweep, arm) is not None:
            groups.setdefault(fingerprint(flat[arm.name], ("method.rank",)), []).append(arm)
    return list(groups.values())


def _lacks(sweep: Sweep) -> str:
    if not _groups(sweep):
        return "a LoRA arm whose rank and number of trainable parameters are known"
    if not records(sweep, (VALUES,)):
        return "records of the bits that the rewards of each run could tell"
    return ""


def check(sweep: Sweep, search: SearchSummary) -> list[Verdict]:
    """One verdict per group of LoRA arms that differ in rank alone.

    Args:
        sweep: An experiment with a LoRA arm whose runs recorded the bits of their rewards.
        search: Of the same sweep; not needed, for bits are no scores.
    """
    obstacle = Comparer(sweep).stopped_or_unfinished
    return [_check(sweep, group, obstacle) for group in _groups(sweep)]


def _check(sweep: Sweep, group: Sequence[Arm], obstacle: Obstacle | None) -> Verdict:
    ranks = ", ".join(str(arm.rank) for arm in group)
    statement = (
        f"What the rewards of a run can tell is less than {BITS_PER_PARAMETER:g} bits per trained "
        f"parameter of LoRA at rank {ranks}: {model_and_task(sweep, group[0])}."
    )
    names = tuple(arm.name for arm in group)
    found = obstacle or _loads(sweep, group)
    if isinstance(found, Obstacle):
        return undecided("C10", statement, names, found)
    fullest = max(found, key=lambda load: load.contrast.point)
    estimate = fullest.contrast.estimate()
    flags = () if estimate.interval else ("few_seeds",)
    decision = _decide(sweep, found)
    fewest = min(load.contrast.n for load in found)
    return decided("C10", statement, names, decision, estimate, flags, n_seeds=fewest)


def _loads(sweep: Sweep, group: Sequence[Arm]) -> list[_Load] | Obstacle:
    found = [load for arm in group if (load := _load(sweep, arm)) is not None]
    missing = [arm.name for arm in group if arm not in [load.arm for load in found]]
    if not missing:
        return found
    names = " and ".join(missing)
    return Obstacle(
        "incomplete",
        f"No completed {phase(sweep)} run of {names} recorded the bits of its rewards: run some.",
        f"{phase(sweep)} runs of {names}",
    )


def _load(sweep: Sweep, arm: Arm) -> _Load | None:
    rows, size = chosen_runs(sweep, arm), parameters(sweep, arm)
    bits, episodes = (numbers(rows, name) for name in (BITS, EPISODES))
    seeds = by_seed(rows, bits)
    if not seeds or size is None:
        return None
    loads = np.array([capacity_load(value, size) for value in seeds.values()])
    most = float(np.log2(numbers(rows, VALUES).clip(lower=1)).max())
    return _Load(arm, mean_contrast(loads), float((bits / episodes).mean()), most)


def _decide(sweep: Sweep, found: Sequence[_Load]) -> Decision:
    """Every rank must have room; a rank without is one of several looks, so it is corrected."""
    shown = "; ".join(map(_load_text, found))
    beside = f" {_episode_text(found)}{_gap_text(sweep, found)}"
    fewest = min(load.contrast.n for load in found)
    if fewest < MIN_SEEDS:
        more = seeds_text(MIN_SEEDS - fewest, phase(sweep))
        reason = f"Bits over capacity are {shown}, without an interval: at least {more}.{beside}"
        return Decision(UNDECIDED, reason, more)
    corrected = 1 - (1 - CONFIDENCE) / len(found)
    over = [load for load in found if _bounds(load, corrected)[0] > 1]
    if over:
        words = "rank " + " and ".join(str(load.arm.rank) for load in over)
        reason = f"Bits over capacity are {shown}: above 1 at {words}, corrected for all ranks."
        return Decision(REFUTED, reason + beside)
    if all(_bounds(load, CONFIDENCE)[1] < 1 for load in found):
        reason = f"Bits over capacity are {shown}: below 1 at every rank."
        return Decision(SUPPORTED, reason + beside)
    more = f"more {phase(sweep)} seeds, or longer or shorter runs"
    return Decision(UNDECIDED, f"Bits over capacity are {shown}: one holds 1.{beside}", more)


def _bounds(load: _Load, confidence: float) -> tuple[float, float]:
    """Interval of a load from three seeds or more; equal ones are a count, known exactly."""
    half = load.contrast.half_width(confidence)
    return load.contrast.point - half, load.contrast.point + half


def _load_text(load: _Load) -> str:
    text = f"{load.contrast.point:.2g}"
    if load.contrast.n >= MIN_SEEDS:
        low, high = _bounds(load, CONFIDENCE)
        text += f" [{low:.2g}, {high:.2g}]"
    return f"{text} at rank {load.arm.rank}"


def _episode_text(found: Sequence[_Load]) -> str:
    mean = sum(load.bits_per_episode for load in found) / len(found)
    most = max(load.most_bits for load in found)
    return f"An episode told {mean:.2f} bits, of {most:.2f} that its rewards allow."


def _gap_text(sweep: Sweep, found: Sequence[_Load]) -> str:
    """The gap to FullFT against the load, where some rank has no room."""
    if all(load.contrast.point < 1 for load in found):
        return ""
    gaps = _gaps(sweep, found)
    if not gaps:
        return " There is no FullFT arm to tell what that costs."
    shown = ", ".join(f"{signed_text(g.gap, 3)} at rank {g.load.arm.rank}" for g in gaps)
    columns = ([g.load.contrast.point for g in gaps], [g.gap for g in gaps])
    slope = gap_slope(*columns, [g.error for g in gaps])
    text = f" FullFT scores better by {shown}"
    interval = None if slope is None else slope.estimate().interval
    if slope is None or interval is None:
        return f"{text}; a slope on log2 of the load needs 3 ranks whose scores spread."
    low, high = (signed_text(x, 3) for x in interval)
    return f"{text}: {signed_text(slope.point, 3)} [{low}, {high}] per doubling of the load."


def _gaps(sweep: Sweep, found: Sequence[_Load]) -> list[_Gap]:
    baselines = {pair.arm: pair.baseline for pair in pairs(sweep)}
    sign = -1.0 if sweep.direction == "minimize" else 1.0
    gaps = []
    for load in found:
        baseline = baselines.get(load.arm)
        scores = _scores(sweep, load.arm)
        full = _scores(sweep, baseline) if baseline is not None else []
        if scores and full and load.contrast.point > 0:
            own = mean_contrast(np.array(scores))
            gap = sign * (float(np.mean(full)) - own.point)
            gaps.append(_Gap(load, gap, own.standard_error if own.n > 1 else math.nan))
    return gaps


def _scores(sweep: Sweep, arm: Arm) -> list[float]:
    rows = chosen_runs(sweep, arm)
    return list(by_seed(rows, numbers(rows, "score_final")).values())


CLAIM = Claim(
    claim_id="C10",
    title="bits",
    statement=(
        "An episode carries at most log2(number of reward values) bits, and even rank 1 has "
        "capacity to spare for all of them."
    ),
    criterion=(
        "Bits of a run: sum over its groups of size x entropy of the rewards, corrected after "
        "Miller and Madow; capacity: 2 bits per trainable parameter. Supported if the 90 % "
        "interval of bits over capacity lies below 1 at every rank, refuted if at some rank it "
        "lies above 1 after correction for their number; there the gap to FullFT is stated "
        "against log2(bits / capacity)."
    ),
    unit="ratio",
    question="Does an adapter have room for all that the rewards can tell?",
    lacks=_lacks,
    check=check,
)
