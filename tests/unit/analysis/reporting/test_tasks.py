"""Several tasks: pooled only where there are three of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from analysis.reading.sweep import Sweep
from analysis.reporting.tasks import over_tasks
from tests.unit.analysis.simulated_sweeps import curve, experiment

RATES = (1e-4, 1e-3, 1e-2)


def sweep(report: Mapping[str, Sequence[float]]) -> Sweep:
    """Arms called ``full-a`` or ``lora-r8-a``, the task last."""
    curves = {name: curve([[0.1, 0.5, 0.2]] * 3, RATES, arm=name) for name in report}
    configs = {name: {"task": {"name": name[-1]}} for name in report}
    return experiment(curves, report, configs=configs)


def test_three_tasks_are_pooled_by_method() -> None:
    full = {f"full-{task}": [0.1, 0.2, 0.3] for task in "abc"}
    lora = {f"lora-r8-{task}": [0.4, 0.5, 0.6] for task in "ab"} | {"lora-r8-c": [0.0, 0.0, 0.2]}

    first, second = over_tasks(sweep(full | lora))
    assert (first.name, first.tasks, first.improvement) == ("full-a, full-b, full-c", 3, None)
    # The middle half of nine runs, two cut off at each end: 0.1 0.2 0.2 0.2 0.3.
    assert first.mean.point == pytest.approx(0.2) and first.mean.n == 3
    # Of nine pairs a task: all won on a and b; on c 0.2 beats one and ties with one, so 1.5.
    assert second.improvement is not None
    assert second.improvement.point == pytest.approx((1 + 1 + 1.5 / 9) / 3)
    low, high = second.improvement.interval or (0, 0)
    assert low <= second.improvement.point <= high


def test_two_tasks_are_not_pooled() -> None:
    arms = {f"{method}-{task}": [0.1, 0.2, 0.3] for method in ("full", "lora-r8") for task in "ab"}

    assert over_tasks(sweep(arms)) == []


def test_a_task_without_report_scores_is_not_passed_over() -> None:
    assert over_tasks(sweep({"full-a": [0.1], "full-b": [0.2], "full-c": []})) == []
