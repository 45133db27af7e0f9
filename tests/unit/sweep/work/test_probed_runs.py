"""Probes at the end of a run, in the processes of a sweep."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from study.config import ProbesConfig, SeedsConfig
from study.plan.experiment import to_json
from study.records.store import ExperimentStore
from study.sweep.schedule import read_state
from tests.plans import toy_plan
from tests.unit.sweep.workers import drain

DEFAULT = ProbesConfig(name="default", draws=2)


def test_a_run_that_cannot_be_measured_has_its_result_and_the_reason(tmp_path: Path) -> None:
    """The engine double keeps no weights, though the runs ask for them."""
    plan = toy_plan(engine="packed", seeds=SeedsConfig(search=[0], report=[]))
    arms = {
        name: replace(arm, config=replace(arm.config, probes=DEFAULT, save="last"))
        for name, arm in plan.arms.items()
    }
    store = ExperimentStore(tmp_path)
    store.write_plan(to_json(replace(plan, arms=arms)))
    drain(store)
    assert read_state(store).records.keys() == {run.run_id for run in plan.runs}
    for run in plan.runs:
        found = json.loads((store.run_dir(run.arm, run.run_id) / "probes.json").read_text())
        assert "ended before it had weights to keep" in found["weights"]["left_out"]
