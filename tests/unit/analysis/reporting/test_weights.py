"""The table of what training did to the weights, and who was not measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.reporting.weights import probe_lines, weight_rows, weights_frame
from tests.unit.analysis.probed_sweeps import measured, probed_sweep


def test_rows_are_of_arms_that_were_measured(tmp_path: Path) -> None:
    arms = {
        "full": [measured(n, 500, {"spectral_shift": 0.25}) for n in (100, 110, 120)],
        "lora-r1": [None] * 3,
    }
    given = probed_sweep(tmp_path, arms)
    (row,) = weights_frame(weight_rows(given)).to_dict("records")
    assert (row["arm"], row["unchanged_fp32"]) == ("full", pytest.approx(0.11))
    assert row["spectral_shift_over_random"] == 0.5  # 0.25 of 0.5
    assert row["unchanged_bf16_n"] == 3
    assert row["intruders"] is None


def test_reasons_are_told_by_run(tmp_path: Path) -> None:
    failed = {"failed": "ValueError: no tensor"}
    given = probed_sweep(tmp_path, {"full": [failed, measured(), {"left_out": "save=none"}]})
    lines = probe_lines(given)
    runs = given.runs[given.runs["phase"] == "report"].sort_values("seed")["run_id"].tolist()
    assert lines == [
        f"Weights measured by probes: 1 of {len(given.runs)} runs",
        f"Weights not measured, failed: ValueError: no tensor: full/{runs[0]}",
        f"Weights not measured, save=none: full/{runs[2]}",
    ]
    assert probe_lines(probed_sweep(tmp_path / "bare", {"full": [None] * 3})) == []
