"""C7: LoRA loses more than full fine-tuning as the batch grows, whatever its rank."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.claims.claim import Claim
from analysis.claims.comparison import Comparison, exploratory, pairs
from analysis.claims.difference import PLANNED, measure, report_scores
from analysis.claims.groups import fingerprint, model_and_task, settings, value
from analysis.claims.verdict import (
    LEVEL,
    REFUTED,
    SUPPORTED,
    UNDECIDED,
    Decision,
    Obstacle,
    Verdict,
    decided,
    missing_seeds,
    more_seeds,
    undecided,
)
from analysis.estimates.curve import FloatArray
from analysis.estimates.equivalence import beyond_margin_p, equivalence_p, holm
from analysis.estimates.interaction import (
    MIN_BATCHES,
    Interaction,
    batch_interaction,
    slope_difference,
)
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import MIN_SEEDS, Contrast
from analysis.reading.sweep import Sweep

BATCH, STEPS = "objective.prompts_per_step", "objective.steps"
KEYS = (BATCH, STEPS, "evaluation.eval_every")
"""What may go with the batch: at an equal budget of prompts, steps do."""
EQUAL_SHARE = 0.1
"""Budgets within this share of each other are equal: steps are whole numbers."""
RANK_MARGIN = 0.02
"""Slopes of two ranks within this, in score per doubling of the batch, count as one: the loss that
4 batches with 5 report seeds see in 84 % of cases, simulated."""

Group = Mapping[float, Comparison]
"""LoRA arms that differ in the batch alone, with their baselines, by batch."""


@dataclass(frozen=True)
class _Found:
    """The interaction of one group, or why there is none."""

    group: Group
    equal: str
    interaction: Interaction | None
    obstacles: tuple[Obstacle, ...]

    @property
    def arms(self) -> tuple[str, ...]:
        """LoRA arms by batch, then their baselines."""
        pairs = [self.group[batch] for batch in sorted(self.group)]
        return (*(pair.names[0] for pair in pairs), *(pair.names[-1] for pair in pairs))

    @property
    def rank(self) -> int | None:
        """Rank of the LoRA arms."""
        return next(iter(self.group.values())).arm.rank


def _groups(sweep: Sweep) -> list[tuple[Group, str]]:
    """Groups with what is equal in them: ``prompts`` in all, else ``steps``; empty if not known.

    A group that mixed the two would show the length of the training as an effect of the batch.
    """
    flat = settings(sweep)
    alike: dict[str, list[Comparison]] = {}
    for pair in pairs(sweep):
        if value(sweep, pair.arm, BATCH) is not None and pair.baseline is not None:
            alike.setdefault(fingerprint(flat[pair.arm.name], KEYS), []).append(pair)
    found: list[tuple[Group, str]] = []
    for members, equal in itertools.product(alike.values(), ("prompts", "steps")):
        for group in _of_equal(sweep, members, equal):
            if len(group) >= MIN_BATCHES and group not in [known for known, _ in found]:
                steps = value(sweep, next(iter(group.values())).arm, STEPS)
                found.append((group, equal if steps is not None else ""))
    return found


def _of_equal(sweep: Sweep, members: Sequence[Comparison], equal: str) -> list[Group]:
    """Per arm of the smallest batch: itself and the arms whose budget equals its own."""

    def batch_of(pair: Comparison) -> float:
        return float(value(sweep, pair.arm, BATCH))

    def budget_of(pair: Comparison) -> float:
        steps = value(sweep, pair.arm, STEPS)
        return 1.0 if steps is None else steps * (batch_of(pair) if equal == "prompts" else 1)

    smallest = min(map(batch_of, members))
    groups: list[Group] = []
    for first in (pair for pair in members if batch_of(pair) == smallest):
        group: dict[float, Comparison] = {}
        for pair in sorted(members, key=lambda one: abs(budget_of(one) / budget_of(first) - 1)):
            if abs(budget_of(pair) / budget_of(first) - 1) <= EQUAL_SHARE:
                group.setdefault(batch_of(pair), pair)
        groups.append(group)
    return groups


def _lacks(sweep: Sweep) -> str:
    if _groups(sweep):
        return ""
    return f"LoRA and FullFT arms at {MIN_BATCHES} batch sizes or more, of equal prompts or steps"


def check(sweep: Sweep, search: SearchSummary) -> list[Verdict]:
    """One verdict per rank on the loss, then one on whether ranks share it.

    Args:
        sweep: An experiment with both methods at three batch sizes or more.
        search: Of the same sweep; report seeds decide.
    """
    found = [_measure(sweep, group, equal, search) for group, equal in _groups(sweep)]
    return [*(_check_rank(sweep, one) for one in found), *_check_ranks(sweep, found)]


def _measure(sweep: Sweep, group: Group, equal: str, search: SearchSummary) -> _Found:
    early = exploratory(sweep)
    if early is not None:
        return _Found(group, equal, None, (early,))
    if not sweep.experiment["seeds"]["report"]:
        reason = "Without report seeds the larger noise of one method would look like a loss."
        return _Found(group, equal, None, (Obstacle("no_report", f"{reason} Add 5.", PLANNED),))
    cells: dict[float, tuple[FloatArray, FloatArray]] = {}
    obstacles = []
    for batch, pair in group.items():
        outcome = measure(sweep, pair, search, equality=False)
        if isinstance(outcome, Obstacle):
            obstacles.append(outcome)
            continue
        own, other = (np.array(list(report_scores(sweep, name).values())) for name in pair.names)
        cells[batch] = own, other
    fewest = min((len(own) for own, _ in cells.values()), default=0)
    if len(cells) < MIN_BATCHES or fewest < MIN_SEEDS:
        return _Found(group, equal, None, (*obstacles, *_few(len(cells), fewest)))
    interaction = batch_interaction(
        {batch: own for batch, (own, _) in cells.items()},
        {batch: other for batch, (_, other) in cells.items()},
    )
    return _Found(group, equal, interaction, tuple(obstacles))


def _few(batches: int, seeds: int) -> tuple[Obstacle, ...]:
    """What is said where no cell is blocked and the cells are still too few or too small."""
    if batches < MIN_BATCHES:
        return ()
    reason = f"Fewer than {MIN_SEEDS} report seeds ({seeds}), so no interval."
    return (Obstacle("few_seeds", reason, PLANNED),)


def _check_rank(sweep: Sweep, found: _Found) -> Verdict:
    pair = next(iter(found.group.values()))
    judged = found.interaction.differences if found.interaction else found.group
    statement = (
        f"LoRA at rank {found.rank} loses more than FullFT as the batch grows "
        f"({', '.join(f'{batch:g}' for batch in sorted(judged))} prompts a step)"
        f"{_at_equal(found)}: {model_and_task(sweep, pair.arm)}."
    )
    flags = tuple(dict.fromkeys(one.flag for one in found.obstacles))
    if found.interaction is None:
        whole = undecided("C7", statement, found.arms, _joined(found.obstacles))
        return replace(whole, flags=flags)
    decision = _decide(found.interaction)
    left_out = "".join(f" Left out: {one.reason}" for one in found.obstacles)
    decision = replace(decision, reason=decision.reason + left_out)
    flags = (*flags, "curved") if found.interaction.is_curved else flags
    slope = found.interaction.slope.estimate()
    return decided("C7", statement, found.arms, decision, slope, flags)


def _at_equal(found: _Found) -> str:
    return f" at equal {found.equal}" if found.equal else ""


def _joined(obstacles: Sequence[Obstacle]) -> Obstacle:
    reasons = " ".join(dict.fromkeys(one.reason for one in obstacles))
    missing = "; ".join(dict.fromkeys(one.missing for one in obstacles if one.missing))
    return Obstacle(obstacles[0].flag, reasons, missing)


def _decide(found: Interaction) -> Decision:
    slope = found.slope
    low, high = slope.estimate().interval or (-math.inf, math.inf)
    differences = ", ".join(f"{b:g}: {c.point:+.3f}" for b, c in found.differences.items())
    number = (
        f"LoRA minus FullFT changes by {slope.point:+.4f} [{low:+.4f}, {high:+.4f}] per doubling "
        f"of the batch (differences by batch {differences}; better is positive)"
    )
    if found.is_curved:
        reason = f"{number}, and not in a straight line: read the differences, not the slope."
        return Decision(UNDECIDED, reason, "a claim about single batch sizes")
    if high < 0:
        return Decision(SUPPORTED, f"{number}, below 0.")
    if low > 0:
        return Decision(REFUTED, f"{number}, wholly above 0.")
    needed = slope.seeds_for(abs(slope.point))
    advice = more_seeds(needed, slope.n, "report")
    return Decision(
        UNDECIDED, f"{number}, which holds 0: {advice}.", missing_seeds(needed, slope.n, "report")
    )


def _check_ranks(sweep: Sweep, found: Sequence[_Found]) -> list[Verdict]:
    """Per set of groups that differ in rank alone: do they share the slope?"""
    flat = settings(sweep)
    families: dict[str, list[tuple[_Found, Interaction]]] = {}
    for one in found:
        if one.interaction is not None:
            key = fingerprint(flat[one.arms[0]], (*KEYS, "method.rank")) + one.equal
            families.setdefault(key, []).append((one, one.interaction))
    return [_shared(sweep, family) for family in families.values() if len(family) > 1]


def _shared(sweep: Sweep, family: Sequence[tuple[_Found, Interaction]]) -> Verdict:
    ranks = ", ".join(str(one.rank) for one, _ in family)
    where = model_and_task(sweep, next(iter(family[0][0].group.values())).arm)
    equal = _at_equal(family[0][0])
    statement = f"What LoRA loses as the batch grows is the same at ranks {ranks}{equal}: {where}."
    arms = tuple(dict.fromkeys(name for one, _ in family for name in one.arms))
    seeds = min(interaction.slope.n for _, interaction in family)
    return decided("C7", statement, arms, _decide_shared(family), None, n_seeds=seeds)


def _decide_shared(family: Sequence[tuple[_Found, Interaction]]) -> Decision:
    """An equivalence of every pair, never a failure to reject."""
    pairs = list(itertools.combinations(family, 2))
    slopes = [slope_difference(first, second) for (_, first), (_, second) in pairs]
    names = [
        f"{a.rank} and {b.rank} ({_slope_text(slope)})"
        for ((a, _), (b, _)), slope in zip(pairs, slopes, strict=True)
    ]
    outside = holm([beyond_margin_p(slope, RANK_MARGIN) for slope in slopes])
    apart = [name for name, p in zip(names, outside, strict=True) if p < LEVEL]
    inside = [equivalence_p(slope, RANK_MARGIN) < LEVEL for slope in slopes]
    band = f"±{RANK_MARGIN:g} per doubling"
    if apart:
        return Decision(
            REFUTED, f"The slopes of ranks {', '.join(apart)} differ by more than {band}."
        )
    if all(inside):
        every = ", ".join(names)
        return Decision(SUPPORTED, f"The slopes of all ranks agree within {band}: {every}.")
    doubtful = ", ".join(name for name, yes in zip(names, inside, strict=True) if not yes)
    reason = f"The slopes of ranks {doubtful} are not shown to agree within {band}."
    return Decision(UNDECIDED, reason, "more report seeds, or more batch sizes")


def _slope_text(slope: Contrast) -> str:
    low, high = slope.estimate().interval or (slope.point, slope.point)
    return f"{slope.point:+.4f} [{low:+.4f}, {high:+.4f}]"


CLAIM = Claim(
    claim_id="C7",
    title="batch",
    statement="LoRA loses more than full fine-tuning as the batch grows, whatever its rank.",
    criterion=(
        "Slope of the score difference on log2 of the batch, at equal prompts or equal steps, "
        "learning rate tuned per cell, report seeds: supported if the 90 % interval lies below 0, "
        "refuted if wholly above, else undecided. Ranks share it if all pairs of slopes agree "
        "within 0.02 per doubling."
    ),
    unit="slope",
    question="Does LoRA suffer from large batches?",
    lacks=_lacks,
    check=check,
)
