"""C17: an entropy-shaped advantage helps exploration, at every rank alike."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from analysis.claims.claim import Claim
from analysis.claims.comparison import Comparer, exploratory
from analysis.claims.costs import by_seed, chosen_runs
from analysis.claims.difference import Finding, ScoreDifference, measure, report_scores
from analysis.claims.groups import fingerprint, matched, model_and_task, settings, value
from analysis.claims.parity import difference_verdict, equality, few_seeds, number_text, side_text
from analysis.claims.verdict import (
    REFUTED,
    SUPPORTED,
    UNDECIDED,
    Decision,
    Obstacle,
    Verdict,
    missing_seeds,
    more_seeds,
    undecided,
)
from analysis.estimates.equivalence import beyond_margin_p, equivalence_p, holm
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import paired_difference
from analysis.reading.arms import Arm, signed_text
from analysis.reading.sweep import Sweep

GROUP = "objective.entropy_shaping"
ALPHA = f"{GROUP}.alpha"
ENTROPY = "train/entropy"
LAST = 0.2
"""Share of the steps, the last ones, over which the policy's entropy is averaged."""


@dataclass(frozen=True)
class _Effect:
    """A shaped arm against the plain one that differs in nothing else."""

    shaped: Arm
    plain: Arm
    found: Finding


def _pairs(sweep: Sweep) -> list[tuple[Arm, Arm]]:
    found = []
    for group in matched(sweep, (GROUP,)):
        plain = [arm for arm in group if not value(sweep, arm, ALPHA)]
        found += [(arm, plain[0]) for arm in group if plain and value(sweep, arm, ALPHA)]
    return found


def _lacks(sweep: Sweep) -> str:
    return "" if _pairs(sweep) else f"arms that differ in {ALPHA} alone, one of them with 0"


def check(sweep: Sweep, search: SearchSummary) -> list[Verdict]:
    """One verdict per shaped arm, and one per pair of ranks: whether shaping does the same there.

    Args:
        sweep: An experiment with such arms.
        search: Of the same sweep.
    """
    comparer = Comparer(sweep)
    effects = []
    for shaped, plain in _pairs(sweep):
        pair = comparer.compare(shaped, plain)
        found = exploratory(sweep) or measure(sweep, pair, search)
        effects.append(_Effect(shaped, plain, found))
    return [*(_check(sweep, effect) for effect in effects), *_interactions(sweep, effects)]


def _check(sweep: Sweep, effect: _Effect) -> Verdict:
    shaped, plain, found = effect.shaped, effect.plain, effect.found
    statement = (
        f"An entropy-shaped advantage (alpha {value(sweep, shaped, ALPHA):g}) makes "
        f"{shaped.description} score better than {plain.name} without it: "
        f"{model_and_task(sweep, shaped)}."
    )
    if isinstance(found, Obstacle):
        return undecided("C17", statement, (shaped.name, plain.name), found)
    decision = _better(found)
    decision = replace(decision, reason=decision.reason + _entropy_text(sweep, shaped, plain))
    return difference_verdict("C17", statement, found, decision)


def _better(found: ScoreDifference) -> Decision:
    """Whether the difference lies on one side of 0."""
    contrast = found.contrast
    interval = contrast.estimate().interval
    if interval is None:
        return few_seeds(found)
    number = number_text(found)
    if interval[0] > 0:
        return Decision(SUPPORTED, f"{number} excludes 0: {side_text(found)}.")
    if interval[1] < 0:
        return Decision(REFUTED, f"{number} excludes 0: {side_text(found)}.")
    needed = contrast.seeds_for(abs(contrast.point))
    advice = more_seeds(needed, contrast.n, found.phase)
    missing = missing_seeds(needed, contrast.n, found.phase)
    return Decision(UNDECIDED, f"{number} holds 0: {advice}.", missing)


def _entropy_text(sweep: Sweep, shaped: Arm, plain: Arm) -> str:
    """The policy's entropy at the end, shaped minus plain; empty where it was not recorded."""
    own, other = (_entropies(sweep, arm) for arm in (shaped, plain))
    seeds = sorted(own.keys() & other.keys())
    if not seeds:
        return ""
    found = paired_difference([own[s] for s in seeds], [other[s] for s in seeds]).estimate()
    text = f" Entropy per token over the last {LAST:.0%} of the steps: "
    text += f"{signed_text(found.point, 3)} nat"
    if found.interval is None:
        return f"{text} (no interval, n = {found.n})."
    low, high = (signed_text(end, 3) for end in found.interval)
    side = "kept higher" if found.interval[0] > 0 else "lowered" if found.interval[1] < 0 else ""
    return f"{text} [{low}, {high}]{', ' if side else ''}{side}."


def _entropies(sweep: Sweep, arm: Arm) -> dict[int, float]:
    """Mean entropy of the last steps by seed, in nats."""
    rows = chosen_runs(sweep, arm)
    mine = (sweep.metrics["metric"] == ENTROPY) & sweep.metrics["run_id"].isin(rows["run_id"])
    found = sweep.metrics[mine]
    steps = int(value(sweep, arm, "objective.steps") or found["step"].max() if len(found) else 0)
    late = found[found["step"] > steps * (1 - LAST)]
    means = late.groupby(late["run_id"].astype(str))["value"].mean()
    return by_seed(rows, rows["run_id"].astype(str).map(means).astype(float))


def _interactions(sweep: Sweep, effects: Sequence[_Effect]) -> list[Verdict]:
    """Whether ranks differ in what shaping does, of all pairs that differ in rank alone."""
    flat = settings(sweep)
    groups: dict[str, list[_Effect]] = {}
    for effect in effects:
        if effect.shaped.rank is not None:
            key = fingerprint(flat[effect.shaped.name], ("method.rank",))
            groups.setdefault(key, []).append(effect)
    pairs = [p for group in groups.values() for p in itertools.combinations(group, 2)]
    found = [_interaction(sweep, first, second) for first, second in pairs]
    tested = [one for one in found if isinstance(one, ScoreDifference) and one.contrast.has_spread]
    corrected = _corrected(tested)
    return [
        _interaction_verdict(sweep, pair, one, corrected.get(id(one)), len(tested))
        for pair, one in zip(pairs, found, strict=True)
    ]


def _corrected(found: Sequence[ScoreDifference]) -> Mapping[int, tuple[float, float]]:
    """p values for inside, uncorrected as all must hold, and for outside, by Holm, as one will do.

    That the effect is the same at every rank holds only if it does for all pairs.
    """
    outside = holm([beyond_margin_p(one.contrast, one.margin) for one in found])
    inside = [equivalence_p(one.contrast, one.margin) for one in found]
    return {id(one): (a, b) for one, a, b in zip(found, inside, outside, strict=True)}


def _interaction(sweep: Sweep, first: _Effect, second: _Effect) -> Finding:
    """The second effect minus the first, paired by report seed, with the narrower margin."""
    for effect in (first, second):
        if isinstance(effect.found, Obstacle):
            return effect.found
    assert isinstance(first.found, ScoreDifference) and isinstance(second.found, ScoreDifference)
    gains = [_gains(sweep, effect) for effect in (first, second)]
    seeds = sorted(gains[0].keys() & gains[1].keys())
    if not seeds:
        reason = "Without report seeds that the four arms share, effects cannot be compared."
        return Obstacle("incomplete", reason, "5 report seeds")
    contrast = paired_difference([gains[1][s] for s in seeds], [gains[0][s] for s in seeds])
    comparison = replace(second.found.comparison, arm=second.shaped, baseline=first.shaped)
    margin = min(first.found.margin, second.found.margin)
    source = f"{contrast.n} report seeds, paired t"
    lower = sweep.direction == "minimize"
    return ScoreDifference(comparison, contrast, margin, source, (), lower)


def _gains(sweep: Sweep, effect: _Effect) -> dict[int, float]:
    own, other = (report_scores(sweep, arm.name) for arm in (effect.shaped, effect.plain))
    return {seed: own[seed] - other[seed] for seed in own.keys() & other.keys()}


def _interaction_verdict(
    sweep: Sweep,
    pair: tuple[_Effect, _Effect],
    found: Finding,
    p_values: tuple[float, float] | None,
    tests: int,
) -> Verdict:
    first, second = pair
    statement = (
        f"Shaping changes the score as much at rank {second.shaped.rank} as at rank "
        f"{first.shaped.rank}, within the margin: {model_and_task(sweep, first.shaped)}."
    )
    names = (second.shaped.name, first.shaped.name)
    if isinstance(found, Obstacle):
        return undecided("C17", statement, names, found)
    verdict = difference_verdict("C17", statement, found, equality(found, p_values, tests))
    return replace(verdict, flags=(*verdict.flags, "interaction"))


CLAIM = Claim(
    claim_id="C17",
    title="entropy shaping",
    statement="An entropy-shaped advantage helps exploration and raises the score, at every rank.",
    criterion=(
        "The score difference of shaped to plain, all else equal: supported if its 90 % interval "
        "lies above 0, refuted if wholly below; the policy's entropy beside it. No interaction "
        "with rank: the differences of two ranks are equal within the margin of C1, "
        "Holm-corrected for refuting (Cheng et al. 2025, arXiv 2506.14758)."
    ),
    unit="difference",
    question="Does an entropy-shaped advantage help?",
    lacks=_lacks,
    check=check,
)
