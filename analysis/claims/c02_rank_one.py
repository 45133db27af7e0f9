"""C2: LoRA at every rank, down to 1, scores the same as full fine-tuning."""

from __future__ import annotations

from analysis.claims.c01_parity import equality_text
from analysis.claims.claim import Claim
from analysis.claims.comparison import (
    Comparison,
    exploratory,
    lacks_baseline,
    rank_groups,
    setting,
)
from analysis.claims.difference import Finding, ScoreDifference, measure
from analysis.claims.groups import model_and_task
from analysis.claims.parity import difference_verdict, equality, equality_verdict
from analysis.claims.verdict import (
    REFUTED,
    SUPPORTED,
    UNDECIDED,
    Decision,
    Obstacle,
    Verdict,
    decided,
    direction,
    undecided,
)
from analysis.estimates.equivalence import holm
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import MIN_SEEDS
from analysis.reading.sweep import Sweep

Found = list[tuple[Comparison, Finding]]


def check(sweep: Sweep, search: SearchSummary) -> list[Verdict]:
    """One verdict per LoRA arm, then one for all that differ in rank alone (Holm over those).

    Args:
        sweep: An experiment with both methods.
        search: Of the same sweep.
    """
    early = exploratory(sweep)
    if early is not None:
        statement = equality_text("LoRA at every rank", "FullFT", setting(sweep))
        return [undecided("C2", statement, (), early)]
    verdicts: list[Verdict] = []
    for group in rank_groups(sweep):
        found = [(pair, measure(sweep, pair, search)) for pair in group]
        each = _judge_each(sweep, found)
        verdicts += [*each, *_judge_all(sweep, found, each)]
    return verdicts


def _statement(pair: Comparison, sweep: Sweep) -> str:
    where = model_and_task(sweep, pair.arm)
    return equality_text(pair.arm.description, pair.baseline_text, where)


def _judge_each(sweep: Sweep, found: Found) -> list[Verdict]:
    """One verdict per LoRA arm, with Holm's correction over those that have an interval."""
    tested = [p for _, p in found if isinstance(p, ScoreDifference) and p.contrast.n >= MIN_SEEDS]
    inside = holm([p.inside_p for p in tested])
    outside = holm([p.outside_p for p in tested])
    corrected = dict(zip(map(id, tested), zip(inside, outside, strict=True), strict=True))
    verdicts = []
    for pair, p in found:
        text = _statement(pair, sweep)
        if isinstance(p, ScoreDifference) and id(p) in corrected:
            decision = equality(p, corrected[id(p)], tests=len(tested))
            verdicts.append(difference_verdict("C2", text, p, decision))
        else:
            verdicts.append(equality_verdict("C2", text, pair, p))
    return verdicts


def _judge_all(sweep: Sweep, found: Found, each: list[Verdict]) -> list[Verdict]:
    """The claim on every rank: supported if each is uncorrected, refuted if any is after Holm."""
    if len(found) < 2:
        return []
    decision = _decide_all(found, each)
    baselines = sorted({v.arms[1] for v in each if len(v.arms) > 1})
    ranks = ", ".join(str(rank) for rank in sorted({pair.arm.rank or 0 for pair, _ in found}))
    where = model_and_task(sweep, found[0][0].arm)
    return [
        decided(
            "C2",
            equality_text(f"LoRA at every rank of the sweep ({ranks})", "FullFT", where),
            (*(pair.arm.name for pair, _ in found), *baselines),
            decision,
            None,
            tuple(flag for v in each for flag in v.flags),
            min(v.n_seeds for v in each),
        )
    ]


def _decide_all(found: Found, each: list[Verdict]) -> Decision:
    single = [equality_verdict("C2", "", pair, p) for pair, p in found]
    reasons = {p.reason for _, p in found if isinstance(p, Obstacle)}
    refuted = [v for v in each if v.verdict == REFUTED]
    doubtful = [v for v in single if v.verdict != SUPPORTED]
    if refuted:
        sides = [f"{v.arms[0]} scores {direction(v.estimate or 0.0)} FullFT" for v in refuted]
        return Decision(REFUTED, f"{', '.join(sides)}, after Holm's correction.")
    if not doubtful:
        return Decision(SUPPORTED, f"Each of the {len(each)} arms scores the same as FullFT.")
    lacks = (v.missing for v in each if v.verdict != SUPPORTED)
    missing = "; ".join(dict.fromkeys(filter(None, lacks)))
    if len(reasons) == 1 and len(doubtful) == len(each):
        return Decision(UNDECIDED, reasons.pop(), missing)
    names = ", ".join(v.arms[0] for v in doubtful)
    return Decision(UNDECIDED, f"Undecided for {names}: see the verdicts on single arms.", missing)


CLAIM = Claim(
    claim_id="C2",
    title="rank one",
    statement="LoRA at every rank, down to 1, reaches the score of full fine-tuning.",
    criterion=(
        "As for C1, one verdict per rank with Holm's correction over ranks. Every rank: supported "
        "if all are uncorrected, refuted if any is after the correction."
    ),
    unit="difference",
    question="Is every rank enough, down to the smallest?",
    lacks=lacks_baseline,
    check=check,
)
