"""Interaction of the method with the batch size: does one method lose more as batches grow?

Scores are report-seed scores at a learning rate tuned per cell. Each coefficient is a linear
combination of cell means, so its variance is the combination of the cells' variances and its
degrees of freedom are Welch-Satterthwaite's over all cells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analysis.estimates.curve import FloatArray
from analysis.estimates.stats import Contrast

MIN_BATCHES = 3
MIN_BATCHES_CURVED = 4
"""A parabola through three points leaves nothing to judge it by."""
MIN_CELL_SEEDS = 2

Cells = Mapping[float, ArrayLike]
"""``[seeds]`` scores by batch size."""


@dataclass(frozen=True)
class Interaction:
    """How the difference of two methods changes with the batch size."""

    slope: Contrast
    """Change of (arm - baseline) per doubling of the batch."""
    curvature: Contrast | None
    """Coefficient of the squared log2 batch; None with fewer than four batches."""
    differences: dict[float, Contrast]
    """arm - baseline by batch size."""

    @property
    def is_curved(self) -> bool:
        """Whether the curvature's interval excludes 0: report differences, not the slope."""
        interval = self.curvature.estimate().interval if self.curvature else None
        return interval is not None and not interval[0] <= 0 <= interval[1]


def batch_interaction(arm: Cells, baseline: Cells) -> Interaction:
    """Slope of the score difference on log2 of the batch size.

    With b the centred log2 batch and D_b the difference of cell means, slope = sum(b D_b) /
    sum(b^2), of variance sum b^2 (s2 / n + s2' / n') / (sum b^2)^2.

    Args:
        arm: Scores of LoRA by batch size.
        baseline: Scores of full fine-tuning at the same batch sizes.

    Raises:
        ValueError: if the batch sizes differ, are fewer than three or not positive, or a cell has
            fewer than two scores or one that is not finite.
    """
    batches = _batches(arm, baseline)
    cells = [_sample(method[b]) for method in (arm, baseline) for b in batches]
    n = len(batches)
    x = np.log2(batches)
    b = x - x.mean()
    slope = b / (b**2).sum()
    curvature = _curvature_weights(b) if n >= MIN_BATCHES_CURVED else None
    return Interaction(
        slope=combination(cells, np.concatenate([slope, -slope])),
        curvature=None
        if curvature is None
        else combination(cells, np.concatenate([curvature, -curvature])),
        differences={
            batch: combination([cells[i], cells[n + i]], np.array([1.0, -1.0]))
            for i, batch in enumerate(batches)
        },
    )


def slope_difference(first: Interaction, second: Interaction) -> Contrast:
    """Slope of one rank minus that of another, in score per doubling.

    "No rank interaction" is a test of equality of this, never a failure to find one. The two share
    the baseline's cells, whose errors cancel in the difference; counting them twice makes the
    interval conservative.
    """
    a, b = first.slope, second.slope
    error = math.hypot(a.standard_error, b.standard_error)
    return Contrast(a.point - b.point, error, min(a.df, b.df), min(a.n, b.n))


def combination(cells: Sequence[FloatArray], weights: FloatArray) -> Contrast:
    """Weighted sum of cell means with Welch-Satterthwaite degrees of freedom.

    Args:
        cells: ``[seeds]`` scores each, at least two.
        weights: ``[cells]``
    """
    variances = weights**2 * [cell.var(ddof=1) / len(cell) for cell in cells]
    total = float(variances.sum())
    dfs = np.array([len(cell) - 1 for cell in cells])
    point = float(weights @ [cell.mean() for cell in cells])
    fewest = min(len(cell) for cell in cells)
    df = total**2 / float((variances**2 / dfs).sum()) if total > 0 else fewest - 1
    return Contrast(point, math.sqrt(total), df, fewest)


def _curvature_weights(b: FloatArray) -> FloatArray:
    """Weights that give the coefficient of b^2 in the least squares parabola."""
    design = np.stack([np.ones_like(b), b, b**2], axis=1)
    return np.asarray(np.linalg.pinv(design)[2], dtype=np.float64)


def _batches(arm: Cells, baseline: Cells) -> list[float]:
    if set(arm) != set(baseline):
        raise ValueError(
            f"both methods need the same batch sizes, got {sorted(arm)} and {sorted(baseline)}"
        )
    if len(arm) < MIN_BATCHES:
        raise ValueError(f"a slope needs at least {MIN_BATCHES} batch sizes, got {len(arm)}")
    if min(arm) <= 0:
        raise ValueError(f"batch sizes must be positive, got {min(arm)}")
    return sorted(arm)


def _sample(values: ArrayLike) -> FloatArray:
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or len(sample) < MIN_CELL_SEEDS or not np.isfinite(sample).all():
        raise ValueError(
            f"a cell must be a list of at least {MIN_CELL_SEEDS} finite scores, got {values!r}"
        )
    return sample
