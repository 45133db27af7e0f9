"""Straight lines through estimates that each have a standard error of their own."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from analysis.estimates.curve import FloatArray
from analysis.estimates.stats import Contrast

MIN_POINTS = 3
"""Two points lie on a line whatever the truth: no residual, no interval."""


def weighted_slope(x: ArrayLike, y: ArrayLike, standard_errors: ArrayLike) -> Contrast:
    """Slope of the weighted least squares line, for ratios over widths or training lengths.

    Weights are 1 / SE^2. The slope's standard error is the one that the SEs imply, sqrt(1 / sum
    w (x - mean)^2), or that times the residuals' scale where the points scatter more than the SEs
    say (Birge 1932): points that lie on a line by luck never narrow the interval. Student's t has
    n - 2 degrees of freedom.

    Args:
        x: ``[points]`` regressor, for example log10 of the hidden size.
        y: ``[points]`` estimates, for example log10 of the ratio.
        standard_errors: ``[points]`` of ``y``, positive.

    Returns:
        The slope in units of y per unit of x; ``n`` is the number of points.

    Raises:
        ValueError: for fewer than three points, one that is not finite, an SE that is not positive,
            or values of x that are all equal.
    """
    xs, ys, errors = (np.asarray(values, dtype=np.float64) for values in (x, y, standard_errors))
    _check(xs, ys, errors)
    weights = errors**-2.0
    centred = xs - np.average(xs, weights=weights)
    information = float((weights * centred**2).sum())
    slope = float((weights * centred * ys).sum()) / information
    residuals = ys - np.average(ys, weights=weights) - slope * centred
    df = len(xs) - 2
    scale = math.sqrt(float((weights * residuals**2).sum()) / df)
    return Contrast(slope, max(1.0, scale) / math.sqrt(information), df, len(xs))


def _check(x: FloatArray, y: FloatArray, errors: FloatArray) -> None:
    if not x.shape == y.shape == errors.shape or x.ndim != 1:
        raise ValueError(
            f"a line needs as many x, y and standard errors, got {x.shape}, {y.shape} and "
            f"{errors.shape}"
        )
    if len(x) < MIN_POINTS:
        raise ValueError(
            f"a slope with an interval needs at least {MIN_POINTS} points, got {len(x)}"
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all() and np.isfinite(errors).all()):
        raise ValueError("x, y and standard errors of a line must be finite numbers")
    if not (errors > 0).all():
        raise ValueError(f"standard errors of a line must be positive, got {errors.min():g}")
    if np.ptp(x) == 0:
        raise ValueError(f"a slope needs different values of x, got {len(x)} times {x[0]:g}")
