"""The frames as files for other programs."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from analysis.__main__ import main
from analysis.reading.load import load
from tests.doubles import Defects, run_id, write_synthetic_experiment
from tests.unit.analysis.reading.foreign import GRID, imported

FULL_0 = run_id("full", "search", 2e-4, 0)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_three_tables(tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_synthetic_experiment(tmp_path / "q", defects=Defects(missing=[FULL_0]))
    assert main(["export", str(path), "--format", form]) == 0
    files = [path / "export" / f"{name}.{form}" for name in ("runs", "metrics", "excluded")]
    assert capsys.readouterr().out == "".join(f"{file}\n" for file in files)
    assert sorted((path / "export").iterdir()) == sorted(files)

    read = pd.read_csv if form == "csv" else pd.read_parquet
    runs, metrics, excluded = map(read, files)
    sweep = load(path)
    assert list(runs.columns) == list(sweep.runs.columns)
    assert list(runs["score_final"]) == list(sweep.runs["score_final"])
    assert json.loads(runs["dtypes"].iloc[0]) == sweep.runs["dtypes"].iloc[0]
    assert json.loads(runs["target_modules"].iloc[-1]) == sweep.runs["target_modules"].iloc[-1]
    assert json.loads(runs["flags"].iloc[0]) == []
    assert metrics.astype(str).to_numpy().tolist() == (
        sweep.metrics.astype(str).to_numpy().tolist()
    )
    assert list(excluded["run_id"]) == [FULL_0]


def test_another_directory_and_an_earlier_export(tmp_path: Path) -> None:
    path, out = write_synthetic_experiment(tmp_path / "q"), tmp_path / "deep" / "tables"
    for _ in range(2):
        assert main(["export", str(path), "--out", str(out)]) == 0
    assert {file.name for file in out.iterdir()} == {
        "runs.parquet", "metrics.parquet", "excluded.parquet",
    }  # fmt: skip


def test_what_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_synthetic_experiment(tmp_path / "q", report_seeds=())
    (tmp_path / "file").write_text("")
    assert main(["export", str(path), "--out", str(tmp_path / "file")]) == 2
    assert "file cannot be written: File exists" in capsys.readouterr().err


def test_an_exported_table_of_runs_can_be_imported(tmp_path: Path) -> None:
    sweep = imported(tmp_path, GRID)
    assert main(["export", str(sweep.path), "--format", "csv", "--out", str(tmp_path / "x")]) == 0
    assert main(["import", str(tmp_path / "x" / "runs.csv"), "--out", str(tmp_path / "again")]) == 0

    again = load(tmp_path / "again")
    columns = ["run_id", "arm", "method", "learning_rate", "seed", "score_final", "status"]
    pd.testing.assert_frame_equal(again.runs[columns], sweep.runs[columns])
