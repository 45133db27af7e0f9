"""A budget on the real command line, with the real engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.test_command_line import TINY, records, run

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def test_a_budget_ends_a_sweep_well_and_the_same_command_goes_on(tmp_path: Path) -> None:
    sweep = ["-m", "method=lora", "method.rank=1", "seed=0,1", *TINY]
    place = [f"runs_dir={tmp_path}", "name=two"]
    first = run("study", *sweep, *place, "budget.runs=1")
    assert first.returncode == 0, first.stderr
    assert (
        "budget.runs=1 ended the sweep: 1 planned run is open; the same command with a larger "
        "budget.runs, or none, goes on" in first.stdout
    )
    (done,) = records(tmp_path / "two")
    again = run("study", *sweep, *place)
    assert again.returncode == 0, again.stderr
    assert "ended the sweep" not in again.stdout
    assert done in records(tmp_path / "two")
    assert [record["seed"] for record in records(tmp_path / "two")] in ([0, 1], [1, 0])
