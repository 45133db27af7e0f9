"""What rewards do to a run under the engine `trl`, and how its runs end."""

from __future__ import annotations

import math

import pytest
from train_runs import ListSink, run_config, train

from study.tasks.base import Problem, Score, Task
from study.tasks.loading import load_task
from study.train.trl import session

pytestmark = pytest.mark.integration

BOTH = pytest.mark.parametrize("method", ["full", "lora"])


class ScoredBy:
    """The arithmetic task with another scorer."""

    def __init__(self, task: Task, score):
        self.name, self._task, self._score = "patched", task, score

    def problems(self, role, count) -> list[Problem]:
        return self._task.problems(role, count)

    def score(self, problem: Problem, completion: str) -> Score:
        return self._score(problem, completion)


@pytest.fixture
def scored_by(monkeypatch):
    """Returns a function that replaces the scorer of every run of the test."""

    def patch(score) -> None:
        monkeypatch.setattr(session, "load_task", lambda config: ScoredBy(load_task(config), score))

    return patch


@pytest.mark.parametrize(("method", "rate"), [("full", 1e-3), ("lora", 1e-2)])
def test_training_raises_what_is_rewarded(method, rate, tmp_path, scored_by):
    """An even last digit is a habit that any base model can pick up in a few steps."""

    def score(problem, completion):
        even = completion.endswith(("0", "2", "4", "6", "8"))
        return Score(float(even), even)

    scored_by(score)
    config = run_config(method, learning_rate=rate, steps=8, eval_every=8, eval_prompts=128)
    outcome, _ = train(config, tmp_path)
    assert outcome.score_final > outcome.score_base + 0.2


@pytest.mark.parametrize(("method", "rate"), [("full", 1e3), ("lora", 10.0)])
def test_far_too_large_a_rate_gives_a_defined_outcome(method, rate, tmp_path):
    outcome, sink = train(run_config(method, learning_rate=rate, steps=6), tmp_path)
    assert outcome.status in ("completed", "diverged")
    assert outcome.score_final == 0.0
    assert outcome.score_base == sink.evaluations[0].accuracy > 0


@BOTH
def test_weights_that_overflow_are_a_diverged_run(method, tmp_path):
    config = run_config(method, learning_rate=1e38, steps=6, save="last")
    outcome, sink = train(config, tmp_path)
    assert outcome.status == "diverged"
    assert "not finite" in outcome.status_reason or "non-finite" in outcome.status_reason
    assert (outcome.score_final, outcome.score_best, outcome.score_greedy) == (0.0, 0.0, 0.0)
    assert outcome.steps_done < 6
    assert all(math.isfinite(v) for _, metrics in sink.logs for v in metrics.values())
    assert not list(tmp_path.iterdir())


@BOTH
def test_constant_reward_ends_as_no_signal(method, tmp_path, scored_by):
    scored_by(lambda problem, completion: Score(1.0, True))
    config = run_config(method, steps=6, no_signal_steps=2, eval_every=6)
    outcome, sink = train(config, tmp_path)
    assert (outcome.status, outcome.steps_done) == ("no_signal", 2)
    assert outcome.score_final is outcome.score_best is outcome.score_greedy is None
    assert outcome.score_base == 1.0
    assert "saturated" in outcome.flags
    assert sink.curve("train/frac_reward_zero_std") == [1.0, 1.0]


@BOTH
def test_early_stopping_ends_a_run_as_pruned(method, tmp_path):
    sink = ListSink(stops={"run": 2})
    config = run_config(method, steps=6, eval_every=1, save="last")
    outcome, stream = train(config, tmp_path, sink)
    assert (outcome.status, outcome.status_reason, outcome.steps_done) == ("pruned", "told so", 2)
    assert outcome.score_final is outcome.score_greedy is None
    assert outcome.score_best == max(e.accuracy for e in stream.evaluations[1:])
    assert outcome.score_base == stream.evaluations[0].accuracy
    assert sink.asked == [("run", 0), ("run", 1), ("run", 2)]
    assert not list(tmp_path.iterdir())


def test_early_stopping_is_not_asked_at_the_end(tmp_path):
    sink = ListSink(stops={"run": 3})
    outcome, _ = train(run_config("full", eval_every=1), tmp_path, sink)
    assert outcome.status == "completed"
    assert sink.asked == [("run", 0), ("run", 1), ("run", 2)]


def test_short_run_without_signal_is_not_completed(tmp_path, scored_by):
    scored_by(lambda problem, completion: Score(0.0, False))
    outcome, _ = train(run_config("full", no_signal_steps=20), tmp_path)
    assert (outcome.status, outcome.steps_done) == ("no_signal", 3)


def test_scorer_that_always_raises_fails_the_attempt(tmp_path, scored_by):
    def score(problem, completion):
        raise ZeroDivisionError

    scored_by(score)
    with pytest.raises(RuntimeError, match=r"scorer of task patched failed on 32 of 32"):
        train(run_config("full"), tmp_path)


def test_scorer_that_raises_now_and_then_raises_a_flag(tmp_path, scored_by):
    def score(problem, completion):
        if completion.endswith("3"):
            raise ZeroDivisionError
        return Score(float(completion.endswith("1")), completion.endswith("1"))

    scored_by(score)
    outcome, _ = train(run_config("full"), tmp_path)
    assert "scorer_errors" in outcome.flags
