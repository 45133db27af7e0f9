"""What a claim is: one file of this package exports one, and nothing else need know of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from analysis.claims.verdict import Verdict
from analysis.estimates.search import SearchSummary
from analysis.reading.sweep import Sweep


@dataclass(frozen=True)
class Claim:
    """A numbered statement of the field with the rule that decides it."""

    claim_id: str
    """As ``C3``."""
    title: str
    """A few words, as "ten times"."""
    statement: str
    """The general statement, one sentence."""
    criterion: str
    """What decides, in words."""
    unit: str
    """How the estimate reads: ``difference`` (score), ``ratio`` (times), ``decades``, ``slope``,
    ``share``."""
    question: str
    """The question behind it, as somebody asks who has never heard of claims."""
    lacks: Callable[[Sweep], str]
    """Empty if the sweep has the arms for it; else what it would need, a clause."""
    check: Callable[[Sweep, SearchSummary], list[Verdict]]
    """The verdicts of a sweep that has the arms for it."""
