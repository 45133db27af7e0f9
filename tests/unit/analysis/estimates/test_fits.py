"""Weighted slopes against statsmodels, scipy and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats as scipy_stats

from analysis.estimates.fits import weighted_slope

X = np.log10([64, 128, 256, 512, 1024])
Y = np.array([0.98, 1.20, 1.02, 1.31, 1.24])
SE = np.array([0.05, 0.03, 0.04, 0.06, 0.05])


def test_slope_and_interval_are_those_of_statsmodels() -> None:
    # These points scatter more than their SEs say, so the scale is estimated, as statsmodels does.
    fitted = sm.WLS(Y, sm.add_constant(X), weights=SE**-2).fit()
    assert fitted.scale > 1
    found = weighted_slope(X, Y, SE)
    assert (found.point, found.standard_error) == pytest.approx((fitted.params[1], fitted.bse[1]))
    assert found.estimate().interval == pytest.approx(tuple(fitted.conf_int(alpha=0.1)[1]))
    assert found.n == 5


def test_equal_weights_are_ordinary_least_squares() -> None:
    fitted = scipy_stats.linregress(X, Y)
    found = weighted_slope(X, Y, np.full(5, 0.01))
    assert (found.point, found.standard_error) == pytest.approx((fitted.slope, fitted.stderr))


def test_points_on_a_line_keep_the_error_that_they_came_with() -> None:
    # Var(slope) = s^2 / sum (x - mean)^2 = 0.1^2 / 2; statsmodels would say 0.
    found = weighted_slope([0, 1, 2], [1, 2, 3], [0.1, 0.1, 0.1])
    assert (found.point, found.standard_error, found.df) == pytest.approx(
        (1.0, 0.1 / math.sqrt(2), 1)
    )


@pytest.mark.parametrize(
    ("x", "y", "se", "law"),
    [
        ([0, 1], [1, 2], [0.1, 0.1], "at least 3 points, got 2"),
        ([0, 1, 2], [1, 2], [0.1, 0.1], "as many"),
        ([0, 1, 2], [1, 2, math.nan], [0.1] * 3, "finite"),
        ([0, 1, 2], [1, 2, 3], [0.1, 0.0, 0.1], "positive, got 0"),
        ([1, 1, 1], [1, 2, 3], [0.1] * 3, "different values of x"),
    ],
)
def test_what_cannot_be_fitted_is_refused(
    x: list[float], y: list[float], se: list[float], law: str
) -> None:
    with pytest.raises(ValueError, match=law):
        weighted_slope(x, y, se)


def test_the_interval_covers() -> None:
    """With SEs that are right, the interval is conservative: the scale never helps.

    Monte-Carlo SE at 1000 replications: 0.9 points.
    """
    rng = np.random.default_rng(0)
    hits = []
    for _ in range(1000):
        found = weighted_slope(X, 1 + 0.3 * X + SE * rng.standard_normal(5), SE).estimate()
        low, high = found.interval or (0, 0)
        hits.append(low <= 0.3 <= high)
    assert np.mean(hits) > 0.89
