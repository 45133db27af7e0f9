"""An ablation as its plan tells it: the arms between two, and how many runs there will be."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from study.plan.lattice import Lattice

if TYPE_CHECKING:
    from analysis.reading.sweep import Sweep


def ablation_lattice(sweep: Sweep) -> Lattice | None:
    """The arms of an ablation, in the order in which its file has the factors; else None."""
    settings = sweep.experiment.get("ablate")
    if settings is None:
        return None
    return Lattice(
        source=settings["source"],
        target=settings["target"],
        factors=tuple(sweep.experiment["factors"]),
        path=settings["path"],
    )


def expected_runs(sweep: Sweep, silent: Collection[str]) -> int:
    """Runs of an ablation at its end: the planned ones, and those of rounds to come.

    Args:
        sweep: An ablation.
        silent: Arms whose search is over without a score: they are not taken and do not report.
    """
    lattice = ablation_lattice(sweep)
    assert lattice is not None
    planned, seeds = sweep.planned, sweep.experiment["seeds"]
    search = planned[planned["phase"] == "search"]
    reporting = [arm for arm in lattice.first if arm not in silent]
    if lattice.path:
        way = lattice.walked(sweep.selections)
        ends = {lattice.source, lattice.target} - set(silent)
        reporting = [*ends, *(arm for arm in way if arm not in (lattice.source, lattice.target))]
        if way[-1] != lattice.target:
            candidates = lattice.candidates(way[-1])
            if set(candidates) <= set(silent):
                return len(search) + len(reporting) * len(seeds["report"])
            reporting += [""] * (len(lattice.factors) - len(way))  # arms that are yet unknown
    cells = int((search["arm"] == lattice.source).sum())
    rounds = lattice.searched_in_all - search["arm"].nunique()
    return len(search) + rounds * cells + len(reporting) * len(seeds["report"])
