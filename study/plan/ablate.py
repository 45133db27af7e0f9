"""Growth of an ablation: which arm the path takes next, and what the arms on it report.

In each round every configuration with one more factor changed is run; that of best mean search
score (at the best learning rate of its grid, as everywhere; ties: the first in ``factors``) is
taken, and its selection is written. What was taken stays so, whatever later seeds say.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from study.plan.experiment import Plan, searching, with_cells
from study.plan.lattice import Lattice, lattice_of
from study.plan.select import Selection, searched, select
from study.records.record import Record


def grow(
    plan: Plan, records: Mapping[str, Record], selections: Mapping[str, Selection]
) -> tuple[Plan, list[Selection]]:
    """The next plan of an ablation: the next round of the path, and report runs of what is taken.

    Returns:
        The grown plan and the selections that are new and to be written.
    """
    lattice = _lattice(plan)
    ends = (lattice.source, lattice.target) if lattice.path else lattice.first
    fresh = {
        arm: choice
        for arm in ends
        if arm not in selections and (choice := select(plan, arm, records)) is not None
    }
    way = lattice.walked({*selections, *fresh})
    while lattice.path and way[-1] != lattice.target:
        names = lattice.candidates(way[-1])
        if waiting := [arm for arm in names if arm in plan.reserve]:
            plan = searching(plan, waiting)
        taken = best(select_all(plan, names, records))
        if taken is None:
            break
        fresh[taken.arm] = taken
        way = lattice.walked({*selections, *fresh})
    decided = {**selections, **fresh}
    rates = {arm: [choice.learning_rate] for arm, choice in decided.items()}
    return with_cells(plan, "report", rates), list(fresh.values())


def select_all(
    plan: Plan, arms: Iterable[str], records: Mapping[str, Record]
) -> list[Selection] | None:
    """What each of the arms would report at, in their order; None until all are searched.

    An arm without any score is left out.
    """
    names = list(arms)
    if not all(searched(plan, arm, records) for arm in names):
        return None
    choices = (select(plan, arm, records) for arm in names)
    return [choice for choice in choices if choice is not None]


def best(choices: list[Selection] | None) -> Selection | None:
    """The arm of best mean score, of equal ones the first; None where there is none."""
    return max(choices or [], key=lambda choice: choice.mean_score, default=None)


def to_come(plan: Plan, records: Mapping[str, Record]) -> int:
    """Runs that will join an ablation's plan.

    None once nothing is open: an arm without a score leads nowhere and reports nothing.
    """
    if all(run.run_id in records for run in plan.runs):
        return 0
    return max(0, sum(runs_in_all(plan)) - len(plan.runs))


def runs_in_all(plan: Plan) -> tuple[int, int]:
    """Search and report runs that an ablation will hold by its end, if no arm lacks a score."""
    lattice, seeds = _lattice(plan), plan.experiment.seeds
    cells = len(plan.arms[lattice.source].learning_rates) * len(seeds.search)
    return lattice.searched_in_all * cells, lattice.reported_in_all * len(seeds.report)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One round of the path, by the mean search scores that decided it."""

    factor: str
    """The factor that was changed."""
    arm: str
    """The arm that it led to."""
    score: float
    gain: float
    """Over the arm before."""
    rivals: dict[str, float]
    """Gain of each factor that was not taken in this round."""


def steps(
    plan: Plan, records: Mapping[str, Record], selections: Mapping[str, Selection]
) -> list[Step]:
    """The decided rounds of a path; without a path, every factor that was changed alone."""
    lattice = _lattice(plan)
    way = lattice.walked(selections) if lattice.path else [lattice.source]
    pairs = [*itertools.pairwise(way)]
    if not lattice.path:
        singles = lattice.candidates(lattice.source)
        pairs = [(lattice.source, arm) for arm in singles if arm in selections]
    return [
        _step(plan, lattice, before, after, records, selections)
        for before, after in pairs
        if before in selections
    ]


def _step(
    plan: Plan,
    lattice: Lattice,
    before: str,
    after: str,
    records: Mapping[str, Record],
    selections: Mapping[str, Selection],
) -> Step:
    start, score = selections[before].mean_score, selections[after].mean_score
    others = [arm for arm in lattice.candidates(before) if arm != after] if lattice.path else []
    rivals = {
        lattice.change(before, choice.arm): choice.mean_score - start
        for choice in select_all(plan, others, records) or []
    }
    factor = lattice.change(before, after)
    return Step(factor=factor, arm=after, score=score, gain=score - start, rivals=rivals)


def _lattice(plan: Plan) -> Lattice:
    lattice = lattice_of(plan.experiment)
    assert lattice is not None
    return lattice
