"""A learning-rate grid that brackets a range: quarter decades if they suffice, else half ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

from analysis.reading.arms import rate_text

FINE, COARSE = 0.25, 0.5
"""Spacings in decades."""
MAX_FINE = 9
"""Rates of a fine grid: three seeds of so many decide a ratio of ten where the cliff is clear."""
MIN_RATES = 5
HALF_PLATEAU = 0.45
"""Decades from LR* to an end of its plateau, where nothing better is known: simulated plateaus are
about 0.9 decade wide, those of the public GRPO sweep 0.9 to 1.2."""
SLACK, ROUNDED = 1e-6, 0.05
"""Cells by which a lattice point may miss its place: of a float; of a rate of two digits."""


@dataclass(frozen=True)
class Grid:
    """Rates on the lattice of 1, 1.8, 3.2, 5.6, 10, or of every second one."""

    rates: tuple[float, ...]
    spacing: float
    """Decades."""

    @property
    def override(self) -> str:
        """``[1e-4,1.8e-4]``, as a command line takes it."""
        return f"[{','.join(rate_text(rate) for rate in self.rates)}]"


def bracket(low: float, high: float, half_plateau: float = HALF_PLATEAU) -> Grid:
    """The grid that brackets the plateau wherever in a range LR* lies.

    It reaches half a plateau, at least one step, beyond the range on each side, so that the ends
    of the plateau fall inside the grid: an optimum at an end is a bound and no estimate.

    Args:
        low: Smallest rate that may be the best.
        high: Largest one.
        half_plateau: Decades from LR* to an end of its plateau.

    Raises:
        ValueError: unless 0 < low <= high.
    """
    if not 0 < low <= high < math.inf:
        raise ValueError(f"0 < low <= high must hold for a range of rates, got {low} and {high}")
    fine = _cells(low, high, half_plateau, FINE)
    if len(fine) <= MAX_FINE:
        return _grid(fine, FINE)
    return _grid(_cells(low, high, half_plateau, COARSE), COARSE)


def _cells(low: float, high: float, half_plateau: float, spacing: float) -> range:
    """Numbers of the lattice points, in steps of ``spacing`` from 1."""
    margin = max(half_plateau, spacing)
    first = math.floor((math.log10(low) - margin) / spacing + SLACK)
    last = math.ceil((math.log10(high) + margin) / spacing - SLACK)
    while last - first + 1 < MIN_RATES:
        first, last = first - 1, last + 1
    return range(first, last + 1)


def _grid(cells: range, spacing: float) -> Grid:
    return Grid(tuple(float(f"{10 ** (k * spacing):.1e}") for k in cells), spacing)


def aligned(first: Grid, second: Grid) -> tuple[Grid, Grid]:
    """Two grids of equal spacing and count, as a comparison demands: the coarser, longer one.

    A shorter grid is continued on both sides in turn, upwards first.
    """
    spacing = max(first.spacing, second.spacing)
    cells = [_as_cells(grid, spacing) for grid in (first, second)]
    count = max(map(len, cells))
    longer = [_continued(c, count) for c in cells]
    return _grid(longer[0], spacing), _grid(longer[1], spacing)


def _as_cells(grid: Grid, spacing: float) -> range:
    """The lattice points from a grid's first to its last rate; those are rounded to two digits."""
    first = math.floor(math.log10(grid.rates[0]) / spacing + ROUNDED)
    last = math.ceil(math.log10(grid.rates[-1]) / spacing - ROUNDED)
    return range(first, last + 1)


def _continued(cells: range, count: int) -> range:
    more = count - len(cells)
    return range(cells[0] - more // 2, cells[-1] + (more + 1) // 2 + 1)
