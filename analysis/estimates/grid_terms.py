"""What more seeds cannot resolve: SDs, in decades, of an edge's place between two grid points.

An edge is uniform in its cell, SD h / sqrt(12), as far as the fit does not see it move. The
constants were fixed by simulation (``python -m analysis.simulate.calibrate``; the tests repeat a
part). An edge knows nothing of the grid but the cell that brackets it, so on an irregular grid each
edge has its own cell.
"""

from __future__ import annotations

import math

from analysis.estimates.parabola import Parabola
from analysis.estimates.plateau import STEEP_DROP, Plateau

CENTRE = 0.11
CENTRE_RATIO = 0.15
MIDPOINT = 1 / 48
"""Variance, in squared cells, that an edge uniform in its cell gives the midpoint of two."""
HIDDEN_CLIFF = 0.04
"""The same for a collapse inside one cell, the bias of its interpolation included."""
HIDDEN_CLIFF_ALONE = 0.055
"""The same in a ratio to an arm whose cliff is not hidden: here the bias decides."""
RAMP = 0.11
RAMP_COARSE = 0.15
CLIFF = 0.25
UNRESOLVED = 0.35
CLIFF_HIDDEN = 0.4
RAMP_RATIO = 0.08
RAMP_RATIO_COARSE = 0.15
CLIFF_RATIO = 0.25
CLIFF_RATIO_UNRESOLVED = 0.41
FINE_SPACING = 1 / 3 + 1e-3
"""Largest cell of the fine ramp terms, in decades; the slack is for rates of six digits."""
LENGTH_SLOPE = 0.3
"""Of the slope of a log ratio on log10 of the training length: h over the range of lengths."""
VERTEX = 0.5
VERTEX_RATIO = 0.4
"""Of a vertex, per decade: its error is about k h^2 / 8 on a curve of skewness k = f''' / f'' in
units of 1 / decade, 1 to 5 in public sweeps of supervised fine-tuning. In a ratio the skewness
that two arms share cancels."""


def edge_terms(plateau: Plateau) -> tuple[float, float]:
    """Grid terms of an arm's own ramp and cliff.

    They are larger than an edge's share in a ratio, where the bias of the interpolation cancels:
    inside a cell with a sharp fall the place is uniform, and the crossing sits near its inner end.
    """
    ramp_gap, cliff_gap = plateau.mean.ramp_gap, plateau.mean.cliff_gap
    ramp = RAMP if ramp_gap <= FINE_SPACING else RAMP_COARSE
    cliff = UNRESOLVED if plateau.cliff_unresolved else CLIFF
    return (
        ramp_gap * (UNRESOLVED if plateau.ramp_unresolved else ramp),
        cliff_gap * (CLIFF_HIDDEN if plateau.cliff_hidden else cliff),
    )


def centre_term(plateau: Plateau) -> float:
    """Grid term of an arm's LR*: the midpoint of two edges has half of each."""
    hidden = HIDDEN_CLIFF if plateau.cliff_hidden else MIDPOINT * plateau.cliff_unresolved
    ramp = MIDPOINT * plateau.ramp_unresolved * plateau.mean.ramp_gap**2
    return max(CENTRE * _cell(plateau), math.sqrt(ramp + hidden * plateau.mean.cliff_gap**2))


def centre_ratio_term(a: Plateau, b: Plateau, *, assume_steep: bool = False) -> float:
    """Grid term of the ratio of two arms' LR*.

    Args:
        a: One arm.
        b: The other.
        assume_steep: Count every steep edge as unresolved: so few seeds cannot tell.
    """
    squares = 0.0
    for arm, other in ((a, b), (b, a)):
        edges = arm.mean
        ramp = arm.ramp_unresolved or (assume_steep and edges.ramp_drop > STEEP_DROP)
        cliff = arm.cliff_unresolved or (assume_steep and edges.cliff_drop > STEEP_DROP)
        alone = arm.cliff_hidden and not other.cliff_hidden
        squares += MIDPOINT * ramp * edges.ramp_gap**2
        squares += (HIDDEN_CLIFF_ALONE if alone else MIDPOINT * cliff) * edges.cliff_gap**2
    cell = math.sqrt((_cell(a) ** 2 + _cell(b) ** 2) / 2)
    return max(CENTRE_RATIO * cell, math.sqrt(squares))


def _cell(plateau: Plateau) -> float:
    """Root mean square of the two cells that bracket the edges."""
    return math.hypot(plateau.mean.ramp_gap, plateau.mean.cliff_gap) / math.sqrt(2)


def flank_ratio_terms(a: Plateau, b: Plateau) -> tuple[float, float]:
    """Grid terms of the ramp and of the cliff ratio."""
    ramp_gap = max(a.mean.ramp_gap, b.mean.ramp_gap)
    ramp = RAMP_RATIO if ramp_gap <= FINE_SPACING else RAMP_RATIO_COARSE
    sharp = (a.cliff_unresolved and b.cliff_unresolved) or (a.cliff_hidden != b.cliff_hidden)
    cliff = CLIFF_RATIO_UNRESOLVED if sharp else CLIFF_RATIO
    return ramp_gap * ramp, max(a.mean.cliff_gap, b.mean.cliff_gap) * cliff


def vertex_term(parabola: Parabola) -> float:
    """Grid term of an arm's vertex."""
    return VERTEX * parabola.gap**2


def vertex_ratio_term(a: Parabola, b: Parabola) -> float:
    """Grid term of the ratio of two arms' vertices."""
    return VERTEX_RATIO * max(a.gap, b.gap) ** 2
