"""Times of a pack, from moments that a fake clock gives."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from study.bench.spread import Spread, spread
from study.bench.watch import Moment, Stopwatch
from study.plan.flops import Sequences
from study.train.engine import Evaluation, Outcome


def stopwatch(lanes: int, seconds: Iterable[float]) -> Stopwatch:
    """A watch whose readings are ``seconds`` of wall time and half as many busy ones."""
    readings = iter(seconds)

    def clock() -> Moment:
        wall_s = next(readings)
        return Moment(wall_s, wall_s / 2)

    return Stopwatch(lanes, clock)


def evaluation(step: int) -> Evaluation:
    return Evaluation(
        step=step,
        prompt_ids=["p"],
        completions=["1"],
        correct=[True],
        tokens=[2],
        greedy_correct=[True],
        mean_reward=1.0,
        work=Sequences(),
    )


def outcome(run_id: str, status: str = "completed") -> Outcome:
    return Outcome(
        run_id=run_id,
        status=status,
        status_reason="because",
        score_final=None,
        score_best=None,
        score_base=None,
        score_greedy=None,
        steps_done=3,
        episodes=1,
        train_tokens=1,
        generated_tokens=1,
        train_flops=1.0,
        rollout_flops=1.0,
        wall_time_s=1.0,
        peak_memory_bytes=1,
        dtypes={},
    )


def metrics(equal: float, length: float) -> dict[str, float]:
    return {"train/frac_reward_zero_std": equal, "train/completion_length": length}


def test_a_pack_of_two_by_hand() -> None:
    # Steps end, for both lanes, at 11, 14 and 16; base and last evaluation at 9 and 18.
    watch = stopwatch(2, [9, 9, 10, 11, 13, 14, 15, 16, 17, 18])
    for run in "ab":
        watch.evaluation(run, evaluation(0))
    for step in (1, 2, 3):
        watch.log("a", step, metrics(equal=0.5, length=9.0 + step))
        watch.log("b", step, metrics(equal=0.0, length=9.0 + step))
    for run in "ab":
        watch.evaluation(run, evaluation(3))
        watch.ended(outcome(run))

    sample = watch.sample(warm_up=1)
    assert sample.step_s == pytest.approx((3 + 2) / 2 / 2)  # median of two laps, two run-steps each
    assert sample.step_busy_s == pytest.approx(sample.step_s / 2)
    assert sample.evaluation_s == pytest.approx(2 / 2)
    assert sample.unequal_share == pytest.approx(0.75)
    assert sample.completion_tokens == pytest.approx(11.5)  # of steps 2 and 3


def test_lanes_that_do_not_march_in_step_are_refused() -> None:
    watch = stopwatch(2, [1, 2, 3])
    watch.log("a", 1, {})
    with pytest.raises(RuntimeError, match="run a ended step 2 before others ended 1"):
        watch.log("a", 2, {})


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        ([outcome("a", "diverged")], "ended as diverged: because"),
        ([], "0 of 1 runs have an outcome"),
        ([outcome("a")], "leave nothing to time after 1"),
    ],
)
def test_runs_that_did_not_complete_give_no_figure(outcomes: list[Outcome], said: str) -> None:
    watch = stopwatch(1, [1, 2])
    watch.log("a", 1, metrics(0.0, 1.0))
    for one in outcomes:
        watch.ended(one)
    with pytest.raises(RuntimeError, match=said):
        watch.sample(warm_up=1)


def test_a_failed_run_ends_the_measurement() -> None:
    with pytest.raises(ZeroDivisionError):
        stopwatch(1, []).failed("a", ZeroDivisionError())


def test_spread_by_hand() -> None:
    assert spread([3.0, 1.0, 2.0]) == Spread(median=2.0, low=1.0, high=3.0)
    assert spread([4.0, 1.0]) == Spread(median=2.5, low=1.0, high=4.0)
