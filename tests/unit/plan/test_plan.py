from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest

from study.config import EarlyStoppingConfig, SeedsConfig
from study.plan.arms import extended
from study.plan.budget import bill
from study.plan.description import check_rank, resolve_targets, trainable_params
from study.plan.experiment import (
    Plan,
    from_json,
    plan_search,
    planned_run,
    to_json,
)
from study.plan.flops import forward_flops_per_token, train_flops_per_token
from study.plan.growth import merge
from study.plan.identity import arm_identity, short_hash
from study.plan.select import grow, select
from study.records.record import Record
from tests.engine_double import true_score
from tests.plans import (
    FULL_RATES,
    LORA_RATES,
    arm,
    description,
    experiment,
    full,
    lora,
    objective,
    run_config,
    toy_plan,
)


def record_of(
    plan: Plan, run_id: str, score: float | None = None, status: str = "completed"
) -> Record:
    run = plan.run(run_id)
    known: dict[str, Any] = {f.name: None for f in dataclasses.fields(Record)}
    config = dataclasses.replace(
        plan.arms[run.arm].config,
        objective=objective(learning_rate=run.learning_rate),
        seed=run.seed,
    )
    final = true_score(config) if score is None else score
    return Record(
        **{
            **known,
            "run_id": run_id,
            "arm": run.arm,
            "phase": run.phase,
            "learning_rate": run.learning_rate,
            "seed": run.seed,
            "status": status,
            "score_final": None if status == "no_signal" else final,
            "wall_time_s": 10.0,
        }
    )


def all_records(plan: Plan, phase: str = "search") -> dict[str, Record]:
    return {r.run_id: record_of(plan, r.run_id) for r in plan.runs if r.phase == phase}


def test_plan_holds_every_cell_once_and_arms_keep_pace() -> None:
    plan = toy_plan()
    cells = {(r.arm, r.learning_rate, r.seed) for r in plan.runs}
    expected = {
        (name, rate, seed)
        for name, rates in (("full", FULL_RATES), ("lora-r1", LORA_RATES))
        for rate in rates
        for seed in (0, 1)
    }
    assert cells == expected
    assert len({r.run_id for r in plan.runs}) == len(plan.runs) == 12
    assert [r.seed for r in plan.runs] == [0] * 6 + [1] * 6
    assert [r.arm for r in plan.runs[:2]] == ["full", "lora-r1"]


def test_run_id_follows_what_changes_the_result_and_nothing_else() -> None:
    base = arm("a", run_config(lora(8)), LORA_RATES)
    known = planned_run(base, "search", 1e-3, 0).run_id

    def run_id(**changes: Any) -> str:
        changed = dataclasses.replace(base.config, **changes)
        return planned_run(dataclasses.replace(base, config=changed), "search", 1e-3, 0).run_id

    assert run_id(save="best") == known
    assert run_id(model=dataclasses.replace(base.config.model, name="other")) == known
    assert run_id(objective=objective(temperature=0.9)) != known
    assert run_id(task=dataclasses.replace(base.config.task, max_completion_length=9)) != known
    assert run_id(method=lora(8, alpha_rule="sqrt")) != known
    assert planned_run(base, "report", 1e-3, 0).run_id != known  # other prompts
    assert planned_run(base, "search", 1e-3, 1).run_id != known
    renamed = dataclasses.replace(base, name="b")
    assert planned_run(renamed, "search", 1e-3, 0).run_id == known
    other_weights = dataclasses.replace(base, model=description(model_revision="xyz"))
    assert planned_run(other_weights, "search", 1e-3, 0).run_id != known


def test_floats_that_agree_to_six_digits_are_one_run() -> None:
    assert short_hash({"x": 0.1 + 0.2}) == short_hash({"x": 0.3})
    assert short_hash({"x": 3.00001}) != short_hash({"x": 3.0})
    assert short_hash({"a": 1, "b": 2}) == short_hash({"b": 2, "a": 1})


def test_plan_survives_json() -> None:
    plan = toy_plan()
    assert from_json(json.loads(json.dumps(to_json(plan)))) == plan


def test_foreign_plan_version_is_named() -> None:
    with pytest.raises(ValueError, match="schema_version 99"):
        from_json({"schema_version": 99})


def test_arms_may_differ_only_in_factors() -> None:
    arms = {
        "full": arm("full", run_config(full()), FULL_RATES),
        "lora": arm("lora", run_config(lora(), objective=objective(steps=4)), LORA_RATES),
    }
    with pytest.raises(ValueError, match=r"objective\.steps differs \(full: 3, lora: 4\)"):
        plan_search(experiment(), arms, "trl")
    plan_search(experiment(factors=["method", "objective.steps"]), arms, "trl")


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        ([2e-4, 2e-3], "same number of points in every arm, got 3 for full and 2 for lora-r1"),
        ([2e-4, 2e-3, 6e-3], "same spacing in every arm, got gaps of 1.00 decades"),
    ],
)
def test_unequal_grids_are_refused(rates: list[float], message: str) -> None:
    arms = {
        "full": arm("full", run_config(full()), FULL_RATES),
        "lora-r1": arm("lora-r1", run_config(lora()), rates),
    }
    with pytest.raises(ValueError, match=message):
        plan_search(experiment(), arms, "trl")


def test_one_three_ten_grids_count_as_equally_spaced() -> None:
    arms = {
        "full": arm("full", run_config(full()), [1e-4, 3e-4, 1e-3]),
        "lora-r1": arm("lora-r1", run_config(lora()), [3e-4, 1e-3, 3e-3]),
    }
    assert len(plan_search(experiment(), arms, "trl").runs) == 12


def test_selection_waits_for_every_cell_then_takes_the_best_mean() -> None:
    plan = toy_plan()
    records = all_records(plan)
    last = plan.runs[-1].run_id
    assert select(plan, "lora-r1", {k: r for k, r in records.items() if k != last}) is None
    choice = select(plan, "lora-r1", records)
    assert choice is not None
    assert (choice.learning_rate, choice.edge, choice.n_seeds) == (2e-3, None, 2)
    # Seeds 0 and 1 score 0.7 and 0.7 - 1e-4.
    assert choice.mean_score == pytest.approx(0.69995)


def test_selection_breaks_ties_downwards_and_names_the_edge() -> None:
    plan = toy_plan()
    flat = {k: dataclasses.replace(r, score_final=0.5) for k, r in all_records(plan).items()}
    choice = select(plan, "full", flat)
    assert choice is not None
    assert (choice.learning_rate, choice.edge) == (2e-5, "low")


def test_runs_without_a_score_do_not_compete() -> None:
    plan = toy_plan()
    records = all_records(plan)
    for run in plan.cells("full", "search"):
        if run.learning_rate == 2e-4:
            records[run.run_id] = record_of(plan, run.run_id, status="no_signal")
    choice = select(plan, "full", records)
    assert choice is not None
    assert choice.learning_rate != 2e-4


def test_a_rate_that_was_stopped_on_any_seed_does_not_compete() -> None:
    plan = toy_plan()
    records = all_records(plan)
    best = [run for run in plan.cells("full", "search") if run.learning_rate == 2e-4]
    records[best[0].run_id] = record_of(plan, best[0].run_id, status="pruned")
    choice = select(plan, "full", records)
    assert choice is not None
    assert (choice.learning_rate, choice.n_seeds) == (2e-5, 2)
    assert set(choice.means) == {"2e-05", "0.002"}
    for run in plan.cells("full", "search"):
        records[run.run_id] = record_of(plan, run.run_id, status="pruned")
    assert select(plan, "full", records) is None


def test_report_runs_join_once_and_only_for_decided_arms() -> None:
    plan = toy_plan()
    records = {k: r for k, r in all_records(plan).items() if r.arm == "full"}
    grown, fresh = grow(plan, records, {})
    assert [s.arm for s in fresh] == ["full"]
    added = grown.runs[12:]
    assert [(r.arm, r.phase, r.learning_rate, r.seed) for r in added] == [
        ("full", "report", 2e-4, 100),
        ("full", "report", 2e-4, 101),
    ]
    again, none = grow(grown, records, {s.arm: s for s in fresh})
    assert (again, none) == (grown, [])


def test_a_written_selection_is_never_changed() -> None:
    plan = toy_plan()
    records = all_records(plan)
    _, fresh = grow(plan, records, {})
    fixed = {s.arm: dataclasses.replace(s, learning_rate=FULL_RATES[0]) for s in fresh}
    grown, none = grow(plan, records, fixed)
    assert none == []
    assert {r.learning_rate for r in grown.cells("full", "report")} == {FULL_RATES[0]}


def test_an_edge_extends_every_arm_before_anyone_reports() -> None:
    plan = toy_plan(extend=1)
    records = all_records(plan)
    for run in plan.cells("full", "search"):
        score = 0.9 if run.learning_rate == FULL_RATES[-1] else 0.1
        records[run.run_id] = record_of(plan, run.run_id, score)
    grown, fresh = grow(plan, records, {})
    assert fresh == []
    assert grown.extended == ["high"]
    assert grown.arms["full"].learning_rates == pytest.approx([*FULL_RATES, 2e-2])
    assert grown.arms["lora-r1"].learning_rates == pytest.approx([*LORA_RATES, 0.2])
    assert len(grown.runs) == 12 + 4
    for run in grown.runs[12:]:
        records[run.run_id] = record_of(grown, run.run_id, 0.95 if run.arm == "full" else 0.0)
    final, chosen = grow(grown, records, {})
    assert {s.arm: s.edge for s in chosen} == {"full": "high", "lora-r1": None}
    assert final.extended == ["high"]


def test_experiments_grow_but_never_change() -> None:
    old = toy_plan()
    more = toy_plan(seeds=SeedsConfig(search=[0, 1, 2], report=[100, 101]))
    merged = merge(old, more)
    assert merged.runs[:12] == old.runs
    assert {r.seed for r in merged.runs[12:]} == {2}
    assert len(merged.runs) == 18
    fewer = toy_plan(seeds=SeedsConfig(search=[0], report=[100]))
    assert merge(old, fewer).runs == old.runs
    with pytest.raises(ValueError, match=r"criterion was 'c' in toy and is 'other' now.*new name"):
        merge(old, toy_plan(criterion="other"))
    longer = run_config(full(), objective=objective(steps=5))
    changed = {**old.arms, "full": arm("full", longer, FULL_RATES)}
    with pytest.raises(ValueError, match=r"arm full: objective\.steps was 3"):
        merge(old, dataclasses.replace(old, arms=changed))


STOPPING = EarlyStoppingConfig(grace_steps=1, keep=0.5, window=1)


def test_early_stopping_is_part_of_what_an_experiment_means() -> None:
    old = toy_plan(early_stopping=STOPPING)
    assert merge(old, toy_plan(early_stopping=STOPPING)).runs == old.runs
    milder = dataclasses.replace(STOPPING, keep=0.6)
    for other in (None, milder):
        with pytest.raises(ValueError, match=r"experiment\.early_stopping was .*new name"):
            merge(old, toy_plan(early_stopping=other))
    with pytest.raises(ValueError, match=r"experiment\.early_stopping was None"):
        merge(toy_plan(), old)


def test_early_stopping_survives_plan_json_and_may_lack_in_it() -> None:
    plan = toy_plan(early_stopping=STOPPING)
    assert from_json(json.loads(json.dumps(to_json(plan)))) == plan
    data = json.loads(json.dumps(to_json(toy_plan())))
    del data["experiment"]["early_stopping"]  # as written before there was any
    assert from_json(data) == toy_plan()


@pytest.mark.parametrize(
    ("changes", "law"),
    [
        (
            {"grace_steps": 3},
            r"grace_steps < objective\.steps must hold, arm 'full' has 1, 3 and 3",
        ),
        ({"keep": 0.7}, r"keep=0\.7 keeps all 3 learning rates of arm 'full'"),
    ],
)
def test_early_stopping_that_would_stop_nothing_is_refused(
    changes: dict[str, Any], law: str
) -> None:
    with pytest.raises(ValueError, match=law):
        toy_plan(early_stopping=dataclasses.replace(STOPPING, **changes))


def test_a_margin_is_not_read_with_early_stopping() -> None:
    with pytest.raises(ValueError, match=r"experiment\.margin is not read with"):
        experiment(margin=0.05, early_stopping=STOPPING)


def test_growing_keeps_seeds_of_the_phases_apart() -> None:
    with pytest.raises(ValueError, match=r"disjoint, both hold \[0, 100\]"):
        merge(toy_plan(), toy_plan(seeds=SeedsConfig(search=[100], report=[0])))


def test_targets_by_preset_name_and_regex() -> None:
    model = description()
    assert len(resolve_targets(lora(), model)) == 14
    assert len(resolve_targets(lora(target_modules=["all"]), model)) == 14
    assert len(resolve_targets(lora(target_modules="attention"), model)) == 8
    assert len(resolve_targets(lora(target_modules="mlp"), model)) == 6
    assert len(resolve_targets(lora(target_modules=["q_proj", "v_proj"]), model)) == 4
    assert resolve_targets(lora(target_modules=r".*layers\.1.*up_proj"), model) == [
        "model.layers.1.mlp.up_proj"
    ]
    assert resolve_targets(full(), model) == []


def test_every_requested_name_must_match() -> None:
    with pytest.raises(ValueError, match=r"'v_porj' matches no linear layer.*'v_proj'\?"):
        resolve_targets(lora(target_modules=["q_proj", "v_porj"]), description())
    with pytest.raises(ValueError, match="no valid regex"):
        resolve_targets(lora(target_modules="q_proj("), description())


def test_rank_laws() -> None:
    model = description()
    targets = resolve_targets(lora(), model)
    check_rank(lora(8), targets, model)
    with pytest.raises(ValueError, match="rank <= 8 must hold"):
        check_rank(lora(9), targets, model)
    shapes = {**model.linear_modules, "model.layers.0.self_attn.k_proj": (2, 8)}
    uneven = description(linear_modules=shapes)
    with pytest.warns(UserWarning, match=r"rank=8 exceeds the smaller side \(2\)"):
        check_rank(lora(8), targets, uneven)


def test_trainable_parameters_by_hand() -> None:
    model = description()
    # Per block: 4 attention layers of 8+8, gate and up of 16+8, down of 8+16 = 64 + 72 = 136.
    assert trainable_params(lora(3), resolve_targets(lora(), model), model) == 2 * 3 * 136
    assert trainable_params(full(), [], model) == 1360


def test_flops_by_hand() -> None:
    model = description()
    # 2 blocks x 640 + head 80 = 1,360 multiply-adds per token.
    assert forward_flops_per_token(model) == 2 * 1360
    assert train_flops_per_token(full(), [], model) == 6 * 1360
    targets = resolve_targets(lora(), model)
    assert train_flops_per_token(lora(1), targets, model) == 4 * 1360 + 6 * 272


def test_lora_flops_approach_the_closed_form_for_square_matrices() -> None:
    width, rank = 4096, 32
    square = description(linear_modules={"a.q_proj": (width, width)}, hidden_size=1, vocab_size=1)
    ratio = train_flops_per_token(lora(rank), ["a.q_proj"], square) / train_flops_per_token(
        full(), [], square
    )
    # Schulman et al. 2025: 2/3 + 2 r / N = 0.6823 for N = 4096, r = 32.
    assert ratio == pytest.approx(2 / 3 + 2 * rank / width, rel=1e-6)


def test_bill_counts_both_phases_and_knows_time_only_when_measured() -> None:
    plan = toy_plan()
    unknown = bill(plan, workers=2, price_per_hour=3.6, measured={})
    assert (unknown.runs, unknown.seconds, unknown.price) == (16, None, None)
    known = bill(plan, workers=2, price_per_hour=3.6, measured={"full": 10.0, "lora-r1": 20.0})
    assert known.seconds == (8 * 10 + 8 * 20) / 2
    assert known.price == pytest.approx(3.6 * 240 / 3600)


def test_alpha_rules_by_hand() -> None:
    assert lora(4).alpha == 32
    assert lora(4, alpha_rule="2r").alpha == 8
    assert lora(4, alpha_rule="sqrt").alpha == 64
    assert lora(2, alpha_rule="sqrt").alpha == pytest.approx(32 * math.sqrt(2))


def test_arm_identity_has_no_rate_and_no_seed() -> None:
    a, b = run_config(objective=objective(learning_rate=1e-4)), run_config(seed=7)
    assert arm_identity(a, description(), []) == arm_identity(b, description(), [])


def test_arms_that_are_the_same_configuration_are_refused() -> None:
    arms = {
        "a": arm("a", run_config(lora()), LORA_RATES),
        "b": arm("b", run_config(lora(target_modules=["all"])), LORA_RATES),
    }
    with pytest.raises(ValueError, match="a and b are the same configuration"):
        plan_search(experiment(arms={"a": [], "b": []}), arms, "trl")


def test_an_extended_experiment_can_still_gain_an_arm() -> None:
    old = toy_plan(extend=1)
    arms = {name: extended(a, ["high"], 1) for name, a in old.arms.items()}
    grown = dataclasses.replace(old, arms=arms, extended=["high"])
    fresh = {**old.arms, "lora-r2": arm("lora-r2", run_config(lora(2)), LORA_RATES)}
    names = {"full": [], "lora-r1": [], "lora-r2": []}
    merged = merge(grown, plan_search(experiment(extend=1, arms=names), fresh, "trl"))
    assert len(merged.arms["lora-r2"].learning_rates) == 4
    assert len(merged.cells("lora-r2", "search")) == 8


def test_a_grid_of_one_rate_cannot_be_extended() -> None:
    arms = {
        "full": arm("full", run_config(full()), [1e-4]),
        "lora-r1": arm("lora-r1", run_config(lora()), [1e-3]),
    }
    with pytest.raises(ValueError, match="at least 2 learning rates to continue"):
        plan_search(experiment(extend=1), arms, "trl")


def test_single_runs_share_a_plan() -> None:
    seeds = SeedsConfig(search=[0], report=[])
    one = plan_search(
        experiment(kind="single", arms={"a": []}, seeds=seeds),
        {"a": arm("a", run_config(lora()), [1e-3])},
        "trl",
    )
    other = plan_search(
        experiment(kind="single", arms={"b": []}, seeds=seeds),
        {"b": arm("b", run_config(full()), [1e-4])},
        "trl",
    )
    both = merge(one, other)
    assert [run.arm for run in both.runs] == ["a", "b"]
    assert merge(both, one).runs == both.runs


def test_an_arm_without_any_score_does_not_hold_up_the_others() -> None:
    plan = toy_plan(extend=1)
    records = all_records(plan)
    for run in plan.cells("full", "search"):
        records[run.run_id] = record_of(plan, run.run_id, status="no_signal")
    grown, fresh = grow(plan, records, {})
    assert [s.arm for s in fresh] == ["lora-r1"]
    assert {r.arm for r in grown.runs[12:]} == {"lora-r1"}
