"""Which runs of an experiment changed the same weights."""

import dataclasses
import json
from types import SimpleNamespace

import pytest
import torch

from study.plan.experiment import to_json
from study.probes.__main__ import main
from study.probes.overlaps import compared_runs, overlap_rows, run_pairs
from study.records.files import write_json
from tests import plans
from tests.unit.probes.stored_runs import changed_model, write_run


def stored(arm, seed, rate=1e-3, phase="report", status="completed"):
    facts = {"arm": arm, "seed": seed, "learning_rate": rate, "phase": phase, "status": status}
    return SimpleNamespace(record=SimpleNamespace(run_id=f"{arm}{seed}", **facts))


def ids(runs):
    return [run.record.run_id for run in runs]


def test_report_runs_come_before_the_search():
    runs = [stored("a", 0, phase="search"), stored("a", 100), stored("a", 101)]
    assert ids(compared_runs(runs)) == ["a100", "a101"]


def test_search_runs_are_compared_at_one_rate():
    rates = (1e-4, 1e-3, 1e-3, 1e-2)
    runs = [stored("a", seed, rate, "search") for seed, rate in enumerate(rates)]
    assert ids(compared_runs(runs)) == ["a1", "a2"]
    assert compared_runs([stored("a", 0, status="diverged")]) == []


def test_pairs_are_seeds_of_an_arm_and_arms_at_a_seed():
    runs = [stored(arm, seed) for arm in "ab" for seed in (1, 2)]
    pairs = [f"{one.record.run_id}{other.record.run_id}" for one, other in run_pairs(runs)]
    assert pairs == ["a1a2", "a1b1", "a2b2", "b1b2"]


def changed(columns):
    """Of every matrix of q_proj and v_proj, these columns grow by half; nothing else changes."""

    def change(name, weight):
        if "q_proj" not in name and "v_proj" not in name:
            return weight
        factor = torch.ones(weight.shape[1])
        factor[columns] = 1.5
        return weight * factor

    return changed_model(change)


@pytest.fixture
def experiment(tmp_path):
    """Two seeds of an arm: columns 0 to 15 of 32, and 8 to 23."""
    plan = plans.toy_plan()
    runs = [run for run in plan.runs if run.arm == "full"][:2]
    write_json(tmp_path / "plan.json", to_json(dataclasses.replace(plan, runs=runs)))
    for seed, (run, columns) in enumerate(zip(runs, (range(16), range(8, 24)), strict=True)):
        facts = {"seed": seed, "phase": "search", "learning_rate": 1e-3}
        path = tmp_path / run.arm / run.run_id
        write_run(path, plans.full(), changed(list(columns)), **facts)
    return tmp_path


def test_the_command_writes_what_is_counted_by_hand(experiment, capsys, monkeypatch):
    """8 of 24 columns are in both: 1/3. Half of the weights each, of which chance makes 1/3 too."""
    monkeypatch.setenv("COLUMNS", "120")
    main([str(experiment), "--draws", "2"])
    found = json.loads((experiment / "mask_overlap.json").read_text())
    (pair,) = found["pairs"]
    assert (pair["arms"], pair["seeds"]) == (["full", "full"], [0, 1])
    assert pair["visible"]["jaccard"] == pytest.approx(1 / 3, abs=2e-3)
    assert pair["visible"]["baseline"] == pytest.approx(1 / 3, abs=2e-3)
    (row,) = overlap_rows(found)
    assert row[:2] == ("full, seeds", "1")
    assert "full, seeds" in capsys.readouterr().out
