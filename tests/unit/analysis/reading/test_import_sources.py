"""Files of others: CSV dialects, SQLite tables, histories."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

from analysis.__main__ import main
from analysis.reading.load import load
from analysis.reading.sources import SourceOptions, read_source
from tests.unit.analysis.reading.foreign import GRID, imported, write_csv

HISTORY = """\
id,at,acc,loss
row-1,0,0.10,
row-1,10,0.50,2.5
row-2,0,0.12,
row-2,10,,1.5
gone,10,0.9,1.0
row-2,last,0.9,1.0
"""
MAP = "run_id=id,step=at,eval/accuracy=acc,train/loss=loss"


def fill(path: Path, **tables: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        for name, statement in tables.items():
            database.execute(f"CREATE TABLE {name} (method TEXT, learning_rate REAL, score REAL)")
            if statement:
                database.execute(f"INSERT INTO {name} VALUES {statement}")
        database.commit()


def test_a_csv_file_of_a_spreadsheet(tmp_path: Path) -> None:
    text = "\ufeffmethod, learning_rate, score_final\nfull, 1e-4, 0.5\n"
    assert list(imported(tmp_path, text).runs["score_final"]) == [0.5]


def test_numbers_that_a_spreadsheet_wrote_as_fractions(tmp_path: Path) -> None:
    text = "lora_rank,seed,learning_rate,score_final\n8.0,1.0,1e-4,0.5\n"
    row = imported(tmp_path, text).runs.iloc[0]
    assert (row["arm"], row["seed"]) == ("lora-r8", 1)


def test_a_sqlite_table(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    fill(path, sweep="('full', 1e-4, 0.5), ('lora', 1e-3, NULL)")
    out = tmp_path / "out"

    assert main(["import", str(path), "--map", "score_final=score", "--out", str(out)]) == 0
    sweep = load(out)
    assert list(sweep.runs["score_final"]) == [0.5]
    assert list(sweep.excluded["kind"]) == ["no score"]
    assert sweep.plan["import"]["source"] == f"{path}, table sweep"


def test_one_of_several_tables(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    fill(path, a="('full', 1e-4, 0.1)", b="('full', 1e-4, 0.2)", c="")

    assert list(read_source(str(path), SourceOptions(table="b")).runs["score"]) == [0.2]
    with pytest.raises(ValueError, match="has several tables, name one by --table: a, b, c"):
        read_source(str(path), SourceOptions())
    with pytest.raises(ValueError, match="has no table 'd'; it has a, b, c"):
        read_source(str(path), SourceOptions(table="d"))
    with pytest.raises(ValueError, match=r"table c of .* has no row"):
        read_source(str(path), SourceOptions(table="c"))


def test_what_is_no_sqlite_file(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("these are certainly not tables of anything at all\n" * 9)
    sqlite3.connect(tmp_path / "empty.db").close()
    for name, said in (("text.db", "is not a SQLite file"), ("empty.db", "has no table"),
                       ("none.db", "is not there")):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            read_source(str(tmp_path / name), SourceOptions())


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("http://example.org/a.csv", "a source is a CSV file, a SQLite file"),
        ("nowhere.csv", "nowhere.csv is not there"),
        (".", ". is a directory, not a file"),
    ],
)
def test_what_is_no_source(source: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_source(source, SourceOptions())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"lr;acc\n1e-4;0,5\n", r"separated by commas, its first line has semicolons \('lr;acc'\)"),
        (b"lr;acc\n1e-4;0.5\n", "its first line has semicolons"),
        (b"\xef\xbb\xbflr, acc,lr\n1e-4,0.5,1\n", "more than one column called 'lr'"),
        (b"lr\tacc\n1e-4\t0.5\n", "its first line has tabs"),
        ("lr,acc\n1e-4,0.5\n".encode("utf-16"), "it is not text in UTF-8$"),
        (b"lr,acc\n1e-4,0.5\n1,2,3\n", "Expected 2 fields in line 3, saw 3$"),
    ],
)
def test_what_is_no_csv_says_what_it_is(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "s.csv").write_bytes(content)
    with pytest.raises(ValueError, match=said):
        read_source(str(tmp_path / "s.csv"), SourceOptions())


def test_a_column_of_one_kind_may_hold_semicolons(tmp_path: Path) -> None:
    text = "method,learning_rate,score_final,a;b\nfull,1e-4,0.5,1;2\n"
    assert len(imported(tmp_path, text).runs) == 1


@pytest.mark.parametrize(("name", "warned"), [("test_nll", True), ("accuracy", False)])
def test_a_score_that_sounds_like_a_loss_is_asked_about(
    tmp_path: Path, name: str, warned: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    imported(tmp_path, GRID.replace("score_final", name), "--map", f"score_final={name}")
    hint = f"{name} sounds like a loss: if so, --set direction=minimize"
    assert (hint in capsys.readouterr().out) == warned


def with_history(tmp_path: Path, history: str, column_map: str, *options: str) -> int:
    source, file = (
        write_csv(tmp_path / name, text) for name, text in (("s.csv", GRID), ("h.csv", history))
    )
    history_options = ["--history", file, "--history-map", column_map]
    return main(["import", source, *history_options, *options, "--out", str(tmp_path / "out")])


def test_a_history_becomes_tidy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert with_history(tmp_path, HISTORY, MAP) == 0
    sweep, said = load(tmp_path / "out"), capsys.readouterr().out

    expected = pd.DataFrame(
        [("row-1", 0, "eval/accuracy", 0.10), ("row-1", 10, "eval/accuracy", 0.50),
         ("row-2", 0, "eval/accuracy", 0.12), ("row-1", 10, "train/loss", 2.5),
         ("row-2", 10, "train/loss", 1.5)],
        columns=["run_id", "step", "metric", "value"],
    )  # fmt: skip
    pd.testing.assert_frame_equal(sweep.metrics, expected, check_dtype=False)
    assert "1 history rows of runs that are not there, left out" in said
    assert "1 history rows whose step is no whole number, left out" in said


@pytest.mark.parametrize(
    ("score_metric", "column_map"),
    [
        ("eval/accuracy", MAP),
        ("accuracy", MAP),
        ("anything", MAP),
        ("pass", MAP.replace("eval/accuracy", "eval/pass")),
        ("anything", MAP.replace("eval/accuracy", "reward")),
    ],
)
def test_step_0_of_the_score_is_the_untrained_model(
    tmp_path: Path, score_metric: str, column_map: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = with_history(tmp_path, HISTORY, column_map, "--set", f"score_metric={score_metric}")
    bases = load(tmp_path / "out").runs.set_index("run_id")["score_base"]

    assert code == 0
    assert (bases["row-1"], bases["row-2"]) == (0.10, 0.12) and bases["row-3":].isna().all()
    said = capsys.readouterr().out
    assert "score of the untrained model: 0.11, step 0 of" in said
    assert "(0.1 to 0.12 over 2 runs)" in said


def test_the_metric_measured_before_training_gives_the_curves(tmp_path: Path) -> None:
    assert with_history(tmp_path, HISTORY, MAP.replace("eval/accuracy", "reward")) == 0
    sweep = load(tmp_path / "out")
    assert sweep.score_metric == "reward"
    assert "reward" in set(sweep.metrics["metric"])


def test_no_step_0_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    late = HISTORY.replace(",0,", ",5,")
    assert with_history(tmp_path, late, MAP) == 0

    assert "none (the history has no such metric at step 0, no score_base)" in (
        capsys.readouterr().out
    )
    assert load(tmp_path / "out").runs["score_base"].isna().all()


def test_a_base_of_its_own_beats_the_history(tmp_path: Path) -> None:
    assert with_history(tmp_path, HISTORY, MAP, "--set", "score_base=0.2") == 0
    assert set(load(tmp_path / "out").runs["score_base"]) == {0.2}


@pytest.mark.parametrize(
    ("column_map", "said"),
    [
        ("step=at,eval/accuracy=acc", "it lacks run_id"),
        ("run_id=id,step=at", "it lacks a metric"),
        ("run_id=id,step=when,eval/accuracy=acc", "has no column 'when'; it has id, at, acc, loss"),
    ],
)
def test_a_wrong_map_of_the_history(
    tmp_path: Path, column_map: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert with_history(tmp_path, HISTORY, column_map) == 2
    assert said in capsys.readouterr().err


def test_a_history_without_a_map(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = write_csv(tmp_path / "s.csv", GRID), str(tmp_path / "out")
    assert main(["import", source, "--history", source, "--out", out]) == 2
    said = capsys.readouterr().err
    assert "--history needs --history-map run_id=COLUMN" in said
    assert "s.csv has method, lora_rank, learning_rate, seed, score_final" in said
