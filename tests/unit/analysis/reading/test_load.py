"""An experiment directory as frames."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.reading.load import load, provenance, samples
from study.records.record import Record
from tests.doubles import BASE, LORA_GRID, Defects, run_id, write_synthetic_experiment

FULL_0 = run_id("full", "search", 2e-4, 0)


def edit_plan(path: Path, change: Callable[[Any], object]) -> None:
    plan = json.loads((path / "plan.json").read_text())
    change(plan)
    (path / "plan.json").write_text(json.dumps(plan))


def test_a_finished_experiment_is_complete_and_leaves_nothing_out(tmp_path: Path) -> None:
    sweep = load(write_synthetic_experiment(tmp_path / "quickstart"))

    assert (sweep.name, sweep.kind, sweep.is_experiment) == ("quickstart", "experiment", True)
    assert sweep.complete
    assert sweep.expected == len(sweep.runs) == 3 * (5 * 3 + 3)
    assert set(sweep.planned["status"]) == {"completed"}
    assert sweep.excluded.empty and sweep.attempts.empty


def test_runs_have_the_columns_of_the_record_in_plan_order(tmp_path: Path) -> None:
    sweep = load(write_synthetic_experiment(tmp_path / "quickstart"))

    assert list(sweep.runs.columns) == list(Record.__dataclass_fields__)
    assert list(sweep.runs["run_id"]) == list(sweep.planned["run_id"])
    row = sweep.runs.set_index("run_id").loc[FULL_0]
    assert row["score_final"] == pytest.approx(0.50 - 0.01)
    assert row["score_base"] == BASE


def test_metrics_are_tidy(tmp_path: Path) -> None:
    sweep = load(write_synthetic_experiment(tmp_path / "quickstart"))

    assert list(sweep.metrics.columns) == ["run_id", "step", "metric", "value"]
    mine = sweep.metrics[sweep.metrics["run_id"] == FULL_0]
    accuracy = mine[mine["metric"] == "eval/accuracy"].set_index("step")["value"]
    assert list(accuracy.index) == list(range(0, 201, 20))
    assert accuracy[0] == pytest.approx(BASE)
    assert accuracy[200] == pytest.approx(0.49)
    assert set(mine["metric"]) == {"eval/accuracy", "eval/greedy_accuracy", "train/loss"}


def test_selections_are_read(tmp_path: Path) -> None:
    sweep = load(write_synthetic_experiment(tmp_path / "quickstart"))

    assert sweep.selections == {"full": 2e-4, "lora-r1": 2e-3, "lora-r8": 2e-3}


def test_report_runs_that_are_still_to_be_planned_are_expected(tmp_path: Path) -> None:
    sweep = load(write_synthetic_experiment(tmp_path / "q", report_joined=False))

    assert (len(sweep.runs), sweep.expected, sweep.complete) == (45, 54, False)


def test_report_seeds_that_were_declared_later_are_expected(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q")
    edit_plan(path, lambda plan: plan["experiment"]["seeds"]["report"].append(103))
    sweep = load(path)

    assert (len(sweep.runs), sweep.expected, sweep.complete) == (54, 57, False)


def test_an_arm_whose_search_found_no_score_will_never_report(tmp_path: Path) -> None:
    silent = [run_id("lora-r1", "search", rate, seed) for rate in LORA_GRID for seed in range(3)]
    defects = Defects(no_signal=silent)
    path = write_synthetic_experiment(tmp_path / "q", defects=defects, report_joined=False)
    sweep = load(path)

    assert (len(sweep.runs), sweep.expected) == (45, 45 + 2 * 3)


def test_samples_and_provenance_of_a_run(tmp_path: Path) -> None:
    sweep = load(write_synthetic_experiment(tmp_path / "q", completion="7+5=12"))

    assert [line["completion"] for line in samples(sweep, FULL_0, 2)] == ["7+5=12"]
    assert provenance(sweep, FULL_0)["packages"]["trl"] == "1.16.0"
    (sweep.path / "full" / FULL_0 / "provenance.json").unlink()
    assert provenance(sweep, FULL_0) == {}
