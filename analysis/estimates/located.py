"""What is said of a best learning rate, and of the ratio of two."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.estimates.stats import Estimate

ASSUMED_SPREAD = 0.11
"""SD over seeds of an arm's LR* in decades, as simulated for a soft cliff; a sharp one has 0.07."""


@dataclass(frozen=True)
class Optimum:
    """LR* of one arm with the plateau it is the midpoint of.

    With ``edge_low`` or ``edge_high`` that side's edge is the grid's end, and LR* and width are
    bounds without an interval; with ``flat`` there is no LR* (NaN) and the edges are the range of
    the grid. With ``parabola`` LR* is a vertex, and there is no plateau: ramp, cliff, width and
    threshold are NaN.
    """

    arm: str
    lr: Estimate
    """LR*, as a learning rate."""
    ramp: Estimate
    """Where the plateau begins, as a learning rate."""
    cliff: Estimate
    """Where the plateau ends, as a learning rate."""
    width: Estimate
    """Width of the plateau in decades."""
    top: float
    threshold: float
    """Score that bounds the plateau."""
    fit: tuple[float, ...]
    """Unimodal fit of the mean curve at the grid."""
    flags: tuple[str, ...]


@dataclass(frozen=True)
class LrRatio:
    """Learning rate of an arm over that of a baseline arm; NaN where there is no ratio."""

    arm: str
    baseline: str
    centre: Estimate
    """Ratio of the two LR*: the one that decides."""
    ramp: Estimate
    """Ratio of the ramp edges: the most precise one."""
    cliff: Estimate
    """Ratio of the cliff edges."""
    width_difference: Estimate
    """Width of the arm's plateau minus the baseline's, in decades."""
    flags: tuple[str, ...]
    """Flags of either arm, and ``shape_differs`` if ramp and cliff disagree."""


@dataclass(frozen=True)
class AssumedEstimate(Estimate):
    """An estimate whose interval rests on a spread that somebody assumed: no evidence."""

    tau: float = ASSUMED_SPREAD
    """The assumed SD over seeds of one arm's LR*, in decades."""

    @property
    def assumption(self) -> str:
        """What the interval rests on, for the reader."""
        return (
            f"assumed, not measured: LR* of an arm scatters over seeds by {self.tau:g} decades (SD)"
        )
