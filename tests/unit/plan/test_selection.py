"""Which rate an arm reports at, and when: selection, extension, report runs."""

from __future__ import annotations

import dataclasses

import pytest

from study.plan.select import grow, select
from tests.plans import FULL_RATES, LORA_RATES, toy_plan
from tests.unit.plan.toy_records import all_records, record_of


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


def test_an_arm_without_any_score_does_not_hold_up_the_others() -> None:
    plan = toy_plan(extend=1)
    records = all_records(plan)
    for run in plan.cells("full", "search"):
        records[run.run_id] = record_of(plan, run.run_id, status="no_signal")
    grown, fresh = grow(plan, records, {})
    assert [s.arm for s in fresh] == ["lora-r1"]
    assert {r.arm for r in grown.runs[12:]} == {"lora-r1"}
