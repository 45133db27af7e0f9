"""The directory of an imported sweep: whole or not at all, never over something else."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pandas as pd
import pytest

from analysis.__main__ import main
from analysis.reading.importing import directory
from analysis.reading.load import load
from tests.doubles import write_synthetic_experiment
from tests.unit.analysis.reading.foreign import GRID, imported, write_csv

FILES = {"plan.json", "runs.parquet", "metrics.parquet", "excluded.csv"}


def run(tmp_path: Path, text: str, *options: str) -> int:
    source = write_csv(tmp_path / "sweep.csv", text)
    return main(["import", source, *options, "--out", str(tmp_path / "out")])


def test_four_files_and_nothing_beside_them(tmp_path: Path) -> None:
    sweep = imported(tmp_path, GRID)

    assert {file.name for file in sweep.path.iterdir()} == FILES
    assert {file.name for file in tmp_path.iterdir()} == {"sweep.csv", "out"}


def test_the_plan_says_where_it_came_from_and_how_to_do_it_again(tmp_path: Path) -> None:
    sweep = imported(tmp_path, GRID, "--set", "task=MATH 500", "--worst-score", "0")
    block, source = sweep.plan["import"], tmp_path / "sweep.csv"

    assert block["source"] == str(source)
    assert block["sha256"] == hashlib.sha256(GRID.encode()).hexdigest()
    assert (block["rows"], block["results"], block["left_out"]) == (6, 6, 0)
    assert block["constants"] == {"task": "MATH 500"}
    assert block["column_map"]["score_final"] == "score_final"
    assert block["command"] == (
        f"python -m analysis import {source} --set 'task=MATH 500' --worst-score 0.0 "
        f"--out {sweep.path}"
    )
    assert any(line.startswith("read 6 rows of ") for line in block["resolved"])


def test_the_same_import_again_is_refreshed(tmp_path: Path) -> None:
    sweep = imported(tmp_path, GRID)
    (sweep.path / "report").mkdir()
    assert run(tmp_path, GRID) == 0
    assert load(sweep.path).plan["looks"] == 1

    assert run(tmp_path, f"{GRID}lora,8,1e-1,0,0.0\n") == 0
    grown = load(sweep.path)
    assert (len(grown.runs), grown.plan["looks"]) == (7, 2)
    assert (sweep.path / "report").is_dir()


def test_another_map_is_not_the_same_import(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = imported(tmp_path, GRID)
    before = {file.name: file.read_bytes() for file in sweep.path.iterdir()}

    assert run(tmp_path, GRID, "--set", "task=other") == 2
    assert "by another map: choose another --out" in capsys.readouterr().err
    assert {file.name: file.read_bytes() for file in sweep.path.iterdir()} == before


def test_nothing_else_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_synthetic_experiment(tmp_path / "out")
    assert run(tmp_path, GRID) == 2
    assert "holds another sweep: choose another --out" in capsys.readouterr().err
    assert load(tmp_path / "out").kind == "experiment"

    source = write_csv(tmp_path / "sweep.csv", GRID)
    assert main(["import", source, "--out", source]) == 2
    assert "is a file: choose another --out" in capsys.readouterr().err


def test_an_empty_directory_is_taken(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert len(imported(tmp_path, GRID).runs) == 6


def test_a_name_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_csv(tmp_path / "sweep.csv", GRID)
    assert main(["import", source, "--out", str(tmp_path / ".hidden")]) == 2
    assert "a name may hold letters" in capsys.readouterr().err


def test_an_import_that_breaks_off_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full_disk(runs: pd.DataFrame) -> pd.DataFrame:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(directory, "to_plain", full_disk)
    assert run(tmp_path, GRID) == 2
    assert "out cannot be written: No space left on device" in capsys.readouterr().err
    assert {file.name for file in tmp_path.iterdir()} == {"sweep.csv"}


@pytest.mark.parametrize("name", sorted(FILES - {"plan.json"}))
def test_a_damaged_directory_is_one_sentence(tmp_path: Path, name: str) -> None:
    sweep = imported(tmp_path, GRID)

    (sweep.path / name).write_text("nothing of use")
    with pytest.raises(ValueError, match=f"{name} .*import the sweep again"):
        load(sweep.path)
    (sweep.path / name).unlink()
    with pytest.raises(ValueError, match=f"{name} is not there: import the sweep again"):
        load(sweep.path)


def test_a_frame_comes_back_as_it_was(tmp_path: Path) -> None:
    sweep = imported(
        tmp_path, GRID, "--set", "dtypes.base=bfloat16,target_modules=q_proj,factors.x=1"
    )
    again = load(sweep.path)

    pd.testing.assert_frame_equal(again.runs, sweep.runs)
    row = again.runs.iloc[-1]
    assert row["dtypes"] == {"base": "bfloat16"} and row["target_modules"] == ["q_proj"]
    assert json.loads((sweep.path / "plan.json").read_text())["experiment"]["kind"] == "imported"
