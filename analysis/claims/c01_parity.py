"""C1: LoRA at the highest rank of a sweep scores the same as full fine-tuning."""

from __future__ import annotations

from analysis.claims.claim import Claim
from analysis.claims.comparison import (
    Comparison,
    exploratory,
    lacks_baseline,
    rank_groups,
    setting,
)
from analysis.claims.difference import measure
from analysis.claims.groups import model_and_task
from analysis.claims.parity import equality_verdict
from analysis.claims.verdict import Verdict, undecided
from analysis.estimates.search import SearchSummary
from analysis.reading.sweep import Sweep


def check(sweep: Sweep, search: SearchSummary) -> list[Verdict]:
    """One verdict per group of LoRA arms that differ in rank alone: for the highest rank.

    Report seeds decide; where an experiment has none, its search seeds do by cross-fitting.

    Args:
        sweep: An experiment with both methods.
        search: Of the same sweep.
    """
    early = exploratory(sweep)
    if early is not None:
        statement = equality_text("LoRA at its highest rank", "FullFT", setting(sweep))
        return [undecided("C1", statement, (), early)]
    highest = [max(group, key=lambda pair: pair.arm.rank or 0) for group in rank_groups(sweep)]
    return [
        equality_verdict("C1", _statement(pair, sweep), pair, measure(sweep, pair, search))
        for pair in highest
    ]


def _statement(pair: Comparison, sweep: Sweep) -> str:
    lora = pair.arm.description
    if pair.arm.rank is not None:
        lora += f", the highest rank of this sweep (r = {pair.arm.rank}),"
    return equality_text(lora, pair.baseline_text, model_and_task(sweep, pair.arm))


def equality_text(lora: str, full: str, where: str) -> str:
    """The statement of an equality of scores; ``where`` is model and task."""
    return f"{lora} scores the same as {full}, within the margin: {where}."


CLAIM = Claim(
    claim_id="C1",
    title="parity",
    statement="LoRA at a high rank reaches the score of full fine-tuning.",
    criterion=(
        "Supported if the 90 % interval of the score difference on report seeds lies inside the "
        "margin (10 % of FullFT's gain over the untrained model, at least 0.02, unless the "
        "experiment declares another), refuted if wholly outside, else undecided."
    ),
    unit="difference",
    question="Does LoRA reach the score of full fine-tuning?",
    lacks=lacks_baseline,
    check=check,
)
