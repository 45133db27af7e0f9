"""Verdicts on the claims of the field: one module per family of claims."""

from __future__ import annotations

from analysis.claims import learning_rate, parity
from analysis.claims.verdict import Verdict
from analysis.estimates.search import SearchSummary, search_summary
from analysis.reading.sweep import Sweep

__all__ = ["Verdict", "check_claims"]


def check_claims(sweep: Sweep, search: SearchSummary | None = None) -> list[Verdict]:
    """Every verdict the sweep is due: C1 and C2 (scores), then C3 (learning rates).

    Args:
        sweep: A loaded experiment; unfinished ones get their verdicts too, all undecided.
        search: Of the same sweep, where the caller has it already.

    Returns:
        Verdicts in the order of their claims; none for an ad-hoc sweep or a single run, which
        declared no criterion before they ran.
    """
    if not sweep.is_experiment:
        return []
    search = search or search_summary(sweep)
    return [*parity.check(sweep, search), *learning_rate.check(sweep, search)]
