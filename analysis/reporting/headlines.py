"""The verdicts in a manager's words: one answer a question, and what it rests on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from analysis.claims import claims
from analysis.claims.verdict import REFUTED, SUPPORTED, UNDECIDED, Verdict, direction
from analysis.reading.arms import count_text, rate_text
from analysis.reading.sweep import Sweep
from analysis.reporting.glossary import meaning
from analysis.reporting.numbers import listed, verdict_estimate

ORDER = (SUPPORTED, REFUTED, UNDECIDED)
NOT_COMPARED, MIXED = "not compared", "mixed"
MAX_NAMED = 4
"""Verdicts that an answer names one by one; of more it gives the range."""

MAX_MISSING = 2


@dataclass(frozen=True)
class Answer:
    """What the sweep says about one question."""

    question: str
    verdict: str
    """``supported``, ``refuted`` or ``undecided``; ``mixed`` where arms differ."""
    text: str
    """Which arms with which numbers, a sentence."""
    missing: str
    """What would decide what is undecided; empty if nothing is known to, or nothing is open."""
    rests_on: str
    """Seeds, grid and flags, a sentence."""


def answers(sweep: Sweep, verdicts: Sequence[Verdict]) -> list[Answer]:
    """One answer a question, in the order of the claims; none without verdicts."""
    return [
        Answer(question, _overall(found), _text(found), _missing(found), _rests_on(sweep, found))
        for question, found in _by_question(verdicts)
    ]


def headlines(verdicts: Sequence[Verdict]) -> list[str]:
    """The answers as lines of text: question, then answer."""
    return [f"{question} {_text(found)}" for question, found in _by_question(verdicts)]


def _by_question(verdicts: Sequence[Verdict]) -> list[tuple[str, list[Verdict]]]:
    """Verdicts by question; of several claims with one question the last that speaks counts."""
    questions = {claim.claim_id: claim.question for claim in claims()}
    found: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        question = questions.get(verdict.claim_id, f"{verdict.claim_id}:")
        mates = found.setdefault(question, [])
        if mates and mates[0].claim_id != verdict.claim_id:
            mates.clear()
        mates.append(verdict)
    return list(found.items())


def _overall(found: Sequence[Verdict]) -> str:
    """The verdict on all arms at once where there is one, else the common one."""
    whole = _whole(found)
    if whole is not None:
        return whole.verdict
    words = {verdict.verdict for verdict in found}
    return words.pop() if len(words) == 1 else MIXED


def _whole(found: Sequence[Verdict]) -> Verdict | None:
    """The verdict that is about every arm of the others."""
    named = {arm for verdict in found for arm in verdict.arms}
    whole = [verdict for verdict in found if set(verdict.arms) == named]
    return whole[-1] if len(found) > 2 and whole else None


def _singles(found: Sequence[Verdict]) -> list[Verdict]:
    whole = _whole(found)
    return [verdict for verdict in found if verdict is not whole]


def _text(found: Sequence[Verdict]) -> str:
    """``Supported for a (1 [0, 2]) and b (2 [1, 3]); refuted for c (4 [3, 5]).``"""
    singles = _singles(found)
    said: dict[str, list[Verdict]] = {}
    for verdict in sorted(singles, key=lambda v: (_alone(v), ORDER.index(v.verdict))):
        said.setdefault(_word(verdict), []).append(verdict)
    parts = [_answer(word, mates, singles) for word, mates in said.items()]
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _alone(verdict: Verdict) -> bool:
    return "no_baseline" in verdict.flags and len(verdict.arms) == 1


def _word(verdict: Verdict) -> str:
    """The verdict; a refuted equality of scores says on which side the arm lies."""
    if _alone(verdict):
        return NOT_COMPARED
    if verdict.verdict == REFUTED and verdict.unit == "difference" and len(verdict.arms) == 2:
        return f"{REFUTED}: scores {direction(verdict.estimate or 0.0)} {verdict.arms[1]}:"
    return verdict.verdict


def _answer(word: str, mates: Sequence[Verdict], singles: Sequence[Verdict]) -> str:
    if word == NOT_COMPARED:
        return f"{word}: {listed([v.arms[0] for v in mates])} ({meaning('no_baseline')})"
    if len(mates) > MAX_NAMED:
        return f"{word} for {len(mates)} of {len(singles)}{_range(mates)}"
    names = listed([text for v in mates if (text := _named(v, singles))])
    if not names:
        return word
    return f"{word} {names}" if word.endswith(":") or names[0] == "(" else f"{word} for {names}"


def _named(verdict: Verdict, singles: Sequence[Verdict]) -> str:
    """The arm with its number; the baseline too where an arm is one of another."""
    number = "" if _number(verdict) is None else f" ({_quantity(verdict)})"
    if not verdict.arms or (len(verdict.arms) > 2 and len(singles) == 1):
        return number.strip()
    first, *others = verdict.arms
    if len(others) > 1:
        return f"{first} and {len(others)} more{number}"
    baselines = {v.arms[-1] for v in singles if len(v.arms) > 1}
    if others and baselines & {v.arms[0] for v in singles if v.arms}:
        return f"{first} against {others[0]}{number}"
    return f"{first}{number}"


def _quantity(verdict: Verdict) -> str:
    """The estimate with the word for what it is, where its unit does not say it."""
    word = f"{verdict.unit} " if verdict.unit in ("difference", "ratio") else ""
    estimate = verdict_estimate(verdict)
    # The number stands in parentheses itself.
    return word + estimate.replace(" (no interval", ", no interval").removesuffix(")")


def _number(verdict: Verdict) -> float | None:
    value = verdict.estimate
    return value if value is not None and math.isfinite(value) else None


def _range(mates: Sequence[Verdict]) -> str:
    """Smallest and largest estimate, each with its interval."""
    known = sorted((v for v in mates if _number(v) is not None), key=lambda v: v.estimate or 0.0)
    if not known:
        return ""
    low, high = (
        f"{v.arms[0]} {_quantity(v)}" if len(v.arms) <= 2 else _quantity(v)
        for v in (known[0], known[-1])
    )
    number, comma, why = low.partition(", no interval")
    if comma and high.endswith(comma + why):
        low = number  # said once, behind the other
    return f" (from {low} to {high})"


def _missing(found: Sequence[Verdict]) -> str:
    """What would decide the undecided: the most common first, and how many more there are."""
    lacking = Counter(v.missing for v in _singles(found) if v.verdict == UNDECIDED and v.missing)
    wanted = [text for text, _ in lacking.most_common()]
    more = len(wanted) - MAX_MISSING
    shown = "; ".join(wanted[:MAX_MISSING])
    return f"{shown}; and {more} more, see the verdicts" if more > 0 else shown


def _rests_on(sweep: Sweep, found: Sequence[Verdict]) -> str:
    seeds = {verdict.n_seeds for verdict in _singles(found) if verdict.n_seeds}
    flags = list(dict.fromkeys(flag for verdict in found for flag in verdict.flags))
    arms = dict.fromkeys(arm for verdict in found for arm in verdict.arms)
    parts = [f"Rests on {count_text(seeds, 'seed')}" if seeds else "Nothing estimated"]
    parts.append(_grid(sweep, list(arms)))
    parts.append(f"flags: {', '.join(flags)}" if flags else "")
    return "; ".join(part for part in parts if part) + "."


def _grid(sweep: Sweep, names: Sequence[str]) -> str:
    """How many learning rates the arms have, and over which range."""
    known = sweep.plan["arms"]
    grids = [sorted(known[name]["learning_rates"]) for name in names if name in known]
    if not grids:
        return ""
    gaps = [math.log10(b / a) for grid in grids for a, b in pairwise(grid)]
    count = count_text({len(grid) for grid in grids}, "learning rate")
    low, high = min(grid[0] for grid in grids), max(grid[-1] for grid in grids)
    if not gaps:
        return f"{count} an arm, {rate_text(low)}"
    span = f"{rate_text(low)} to {rate_text(high)}"
    return f"{count} an arm, {span}, up to {max(gaps):.2f} decades apart"
