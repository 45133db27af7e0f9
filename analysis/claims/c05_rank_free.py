"""C5: from rank 4 upwards, LoRA's best learning rate does not move with the rank."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.claims.claim import Claim
from analysis.claims.comparison import Comparer
from analysis.claims.groups import matched, model_and_task, value
from analysis.claims.pairwise import family, family_verdict, judge_family
from analysis.claims.verdict import Verdict, undecided
from analysis.estimates.search import SearchSummary
from analysis.reading.arms import Arm
from analysis.reading.sweep import Sweep

MIN_RANK = 4
FACTOR = 2.0
"""Best learning rates within this factor of each other count as one."""


def _groups(sweep: Sweep) -> list[tuple[Arm, ...]]:
    return matched(sweep, ("method.rank",), lambda arm: (arm.rank or 0) >= MIN_RANK)


def _lacks(sweep: Sweep) -> str:
    return "" if _groups(sweep) else "LoRA arms of rank 4 or more that differ in the rank alone"


def check(sweep: Sweep, search: SearchSummary) -> list[Verdict]:
    """One verdict per group of LoRA arms that differ in rank only: per model and task.

    Args:
        sweep: An experiment with two such arms or more.
        search: Of the same sweep; search seeds decide.
    """
    comparer = Comparer(sweep)
    return [_check_group(comparer, group, search) for group in _groups(sweep)]


def _check_group(comparer: Comparer, group: Sequence[Arm], search: SearchSummary) -> Verdict:
    sweep = comparer.sweep
    ranks = ", ".join(str(arm.rank) for arm in group)
    statement = (
        f"The best learning rates of LoRA at ranks {ranks} lie within a factor of {FACTOR:g} of "
        f"each other: {model_and_task(sweep, group[0])}."
    )
    obstacle = comparer.stopped_or_unfinished
    if obstacle is not None:
        return undecided("C5", statement, tuple(arm.name for arm in group), obstacle)
    found = family(comparer, group, search)
    decision = judge_family(found, FACTOR, "best learning rates")
    return family_verdict("C5", statement, found, decision, _alpha_note(sweep, group[0]))


def _alpha_note(sweep: Sweep, arm: Arm) -> str:
    """That the rate is expected to move where alpha does; empty under a constant alpha."""
    rule = value(sweep, arm, "method.alpha_rule")
    if rule not in ("2r", "sqrt"):
        return ""
    return (
        f" Alpha goes with the rank here (rule {rule}), so the learning rate is expected to move "
        "against it: alpha x learning rate is what may be compared."
    )


CLAIM = Claim(
    claim_id="C5",
    title="rank-free learning rate",
    statement="From rank 4 upwards, LoRA's best learning rate moves less than a factor of 2.",
    criterion=(
        "Every pair of LoRA arms of rank 4 or more that differ in rank alone: supported if all "
        "90 % intervals of the ratio lie inside [1/2, 2], refuted if any lies wholly outside after "
        "Holm's correction over pairs, else undecided, as where the optimum of an arm is not "
        "known. The estimate shown is the highest rank over the lowest."
    ),
    unit="ratio",
    question="Does one learning rate serve every rank?",
    lacks=_lacks,
    check=check,
)
