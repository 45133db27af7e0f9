"""What ends a run, and what it is flagged with."""

import dataclasses

import pytest

from study.train.health import (
    FLAG_WINDOW,
    Diverged,
    HealthMonitor,
    NoSignal,
    StepHealth,
    sampling_divergence,
)

FINE = StepHealth(
    step=1,
    loss=0.0,
    grad_norm=1.0,
    weights_finite=True,
    unequal_groups=2,
    all_correct=False,
    clipped_ratio=0.0,
)


def observe(monitor: HealthMonitor, steps: int, **changes: object) -> None:
    for step in range(1, steps + 1):
        monitor.observe(dataclasses.replace(FINE, step=step, **changes))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"loss": float("nan")}, "loss"),
        ({"loss": float("inf")}, "loss"),
        ({"grad_norm": float("nan")}, "gradient norm"),
        ({"weights_finite": False}, "trainable weights"),
    ],
)
def test_non_finite_numbers_end_a_run_as_diverged(changes, what):
    with pytest.raises(Diverged, match=f"non-finite {what} at step 1") as ended:
        observe(HealthMonitor(5), 1, **changes)
    assert ended.value.status == "diverged"


def test_equal_rewards_end_a_run_after_the_declared_steps():
    monitor = HealthMonitor(3)
    observe(monitor, 2, unequal_groups=0)
    with pytest.raises(NoSignal, match="first 3 steps") as ended:
        monitor.observe(dataclasses.replace(FINE, step=3, unequal_groups=0))
    assert ended.value.status == "no_signal"


def test_one_unequal_group_is_signal_for_good():
    monitor = HealthMonitor(3)
    observe(monitor, 1)
    observe(monitor, 30, unequal_groups=0)


def test_divergence_counts_before_missing_signal():
    with pytest.raises(Diverged):
        observe(HealthMonitor(1), 1, unequal_groups=0, loss=float("nan"))


def test_flags_look_at_the_last_steps_only():
    monitor = HealthMonitor(5)
    observe(monitor, 20)
    observe(monitor, FLAG_WINDOW - 1, all_correct=True, clipped_ratio=1.0)
    assert monitor.flags(scorer_errors=0) == ["truncated"]
    observe(monitor, 1, all_correct=True, clipped_ratio=1.0)
    assert monitor.flags(scorer_errors=0) == ["saturated", "truncated"]
    observe(monitor, FLAG_WINDOW, clipped_ratio=0.5)  # half is not more than half
    assert monitor.flags(scorer_errors=0) == []
    assert monitor.flags(scorer_errors=1) == ["scorer_errors"]


def test_run_without_steps_is_neither_saturated_nor_truncated():
    assert HealthMonitor(5).flags(scorer_errors=0) == []
    assert HealthMonitor(5).flags(scorer_errors=2) == ["scorer_errors"]


def test_only_the_samplers_error_is_a_divergence():
    torch_says = "probability tensor contains either `inf`, `nan` or element < 0"
    assert isinstance(sampling_divergence(RuntimeError(torch_says)), Diverged)
    assert sampling_divergence(RuntimeError("out of memory")) is None
