"""How many seeds the margins of a sweep would take, at the noise it has."""

from __future__ import annotations

from analysis.claims.comparison import comparisons
from analysis.claims.difference import ScoreDifference, measure
from analysis.estimates.power import POWER, seeds_for_margin
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import MAX_SEEDS
from analysis.reading.sweep import Sweep
from analysis.reporting.numbers import listed, plural

MAX_NAMED = 4


def seed_needs(sweep: Sweep, search: SearchSummary) -> list[str]:
    """A sentence per margin and number of seeds: what the margin takes if the true difference is 0.

    None where there is no noise floor, or no margin that scores could be judged by.
    """
    floor = search.floor
    if floor is None or not floor.sd > 0:
        return []
    arms: dict[tuple[float, int, str], list[str]] = {}
    for pair in comparisons(sweep):
        found = measure(sweep, pair, search)
        if isinstance(found, ScoreDifference):
            key = (found.margin, found.contrast.n, found.phase)
            arms.setdefault(key, []).append(pair.names[0])
    return [_sentence(floor.sd, *key, names) for key, names in arms.items()]


def _sentence(sd: float, margin: float, present: int, phase: str, names: list[str]) -> str:
    needed = seeds_for_margin(margin, sd)
    enough = f"more than {MAX_SEEDS}" if needed is None else f"{needed}"
    whom = listed(names) if len(names) <= MAX_NAMED else plural(len(names), "arm")
    return (
        f"With this noise (SD {sd:.3f} a run) a margin of {margin:.3f} needs {enough} {phase} "
        f"seeds an arm to be supported with {100 * POWER:.0f} % probability if the true "
        f"difference is 0; there {'is' if present == 1 else 'are'} {present} ({whom})."
    )
