"""The simulator draws what it says it draws."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.simulate.draws import ArmTruth, Design, simulate_curve, simulate_pair, simulate_scores


def test_the_mean_of_many_runs_is_the_expected_score() -> None:
    truth = ArmTruth()
    x = np.linspace(truth.ramp - 0.5, truth.ramp + truth.span + 0.4, 12)
    rng = np.random.default_rng(0)
    design = Design(seeds=20_000, noise=0.02)
    scores = simulate_scores(truth, x, design, rng)
    # The run SD is at most 0.45 (half collapsed): 4 standard errors are 0.013.
    assert scores.mean(axis=0) == pytest.approx(truth.expected(x), abs=0.013)


def test_the_plateau_is_cut_where_the_expected_score_says() -> None:
    truth = ArmTruth()
    low, high = truth.plateau(0.2)
    x = np.arange(-7, -2, 1e-4)
    top = truth.expected(x).max()
    threshold = top - 0.2 * (top - truth.base)
    assert truth.expected([low, high]) == pytest.approx([threshold, threshold], abs=0.01)
    assert truth.shifted(1.0).plateau(0.2) == pytest.approx((low + 1, high + 1), abs=2e-3)


def test_expected_score_starts_at_the_base_and_ends_in_collapse() -> None:
    truth = ArmTruth()
    assert truth.expected(truth.ramp - 2) == pytest.approx(truth.base, abs=1e-3)
    assert truth.expected(truth.ramp + truth.span + 1) == pytest.approx(0, abs=1e-3)


def test_seed_noise_has_the_stated_size_and_common_share() -> None:
    truth = ArmTruth(span=3.0)
    x = np.array([truth.ramp + 0.6, truth.ramp + 0.6])  # far from collapse
    design = Design(seeds=4000, noise=0.03, eval_prompts=10**8)
    scores = simulate_scores(truth, x, design, np.random.default_rng(0))
    assert scores.std(axis=0) == pytest.approx([0.03, 0.03], rel=0.05)
    assert np.corrcoef(scores.T)[0, 1] == pytest.approx(0.3, abs=0.05)


def test_grid_and_seeds_follow_the_design() -> None:
    curve = simulate_curve("x", ArmTruth(), Design(seeds=4, points=7), np.random.default_rng(0))
    assert curve.scores.shape == (4, 7)
    assert np.diff(curve.positions) == pytest.approx(np.full(6, 0.25))
    assert ((curve.scores >= 0) & (curve.scores <= 1)).all()


def test_the_same_generator_state_gives_the_same_sweep() -> None:
    truth = ArmTruth()
    one, two = (simulate_pair(truth, truth, Design(), np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(one[0].scores, two[0].scores)
    assert one[1].learning_rates == two[1].learning_rates
