"""Tests of equality: two one-sided tests (TOST; Schuirmann 1987) and Holm's correction (1979)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scipy.optimize import brentq
from scipy.special import ndtr, stdtr

from analysis.estimates.stats import Contrast


def equivalence_p(contrast: Contrast, margin: float) -> float:
    """p value of the two one-sided tests that the difference lies within ``+- margin``.

    Below 0.05 exactly when the 90 % interval lies inside the margin.

    Raises:
        ValueError: if the margin is not positive.
    """
    _require_margin(margin)
    return max(_p_below(contrast, margin), _p_above(contrast, -margin))


def beyond_margin_p(contrast: Contrast, margin: float) -> float:
    """p value of the test that the difference lies outside ``+- margin``.

    Below 0.05 exactly when the 90 % interval lies wholly outside. The smaller one-sided p needs
    no doubling: at a true difference of one margin, the other side never rejects.

    Raises:
        ValueError: if the margin is not positive.
    """
    _require_margin(margin)
    return min(_p_above(contrast, margin), _p_below(contrast, -margin))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p values, in the order given."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, running = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = running
    return adjusted


def _require_margin(margin: float) -> None:
    if not margin > 0:
        raise ValueError(f"an equality margin must be positive, got {margin}")


def _p_below(contrast: Contrast, bound: float) -> float:
    """One-sided p value for "the difference is below ``bound``"."""
    distance = bound - contrast.point
    if not contrast.has_spread:
        return 0.0 if distance > 0 else 1.0
    if contrast.grid_term > 0:
        tail = _tail(contrast, abs(distance))
        return tail if distance > 0 else 1 - tail
    return float(stdtr(contrast.df, -distance / contrast.standard_error))


def _tail(contrast: Contrast, distance: float) -> float:
    """One-sided level at which an interval with a grid term reaches just as far as ``distance``."""
    if not contrast.standard_error > 0:
        return float(ndtr(-distance / contrast.grid_term))
    largest = 1 - 1e-12
    if contrast.half_width(largest) <= distance:
        return (1 - largest) / 2
    level = brentq(lambda confidence: contrast.half_width(confidence) - distance, 0, largest)
    return (1 - float(level)) / 2


def _p_above(contrast: Contrast, bound: float) -> float:
    """One-sided p value for "the difference is above ``bound``"."""
    return _p_below(replace(contrast, point=-contrast.point), -bound)
