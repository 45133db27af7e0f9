"""Early stopping on hand-worked arms; every accuracy below is chosen so that ranks are obvious."""

from __future__ import annotations

import pytest

from study.config import EarlyStoppingConfig
from tests.unit.sweep.modes.arm_double import RATES, ArmDouble, arm


def test_nothing_stops_in_the_grace_period() -> None:
    assert arm({0: [0.1] * 4, 9: [0.2, 0.9, 0.1, 0.0]}).stopped() == []


def test_each_rung_keeps_the_best_half() -> None:
    # Rungs 10, 20, 40. At 10 the two lowest leave; at 20 one of the two others.
    first = {10: [0.2, 0.6, 0.5, 0.1]}
    assert arm(first).stopped() == [1e-5, 1e-2]
    assert arm(first | {20: [0.9, 0.6, 0.7, 0.9]}).stopped() == [1e-5, 1e-4, 1e-2]
    last = {20: [0.9, 0.6, 0.7, 0.9], 40: [0.9, 0.9, 0.0, 0.9]}
    assert arm(first | last).stopped() == [1e-5, 1e-4, 1e-2]


def test_between_rungs_nothing_new_is_decided() -> None:
    assert arm({10: [0.2, 0.6, 0.5, 0.1], 15: [0.9, 0.0, 0.0, 0.9]}).stopped() == [1e-5, 1e-2]


def test_a_rung_between_evaluations_is_judged_at_the_next_one() -> None:
    assert arm({8: [0.9, 0.1, 0.1, 0.9], 16: [0.2, 0.6, 0.5, 0.1]}).stopped() == [1e-5, 1e-2]


def test_the_reason_names_place_step_and_the_last_that_was_kept() -> None:
    double = arm({10: [0.2, 0.6, 0.5, 0.1]}, seeds=(0, 1))
    assert double.reason(1e-2, 1) == (
        "learning rate 0.01 is number 4 of 4 at step 10: accuracy 0.100, the last kept has 0.500 "
        "(mean over 2 seeds)"
    )


def test_ties_keep_the_lower_rate() -> None:
    assert arm({10: [0.4, 0.4, 0.4, 0.4]}).stopped() == [1e-3, 1e-2]


def test_a_rate_is_judged_by_its_mean_over_seeds_and_stops_as_a_whole() -> None:
    double = ArmDouble()
    for rate, (first, second) in zip(
        RATES, [(0.9, 0.0), (0.5, 0.5), (0.6, 0.6), (0.0, 0.8)], strict=True
    ):
        double.report(rate, 0, {10: first})
        double.report(rate, 1, {10: second})
    assert double.stopped() == [1e-5, 1e-2]  # means 0.45, 0.5, 0.6, 0.4
    assert double.reason(1e-5, 0) and double.reason(1e-5, 1)


def test_accuracies_are_smoothed_over_the_window_and_never_by_the_base() -> None:
    double = ArmDouble(EarlyStoppingConfig(grace_steps=10, keep=0.5, window=2))
    lucky = {0: 0.9, 5: 0.1, 10: 0.6}  # mean of the last two 0.35; with step 0 it would be more
    steady = {0: 0.1, 5: 0.4, 10: 0.4}
    for rate, seen in zip(RATES, [lucky, steady, steady, lucky], strict=True):
        double.report(rate, 0, seen)
    assert double.stopped() == [1e-5, 1e-2]
    single = ArmDouble(EarlyStoppingConfig(grace_steps=10, keep=0.5, window=2))
    for rate, accuracy in zip(RATES, [0.3, 0.4, 0.5, 0.2], strict=True):
        single.report(rate, 0, {0: 1 - accuracy, 10: accuracy})
    assert single.stopped() == [1e-5, 1e-2]


def test_a_rate_that_leads_early_and_collapses_leaves_at_the_next_rung() -> None:
    # 1e-2 is the best at step 10 and has collapsed by step 20; its neighbour is still there.
    early = arm({10: [0.1, 0.3, 0.5, 0.7]})
    assert early.stopped() == [1e-5, 1e-4]
    assert arm({10: [0.1, 0.3, 0.5, 0.7], 20: [0.1, 0.4, 0.6, 0.0]}).stopped() == [1e-5, 1e-4, 1e-2]


def test_above_a_half_two_rates_reach_the_end() -> None:
    settings = EarlyStoppingConfig(grace_steps=10, keep=0.6, window=1)
    double = ArmDouble(settings)
    rates = [10.0**-i for i in range(1, 6)]
    for i, rate in enumerate(rates):  # 5 -> 3 -> 2 -> 2
        double.report(rate, 0, dict.fromkeys((10, 20, 40, 80), 0.1 * i))
    assert double.stopped() == sorted(rates[:3])
    assert [settings.places(n) for n in (5, 3, 2, 1)] == [3, 2, 2, 1]


def test_no_rung_is_decided_before_every_run_under_way_has_reached_it() -> None:
    double = arm({10: [0.2, 0.6, 0.5, 0.1]})
    for rate in RATES:
        double.report(rate, 1, {5: 0.5})
    assert double.stopped() == []
    for rate, accuracy in zip(RATES[1:], [0.6, 0.5, 0.1], strict=True):
        double.report(rate, 1, {10: accuracy})
    assert double.stopped() == []
    double.report(RATES[0], 0, {15: 0.9})  # those who wait go on
    double.report(RATES[0], 1, {10: 0.9})  # means 0.55, 0.6, 0.5, 0.1
    assert double.stopped() == [1e-3, 1e-2]


def test_who_reports_first_changes_nothing() -> None:
    values = {(r, s): 0.1 * i + 0.01 * s for i, r in enumerate(RATES) for s in (0, 1)}
    found = set()
    for order in (list(values), list(reversed(values)), sorted(values, key=lambda c: c[1])):
        double = ArmDouble()
        for cell in values:
            double.start(*cell)
        for cell in order:
            double.report(*cell, {10: values[cell]})
        found.add(tuple(double.stopped()))
    assert found == {(1e-5, 1e-4)}


def test_a_seed_that_still_waits_for_a_worker_neither_counts_nor_holds_up() -> None:
    double = arm({10: [0.2, 0.6, 0.5, 0.1]})
    for rate in RATES[:3]:
        double.report(rate, 1, {5: 0.9})
    double.wait(RATES[3], 1)
    assert double.stopped() == [1e-5, 1e-2]
    assert "over 1 seed)" in (double.reason(1e-5) or "")
    assert double.reason(1e-5, 1)  # already under way on the other seed: it stops too


def test_while_no_seed_is_under_way_at_every_rate_nothing_is_decided() -> None:
    double = ArmDouble()
    for rate, seed in zip(RATES, (0, 0, 1, 1), strict=True):
        double.report(rate, seed, {10: rate})
        double.wait(rate, 1 - seed)
    assert double.stopped() == []


def test_a_stopped_rate_stays_stopped_on_seeds_that_start_later() -> None:
    double = arm({10: [0.2, 0.6, 0.5, 0.1]})
    double.end(1e-5, 0, "pruned", "it was last")
    for rate in RATES:
        double.report(rate, 1, {5: 0.9})
    assert double.reason(1e-5, 1) == "it was last"
    for rate in RATES:  # the new seed would have turned the order round
        double.report(rate, 1, {10: 1.0 if rate in (1e-5, 1e-2) else 0.0})
    assert double.stopped() == [1e-5, 1e-3]  # means of the other three: 0.3, 0.25, 0.55


def test_stopped_rates_take_no_place_from_the_others() -> None:
    double = arm({10: [0.2, 0.6, 0.5, 0.1], 15: [0.2, 0.6, 0.5, 0.1]})
    double.end(1e-5, 0, "pruned")
    double.end(1e-2, 0, "pruned")
    assert double.stopped() == [1e-5, 1e-2]
    double.report(1e-4, 0, {20: 0.6})
    double.report(1e-3, 0, {20: 0.7})
    assert double.stopped() == [1e-5, 1e-4, 1e-2]


def test_a_diverged_seed_counts_as_zero_at_every_rung() -> None:
    double = arm({10: [0.4, 0.4, 0.7, 0.7]}, seeds=(0, 1))
    double.end(1e-3, 1, "diverged")
    double.end(1e-2, 0, "completed")
    assert double.stopped() == [1e-4, 1e-3]  # means 0.4, 0.4, 0.35, 0.7; the tie keeps 1e-5
    early = arm({10: [0.4, 0.3, 0.2, 0.0]})
    early.start(1e-1, 0)
    early.end(1e-1, 0, "diverged")  # before it reported anything
    assert early.stopped() == [1e-2, 1e-1]


def test_a_run_that_completed_counts_with_what_it_had_at_the_rung() -> None:
    double = arm({10: [0.9, 0.6, 0.5, 0.1]})
    double.report(1e-5, 0, {100: 0.0})
    double.end(1e-5, 0, "completed")
    assert double.stopped() == [1e-3, 1e-2]


@pytest.mark.parametrize("status", ["killed", "failed", "oom", "no_signal"])
def test_a_failed_seed_is_left_out_until_its_retry_is_under_way(status: str) -> None:
    double = arm({10: [0.2, 0.6, 0.5, 0.1]}, seeds=(0, 1))
    double.report(1e-1, 0, {10: 0.0})
    double.report(1e-1, 1, {5: 0.5})
    double.end(1e-1, 1, status)
    assert double.stopped() == [1e-2, 1e-1]
    assert "over 1 seed)" in (double.reason(1e-1) or "")
    double.wait(1e-1, 1)
    assert double.stopped() == [1e-2, 1e-1]
    double.start(1e-1, 1)
    assert double.stopped() == []
    double.report(1e-1, 1, {10: 0.9})  # mean 0.45
    assert double.stopped() == [1e-5, 1e-2]


def test_what_a_failed_try_reported_at_the_rung_stands() -> None:
    double = arm({10: [0.2, 0.6, 0.5, 0.1]})
    double.end(1e-4, 0, "killed")
    assert double.stopped() == [1e-5, 1e-2]
    double.wait(1e-4, 0)
    assert double.stopped() == [1e-5, 1e-2]
    double.start(1e-4, 0)
    assert double.stopped() == [1e-5, 1e-2]


def test_only_failures_decide_nothing() -> None:
    double = ArmDouble()
    for rate in RATES:
        double.start(rate, 0)
        double.end(rate, 0, "failed")
    assert double.stopped() == []


def test_one_rate_is_always_left() -> None:
    settings = EarlyStoppingConfig(grace_steps=1, keep=0.01, window=1)
    double = ArmDouble(settings)
    for rate in RATES:
        double.report(rate, 0, dict.fromkeys(range(1, 100), 0.0))
    assert double.stopped() == [1e-4, 1e-3, 1e-2]


def test_report_runs_are_never_stopped() -> None:
    double = ArmDouble(phase="report")
    for rate in RATES:
        double.report(rate, 100, {10: rate})
    assert double.stopped() == []


@pytest.mark.parametrize(
    ("changes", "law"),
    [
        ({"grace_steps": 0}, "grace_steps >= 1"),
        ({"keep": 0.0}, "0 < experiment.early_stopping.keep < 1"),
        ({"keep": 1.0}, "0 < experiment.early_stopping.keep < 1"),
        ({"window": 0}, "window >= 1"),
    ],
)
def test_settings_check_themselves(changes: dict[str, float], law: str) -> None:
    with pytest.raises(ValueError, match=law):
        EarlyStoppingConfig(**({"grace_steps": 10, "keep": 0.5, "window": 1} | changes))


def test_places_are_rounded_up_and_free_of_float_errors() -> None:
    places = EarlyStoppingConfig(grace_steps=1, keep=0.28, window=1).places
    assert [places(n) for n in (1, 4, 25, 26)] == [1, 2, 7, 8]  # 0.28 x 25 = 7.000000000000001
