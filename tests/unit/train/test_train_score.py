"""Scores of a run, worked by hand."""

import pytest

from study.plan.flops import Sequences
from study.train.engine import Evaluation
from study.train.score import Scores, run_scores


def evaluation(step: int, correct: int, greedy: int) -> Evaluation:
    """Of four prompts, so many are correct."""
    return Evaluation(
        step=step,
        prompt_ids=["a", "b", "c", "d"],
        completions=["", "", "", ""],
        correct=[i < correct for i in range(4)],
        tokens=[1, 1, 1, 1],
        greedy_correct=[i < greedy for i in range(4)],
        mean_reward=correct / 4,
        work=Sequences(),
    )


CURVE = [evaluation(0, 1, 2), evaluation(5, 4, 4), evaluation(10, 2, 3), evaluation(15, 3, 4)]


def test_completed_run_scores_the_mean_of_its_last_evaluations():
    # Sampled: (2/4 + 3/4) / 2 = 0.625; greedy: (3/4 + 4/4) / 2 = 0.875.
    scores = run_scores("completed", CURVE, window=2)
    assert scores == Scores(final=0.625, best=1.0, base=0.25, greedy=0.875)


def test_base_is_never_in_the_window_or_the_best():
    scores = run_scores("completed", [evaluation(0, 4, 4), evaluation(5, 1, 1)], window=1)
    assert (scores.final, scores.best, scores.base) == (0.25, 0.25, 1.0)


def test_diverged_run_scores_the_worst_value_and_keeps_its_best():
    scores = run_scores("diverged", CURVE[:2], window=3)
    assert scores == Scores(final=0.0, best=1.0, base=0.25, greedy=0.0)


def test_run_that_diverged_before_any_evaluation_scores_the_worst_value():
    assert run_scores("diverged", CURVE[:1], window=3) == Scores(0.0, 0.0, 0.25, 0.0)


def test_run_without_signal_has_no_score_but_the_base():
    assert run_scores("no_signal", CURVE[:2], window=1) == Scores(None, None, 0.25, None)


def test_pruned_run_is_censored_and_keeps_its_best():
    assert run_scores("pruned", CURVE[:3], window=3) == Scores(None, 1.0, 0.25, None)


def test_window_larger_than_the_evaluations_is_an_internal_error():
    with pytest.raises(AssertionError, match="9 evaluations"):
        run_scores("completed", CURVE, window=9)
