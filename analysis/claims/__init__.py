"""Verdicts on the claims of the field: one module per claim, ``c03_ten_times`` and so on.

A module whose name begins with ``c`` and a number, and which exports ``CLAIM``, is a claim: a new
one is one new file here, and the report, the command line and the tables find it.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from dataclasses import replace

from analysis.claims.claim import Claim
from analysis.claims.verdict import Verdict
from analysis.estimates.search import SearchSummary, search_summary
from analysis.reading.sweep import Sweep

__all__ = ["Claim", "Verdict", "check_claims", "claims", "not_addressed"]

_MODULE = re.compile(r"c\d+_")


def claims() -> tuple[Claim, ...]:
    """Every claim of this package, by its number."""
    names = [m.name for m in pkgutil.iter_modules(__path__) if _MODULE.match(m.name)]
    modules = (importlib.import_module(f"{__name__}.{name}") for name in names)
    found: list[Claim] = [module.CLAIM for module in modules]
    return tuple(sorted(found, key=lambda claim: int(claim.claim_id.lstrip("C"))))


def check_claims(sweep: Sweep, search: SearchSummary | None = None) -> list[Verdict]:
    """Every verdict the sweep is due: those of the claims that it has the arms for.

    Args:
        sweep: A loaded experiment or an imported sweep; unfinished ones get their verdicts too,
            all undecided.
        search: Of the same sweep, where the caller has it already.

    Returns:
        Verdicts in the order of their claims; none for an ad-hoc sweep or a single run, which
        declared no criterion before they ran.
    """
    if not sweep.is_experiment:
        return []
    search = search or search_summary(sweep)
    return [
        replace(verdict, unit=verdict.unit or claim.unit)
        for claim in claims()
        if not claim.lacks(sweep)
        for verdict in claim.check(sweep, search)
    ]


def not_addressed(sweep: Sweep) -> list[tuple[Claim, str]]:
    """The claims for which the sweep has no arms, each with what it would need.

    None for an ad-hoc sweep or a single run: no claim is asked of them.
    """
    if not sweep.is_experiment:
        return []
    wanted = ((claim, claim.lacks(sweep)) for claim in claims())
    return [(claim, lack) for claim, lack in wanted if lack]
