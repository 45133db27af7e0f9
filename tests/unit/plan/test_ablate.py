from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

from study.config import AblateConfig, SeedsConfig
from study.plan.ablate import grow, runs_in_all, steps, to_come
from study.plan.budget import bill
from study.plan.experiment import Plan, PlannedRun, from_json, to_json
from study.plan.growth import merge
from study.plan.lattice import Lattice
from tests.unit.plan.ablations import (
    FACTORS,
    Truth,
    lattice,
    linear,
    planned,
    record,
    run_to_the_end,
    scored,
)

SINGLES = ["default.rank", "default.steps", "default.prompts_per_step"]


def path_of(truth: Truth, **changes: Any) -> list[str]:
    plan, records, selections = run_to_the_end(planned(**changes), scored(truth))
    return [step.factor for step in steps(plan, records, selections)]


def test_the_path_through_a_linear_function_takes_the_largest_effect_first() -> None:
    for order in itertools.permutations(FACTORS):
        plan, records, selections = run_to_the_end(
            planned(factors=list(order)), scored(linear)
        )  # whatever order the file has
        found = steps(plan, records, selections)
        assert [step.factor for step in found] == FACTORS
        assert [step.gain for step in found] == pytest.approx([10, 1, 0.1])
        assert [step.score for step in found] == pytest.approx([10, 11, 11.1])
    assert found[0].rivals == pytest.approx({"objective.prompts_per_step": 0.1, FACTORS[1]: 1})
    assert found[2].rivals == {}


def test_factors_that_help_only_together_are_found_by_the_path_and_not_alone() -> None:
    def exclusive(a: int, b: int, c: int) -> float:
        """Changing a or b alone harms, both together help: XOR."""
        return -10.0 * (a ^ b) + 5.0 * (a & b) + c

    plan, records, selections = run_to_the_end(planned(), scored(exclusive))
    found = steps(plan, records, selections)
    assert [step.factor for step in found] == [FACTORS[2], FACTORS[0], FACTORS[1]]
    assert [step.gain for step in found] == [1, -10, 15]
    alone = AblateConfig(source="default", target="tuned", path=False)
    plan, records, selections = run_to_the_end(planned(ablate=alone), scored(exclusive))
    found = steps(plan, records, selections)
    assert {step.factor: step.gain for step in found} == dict(
        zip(FACTORS, [-10, -10, 1], strict=True)
    )
    assert sum(step.gain for step in found) == -19  # the target gains 6
    assert selections["tuned"].mean_score - selections["default"].mean_score == 6


def test_ties_go_to_the_first_factor_of_the_file() -> None:
    equal = [*FACTORS]
    assert path_of(lambda a, b, c: a + b + c) == equal
    assert path_of(lambda a, b, c: a + b + c, factors=equal[::-1]) == equal[::-1]


def test_a_path_runs_only_the_arms_it_looks_at() -> None:
    plan = planned()
    assert list(plan.arms) == ["default", "tuned", *SINGLES]
    assert list(plan.reserve) == [
        "default.rank.steps",
        "default.rank.prompts_per_step",
        "default.steps.prompts_per_step",
    ]
    plan, _, selections = run_to_the_end(plan, scored(linear))
    assert list(plan.reserve) == ["default.steps.prompts_per_step"]
    assert list(selections) == ["default", "tuned", "default.rank", "default.rank.steps"]
    reported = {run.arm for run in plan.runs if run.phase == "report"}
    assert reported == set(selections)
    assert {run.seed for run in plan.runs if run.phase == "report"} == {100, 101, 102}


def test_runs_to_come_are_known_from_the_start() -> None:
    plan = planned(rates=(1e-4, 1e-3))
    in_all = sum(runs_in_all(plan))
    assert runs_in_all(plan) == (7 * 2 * 2, 4 * 3)  # 7 of 8 arms are searched, 4 report
    assert to_come(plan, {}) == in_all - len(plan.runs)
    done, records, _ = run_to_the_end(plan, scored(linear))
    assert len(done.runs) == in_all
    assert to_come(done, records) == 0
    k = 6
    wide = Lattice(source="s", target="t", factors=tuple("abcdef"), path=True)
    assert len(wide.changed) == 2**k
    assert (wide.searched_in_all, wide.reported_in_all) == (1 + 21, 7)


def test_a_bill_has_a_line_for_the_rounds_to_come() -> None:
    plan = planned(rates=(1e-4, 1e-3))
    found = bill(plan, 1, None, dict.fromkeys(plan.arms, 10.0))
    assert found.runs == sum(runs_in_all(plan))
    later = found.arms[-1]
    assert (later.arm, later.search_runs, later.report_runs) == ("later rounds, at most", 8, 6)
    assert found.seconds == 10.0 * found.runs
    by_arm = {line.arm: line for line in found.arms}
    assert by_arm["default"].report_runs == by_arm["tuned"].report_runs == 3
    assert by_arm["default.rank"].report_runs == 0
    done, _, _ = run_to_the_end(plan, scored(linear))
    found = bill(done, 1, None, {})
    assert found.runs == len(done.runs)
    assert all(line.arm in done.arms for line in found.arms)
    alone = planned(ablate=AblateConfig(source="default", target="tuned", path=False))
    assert [line.report_runs for line in bill(alone, 1, None, {}).arms] == [3] * 5


def test_growing_twice_adds_nothing() -> None:
    plan, records, selections = run_to_the_end(planned(), scored(linear))
    assert grow(plan, records, selections) == (plan, [])
    assert len({run.run_id for run in plan.runs}) == len(plan.runs)


def test_a_round_waits_for_every_candidate() -> None:
    plan = planned()
    early = [run for run in plan.runs if run.arm != SINGLES[2]]
    records = {run.run_id: record(plan, run, 1.0) for run in early}
    grown, fresh = grow(plan, records, {})
    assert [choice.arm for choice in fresh] == ["default", "tuned"]
    assert {run.arm for run in grown.runs[len(plan.runs) :]} == {"default", "tuned"}


def test_what_the_path_took_stays_whatever_later_seeds_say() -> None:
    plan, records, selections = run_to_the_end(planned(), scored(linear))
    seeds = SeedsConfig(search=[0, 1, 2, 3, 4, 5, 6], report=[100, 101, 102])
    grown = merge(plan, planned(seeds=seeds))
    assert grown.looks == 2

    def turned(plan: Plan, run: PlannedRun) -> float | None:
        """The new seeds would have begun with c."""
        return 100.0 if run.arm == SINGLES[2] else 0.0

    again, records, later = run_to_the_end(grown, turned, records, selections)
    assert later == selections
    assert list(again.reserve) == ["default.steps.prompts_per_step"]
    assert [step.factor for step in steps(again, records, later)] == FACTORS


def test_more_seeds_and_rates_join_only_the_arms_that_have_begun() -> None:
    plan, _, _ = run_to_the_end(planned(), scored(linear))
    more = planned(rates=(1e-3, 1e-2), seeds=SeedsConfig(search=[0, 1, 2], report=[100, 101, 102]))
    grown = merge(plan, more)
    assert grown.looks == 2
    assert list(grown.reserve) == list(plan.reserve)
    added = grown.runs[len(plan.runs) :]
    assert {run.arm for run in added} == set(plan.arms)
    assert len(added) == 7 * (2 * 3 - 2)
    assert grown.reserve["default.steps.prompts_per_step"].learning_rates == [1e-3, 1e-2]


def test_a_candidate_without_a_score_is_not_taken_and_a_path_without_any_ends() -> None:
    def silent(*arms: str) -> Any:
        def score(plan: Plan, run: PlannedRun) -> float | None:
            return None if run.arm in arms else scored(linear)(plan, run)

        return score

    plan, records, selections = run_to_the_end(planned(), silent(SINGLES[0]))
    assert [step.factor for step in steps(plan, records, selections)] == [
        FACTORS[1],
        FACTORS[0],
        FACTORS[2],
    ]
    plan, records, selections = run_to_the_end(planned(), silent(*SINGLES))
    assert steps(plan, records, selections) == []
    assert list(selections) == ["default", "tuned"]
    assert to_come(plan, records) == 0


def test_each_arm_is_scored_at_the_best_rate_of_its_grid() -> None:
    def at_its_rate(plan: Plan, run: PlannedRun) -> float | None:
        best = 1e-3 if run.arm.endswith("steps") else 1e-4
        score = scored(linear)(plan, run)
        assert score is not None
        return score if run.learning_rate == best else -100.0

    plan, _, selections = run_to_the_end(planned(rates=(1e-4, 1e-3)), at_its_rate)
    rates = {arm: choice.learning_rate for arm, choice in selections.items()}
    assert rates == {
        "default": 1e-4,
        "tuned": 1e-4,
        "default.rank": 1e-4,
        "default.rank.steps": 1e-3,
    }
    for run in plan.runs:
        assert run.phase == "search" or run.learning_rate == rates[run.arm]


def test_noise_changes_the_order_of_small_effects_and_not_the_sum() -> None:
    generator = random.Random(0)
    noisy = {(n, seed): generator.gauss(0, 0.5) for n in range(8) for seed in range(103)}
    plan = planned()
    names = list(lattice(plan).changed)

    def noise(run: PlannedRun) -> float:
        return noisy[names.index(run.arm), run.seed]

    plan, records, selections = run_to_the_end(plan, scored(linear, noise))
    found = steps(plan, records, selections)
    assert found[0].factor == FACTORS[0]
    total = selections["tuned"].mean_score - selections["default"].mean_score
    assert sum(step.gain for step in found) == pytest.approx(total)


def test_an_ablation_survives_plan_json() -> None:
    plan = planned()
    assert from_json(json.loads(json.dumps(to_json(plan)))) == plan
    older = to_json(planned())
    del older["reserve"]
    assert from_json(older).reserve == {}
