"""The unimodal fit and the two ends of a plateau."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from analysis.estimates.edges import find_edges, unimodal_fit

SCORES = st.lists(st.floats(0, 1, allow_nan=False, width=32), min_size=1, max_size=9)


def test_edges_by_hand() -> None:
    # top (0.9 + 0.9) / 2 = 0.9, rise 0.8 over the base 0.1, threshold 0.9 - 0.2 * 0.8 = 0.74.
    # Ramp: from 0.9 at 2 down to 0.5 at 1, so 2 - 0.16 / 0.4 = 1.6; it drops 0.4 / 0.8 rises.
    # Cliff: from 0.9 at 4 down to 0.1 at 5, so 4 + 0.16 / 0.8 = 4.2; it drops 0.8 / 0.8 rises.
    scores = np.array([0.2, 0.5, 0.9, 0.9, 0.9, 0.1])
    edges = find_edges(np.arange(6.0), scores, base=0.1, fraction=0.2)
    assert edges.threshold == pytest.approx(0.74)
    assert (edges.ramp, edges.cliff) == pytest.approx((1.6, 4.2))
    assert (edges.ramp_drop, edges.cliff_drop) == pytest.approx((0.5, 1.0))
    assert (edges.centre, edges.width) == pytest.approx((2.9, 2.6))
    assert edges.ramp_found and edges.cliff_found


def test_a_curve_that_still_rises_has_no_cliff() -> None:
    edges = find_edges(np.arange(4.0), np.array([0.1, 0.4, 0.7, 0.9]), base=0.1, fraction=0.2)
    assert edges.ramp_found and not edges.cliff_found
    assert (edges.cliff, edges.cliff_drop) == (3.0, 0.0)


def test_a_curve_below_the_base_has_no_edges() -> None:
    edges = find_edges(np.arange(4.0), np.array([0.0, 0.05, 0.05, 0.0]), base=0.2, fraction=0.2)
    assert not edges.ramp_found and not edges.cliff_found


def test_top_is_the_mean_of_the_two_best_fitted_scores() -> None:
    edges = find_edges(np.arange(5.0), np.array([0.1, 0.6, 0.9, 0.7, 0.1]), base=0.1, fraction=0.2)
    assert edges.top == pytest.approx(0.8)


def test_a_recovery_behind_the_cliff_is_averaged_into_it() -> None:
    # Modes at 1: the fall 0.0, 0.6 behind it violates the order and becomes 0.3, 0.3.
    assert unimodal_fit(np.array([0.2, 0.9, 0.0, 0.6])) == pytest.approx([0.2, 0.9, 0.3, 0.3])


@given(SCORES)
def test_the_fit_is_scipys_isotonic_one_at_the_best_mode(scores: list[float]) -> None:
    y = np.array(scores)
    fits = []
    for mode in range(len(y)):
        rise, fall = isotonic_regression(y[: mode + 1]).x, y[:0]
        if mode + 1 < len(y):
            fall = isotonic_regression(y[mode + 1 :], increasing=False).x
        fits.append(np.concatenate([rise, fall]))
    errors = [float(((fit - y) ** 2).sum()) for fit in fits]
    found = unimodal_fit(y)
    assert ((found - y) ** 2).sum() == pytest.approx(min(errors), abs=1e-12)
    if sorted(errors)[0] < sorted([*errors, np.inf])[1] - 1e-9:
        assert found == pytest.approx(fits[int(np.argmin(errors))])


def test_curves_are_fitted_together_as_alone() -> None:
    rows = np.random.default_rng(0).normal(size=(30, 9))
    together = unimodal_fit(rows)
    assert together.shape == rows.shape
    assert np.allclose(together, [unimodal_fit(row) for row in rows], atol=1e-15)


@given(SCORES)
def test_fit_is_unimodal_and_keeps_a_unimodal_curve(scores: list[float]) -> None:
    fit = unimodal_fit(np.array(scores))
    mode = int(fit.argmax())
    assert np.all(np.diff(fit[: mode + 1]) >= -1e-12)
    assert np.all(np.diff(fit[mode:]) <= 1e-12)
    assert unimodal_fit(fit) == pytest.approx(fit)


@given(SCORES, st.randoms(use_true_random=False))
def test_no_other_unimodal_curve_fits_better(scores: list[float], random: object) -> None:
    y = np.array(scores)
    rng = np.random.default_rng(random.randrange(2**32))  # type: ignore[attr-defined]
    best = float(((unimodal_fit(y) - y) ** 2).sum())
    for mode in range(len(y)):
        other = y + rng.normal(0, 0.2, len(y))
        other = np.concatenate([np.sort(other[:mode]), np.sort(other[mode:])[::-1]])
        assert best <= float(((other - y) ** 2).sum()) + 1e-12
