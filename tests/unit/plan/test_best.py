"""The joint search: first trials, suggestions, finalists, the winner, and growth."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter
from typing import Any

import pytest

from study.config import BestConfig, SeedsConfig
from study.plan import best
from study.plan.budget import bill
from study.plan.experiment import from_json, to_json
from study.plan.growth import merge
from study.sweep.launch.choices import with_choices
from study.sweep.modes import search
from study.sweep.modes.search import grow
from tests.plans import experiment, record_of
from tests.unit.plan.joint import (
    CHOICES,
    HIGH,
    LOW,
    joint,
    run_to_the_end,
    settings,
    trials,
    truth,
)


def test_arms_are_the_combinations_of_the_choices_under_readable_names() -> None:
    plan = joint()
    assert list(best.arms_of(plan)) == [
        f"rank-{rank}_prompts_per_step-{prompts}" for rank in (1, 2, 4) for prompts in (4, 8, 16)
    ]
    assert plan.arms == {}
    assert plan.experiment.factors == list(CHOICES)


def test_the_first_trials_take_the_arms_in_turn_and_spread_over_the_range() -> None:
    plan = best.begin(joint(settings(trials=40)))
    found = trials(plan)
    assert len(found) == 10
    assert len({arm for arm, _ in found}) == 9
    decades = sorted(math.log10(rate / LOW) for _, rate in found)
    assert all(i / 10 * 2 - 0.2 < place < (i + 1) / 10 * 2 + 0.2 for i, place in enumerate(decades))
    assert best.begin(plan) == plan


def test_never_more_than_half_of_the_trials_are_first_ones() -> None:
    assert len(trials(best.begin(joint(settings(trials=8))))) == 4


def test_an_arm_is_in_the_plan_once_it_is_tried() -> None:
    plan = best.begin(joint(settings(trials=8)))
    assert set(plan.arms) == {arm for arm, _ in trials(plan)}
    assert set(plan.arms) | set(plan.reserve) == set(plan.experiment.arms)
    assert not set(plan.arms) & set(plan.reserve)


def test_all_trials_are_asked_for_then_the_finalists_run_on_the_report_seeds() -> None:
    plan, records = run_to_the_end(joint())
    assert len(trials(plan)) == len(set(trials(plan))) == 12
    assert all(LOW <= rate <= HIGH for _, rate in trials(plan))
    report = [(run.arm, run.learning_rate) for run in plan.runs if run.phase == "report"]
    ranked = sorted(trials(plan), key=lambda point: -_truth_at(plan, point))
    assert Counter(report) == {ranked[0]: 2, ranked[1]: 2}
    assert grow(plan, records, {}, room=9) == (plan, [])


def _truth_at(plan: Any, point: tuple[str, float]) -> float:
    return next(truth(r) for r in plan.runs if (r.arm, r.learning_rate) == point)


def test_equal_results_lead_to_equal_plans() -> None:
    assert run_to_the_end(joint())[0] == run_to_the_end(joint())[0]


def test_a_plan_without_an_open_run_goes_on_even_where_nobody_names_room() -> None:
    plan = best.begin(joint())
    records = {run.run_id: record_of(run, truth(run)) for run in plan.runs}
    assert len(trials(grow(plan, records, {})[0])) == len(trials(plan)) + 1
    assert grow(plan, {}, {}) == (plan, [])


def test_room_is_counted_in_runs_of_which_a_trial_has_one_for_each_search_seed() -> None:
    plan = best.begin(joint(seeds=SeedsConfig(search=[0, 1], report=[100])))
    before = len(trials(plan))
    grown, _ = grow(plan, {}, {}, room=4)
    assert len(trials(grown)) == before + 2
    assert {len(trial.run_ids) for trial in best.trials(grown)} == {2}


def test_the_winner_is_the_finalist_of_best_report_mean() -> None:
    plan, records = run_to_the_end(joint())
    first, second = best.finalists(plan, records)
    assert first.arm != second.arm
    for run in plan.runs:
        if run.phase == "report":
            gain = 0.001 * run.seed if run.arm == second.arm else 0.0
            records[run.run_id] = record_of(run, 0.5 + gain)
    found = best.winner(plan, records)
    assert found is not None
    assert (found.arm, found.learning_rate) == second.point
    assert found.mean == pytest.approx(0.5 + 0.1005)
    assert found.search_score == best.mean_score(second, records)
    assert (found.trials, found.finalists) == (12, 2)
    last = next(run.run_id for run in plan.runs if run.phase == "report")
    assert best.winner(plan, {k: r for k, r in records.items() if k != last}) is None


def test_what_cannot_be_trained_or_was_stopped_is_no_finalist_and_holds_nobody_up() -> None:
    plan = best.begin(joint(settings(trials=8)))
    records: dict[str, Any] = {}
    lost = plan.runs[0].run_id

    def score(run: Any) -> Any:
        return None if run.phase == "search" and run.learning_rate > 1e-3 else truth(run)

    for _ in range(40):
        plan, _ = grow(plan, records, {}, 2, given_up=[lost])
        waiting = [r for r in plan.runs if r.run_id not in records and r.run_id != lost]
        records |= {r.run_id: record_of(r, score(r)) for r in waiting[:2]}
        if not waiting:
            break
    chosen = best.finalists(plan, records, [lost])
    assert len(chosen) == 2
    assert all(trial.learning_rate <= 1e-3 and lost not in trial.run_ids for trial in chosen)
    assert best.winner(plan, records, [lost]) is not None
    assert best.winner(plan, records) is None  # retried, the lost run may still win


def test_a_search_without_any_score_ends_without_a_winner() -> None:
    plan, records = run_to_the_end(joint(), score=lambda run: None)
    assert not any(run.phase == "report" for run in plan.runs)
    assert best.winner(plan, records) is None


def test_more_trials_under_the_same_name_continue_the_search() -> None:
    plan, records = run_to_the_end(joint())
    before = trials(plan)
    grown = merge(plan, best.begin(joint(settings(trials=16))))
    assert trials(grown) == before
    finished, _ = run_to_the_end(grown, records=records)
    assert trials(finished)[: len(before)] == before
    assert len(trials(finished)) == 16
    assert [r for r in finished.runs if r in plan.runs] == plan.runs


def test_further_values_of_a_choice_join_and_keep_what_was_found() -> None:
    plan, records = run_to_the_end(joint())
    more = {**CHOICES, "method.rank": [1, 2, 3, 4]}
    grown = merge(plan, joint(settings(choices=more, trials=24)))
    assert set(grown.reserve) >= {f"rank-3_prompts_per_step-{n}" for n in (4, 8, 16)}
    finished, _ = run_to_the_end(grown, records=records)
    assert len(set(trials(finished))) == 24
    assert any(arm.startswith("rank-3") for arm, _ in trials(finished))


@pytest.mark.parametrize(
    "changed",
    [
        {"trials": 11},
        {"finalists": 3},
        {"low": 1e-5},
        {"choices": {"method.rank": [1, 2, 4]}},
        {"choices": {**CHOICES, "method.rank": [1, 2]}},
    ],
)
def test_any_other_change_needs_a_new_name(changed: dict[str, Any]) -> None:
    later = joint() if "choices" in changed else joint(settings(**changed))
    if "choices" in changed:
        later = _with_best(later, settings(**changed))
    with pytest.raises(ValueError, match=r"experiment\.best was .* new name="):
        merge(joint(), later)


def _with_best(plan: Any, found: BestConfig) -> Any:
    return dataclasses.replace(plan, experiment=dataclasses.replace(plan.experiment, best=found))


def test_search_seeds_that_join_run_at_every_trial() -> None:
    plan, _ = run_to_the_end(joint())
    grown = merge(plan, joint(seeds=SeedsConfig(search=[0, 1], report=[100, 101])))
    assert {len(trial.run_ids) for trial in best.trials(grown)} == {2}
    assert trials(grown) == trials(plan)


def test_a_joint_plan_is_read_back_from_json() -> None:
    plan, _ = run_to_the_end(joint())
    assert from_json(json.loads(json.dumps(to_json(plan)))) == plan


def test_the_bill_has_a_line_for_what_is_to_come() -> None:
    plan = best.begin(joint())
    found = bill(plan, 1, None, {})
    assert found.runs == 12 + 2 * 2
    assert found.arms[-1].arm == "later trials, at most"
    assert search.to_come(plan, {}) == 16 - len(plan.runs)
    finished, records = run_to_the_end(joint())
    assert bill(finished, 1, None, {}).runs == len(finished.runs) == 16
    assert search.to_come(finished, records) == 0
    more = dataclasses.replace(finished.experiment.best, trials=14)
    grown = dataclasses.replace(
        finished, experiment=dataclasses.replace(finished.experiment, best=more)
    )
    assert search.to_come(grown, records) == 2 + 4  # two trials, and both finalists may be new


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"trials": 1}, r"experiment\.best\.trials >= 2"),
        ({"finalists": 13}, r"1 <= experiment\.best\.finalists <= trials"),
        ({"low": None}, "low and high are set together"),
        ({"high": 1.5e-4}, "2 low <= high"),
        ({"choices": {"method.rank": [1, 1]}}, "must be distinct values"),
        ({"choices": {"method.rank": []}}, "must be distinct values"),
        ({"choices": {"method.rank": [[1]]}}, "must be numbers, words or true and false"),
    ],
)
def test_settings_that_make_no_search_are_refused(changed: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        settings(**changed)


def test_arms_beside_choices_no_report_seeds_and_a_margin_are_refused() -> None:
    with pytest.raises(ValueError, match=r"leave experiment\.arms and experiment\.factors out"):
        with_choices(experiment(best=settings()))
    with pytest.raises(ValueError, match=r"experiment\.best needs experiment\.seeds\.report"):
        joint(seeds=SeedsConfig(search=[0], report=[]))
    with pytest.raises(ValueError, match=r"margin cannot be combined with experiment\.best"):
        joint(margin=0.02)
