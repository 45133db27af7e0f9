"""What a reader must know before the numbers: unfinished, imported, other alphas, shared runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analysis.claims.comparison import unfinished
from analysis.comparing import text
from analysis.comparing.rows import ArmRow
from analysis.reading.arms import arms
from analysis.reading.sweep import Sweep


def notes(a: Sweep, b: Sweep, rows: Sequence[ArmRow], shared: int) -> Iterator[str]:
    """Every caveat as a sentence.

    Args:
        a: The first experiment.
        b: The second.
        rows: The matched arms.
        shared: Runs that are in both.
    """
    for sweep, side in ((a, "A"), (b, "B")):
        finished = f"{len(sweep.runs)} of {sweep.expected} runs"
        if unfinished(sweep) is not None:
            yield f"{side} is unfinished ({finished}): its numbers may change."
        if sweep.imported:
            holes = "" if sweep.complete else f", with {finished}"
            yield f"{side} is imported{holes}: what its source does not state is not compared."
    yield from _one_sided(a, b)
    if shared:
        yield (
            f"{shared} runs are in both experiments: intervals between A and B take them for "
            "independent, which they are not."
        )
    for row in rows:
        first, second = row.pair.a.alpha, row.pair.b.alpha
        if first is not None and second is not None and first != second:
            yield (
                f"{row.pair.label} has alpha {first:g} in A and {second:g} in B: compare "
                "alpha x learning rate, not learning rates."
            )
    yield from map(_shape, (row for row in rows if row.flanks.shape_differs))


def _shape(row: ArmRow) -> str:
    ramp, cliff = (text.quantity(q, text.ratio) for q in (row.flanks.ramp, row.flanks.cliff))
    return (
        f"The curves of {row.pair.label} are not shifted copies of each other: B / A is {ramp} by "
        f"their ramps and {cliff} by their cliffs; the middle decides by convention."
    )


def _one_sided(a: Sweep, b: Sweep) -> Iterator[str]:
    """What exists on one side only."""
    has_full = [any(arm.is_full for arm in arms(sweep)) for sweep in (a, b)]
    if has_full[0] != has_full[1]:
        side = "B" if has_full[0] else "A"
        yield f"{side} has no FullFT arm: ratios and gaps to it exist on one side only."
    evaluated = [bool(sweep.runs["score_base"].notna().any()) for sweep in (a, b)]
    if evaluated[0] != evaluated[1]:
        yield (
            f"{'B' if evaluated[0] else 'A'} never evaluated the untrained model: LR* is there the "
            "vertex of a parabola and not the middle of a plateau; a cliff displaces the vertex."
        )
