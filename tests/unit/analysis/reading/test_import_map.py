"""Names of a source -> names of a record: what is inferred, and what is said of a wrong map."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.__main__ import main
from analysis.reading.importing.columns import parse_pairs
from tests.unit.analysis.reading.foreign import GRID, imported, write_csv

ODD = "kind,r,lr,acc\nFull FT,,1e-4,0.5\nLoRA,8,1e-3,0.6\n"
TWO_WAYS = """\
method,learning_rate,score_final,direction
full,1e-4,0.5,minimize
full,1e-3,0.5,maximize
"""
ODD_MAP = ("--map", "method=kind,lora_rank=r,learning_rate=lr,score_final=acc")


def refused(tmp_path: Path, text: str, *options: str, capsys: pytest.CaptureFixture[str]) -> str:
    source = write_csv(tmp_path / "sweep.csv", text)
    assert main(["import", source, *options, "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and said.startswith("error: ")
    return said.removeprefix("error: ").rstrip("\n")


@pytest.mark.parametrize(
    ("texts", "pairs"),
    [
        (["a=x,b=y"], {"a": "x", "b": "y"}),
        (["a=x", " b = y "], {"a": "x", "b": "y"}),
        (["a=acc, final,b=y"], {"a": "acc, final", "b": "y"}),
        (["a=x=y"], {"a": "x=y"}),
        (["eval/accuracy=acc,dtypes.base=p"], {"eval/accuracy": "acc", "dtypes.base": "p"}),
        ([], {}),
    ],
)
def test_pairs(texts: list[str], pairs: dict[str, str]) -> None:
    assert parse_pairs(texts, "--map") == pairs


@pytest.mark.parametrize("text", ["a", "a=", "=x", ",a=x"])
def test_what_is_no_pair(text: str) -> None:
    with pytest.raises(ValueError, match="--map takes NAME=VALUE pairs joined by commas, got"):
        parse_pairs([text], "--map")


def test_a_name_given_twice() -> None:
    with pytest.raises(ValueError, match="--set names a twice"):
        parse_pairs(["a=x", "a=y"], "--set")


def test_columns_are_renamed(tmp_path: Path) -> None:
    sweep = imported(tmp_path, ODD, *ODD_MAP)

    assert list(sweep.runs["method"]) == ["full", "lora"]
    assert list(sweep.runs["arm"]) == ["full", "lora-r8"]
    assert list(sweep.runs["score_final"]) == [0.5, 0.6]


def test_the_map_beats_a_column_of_the_same_name(tmp_path: Path) -> None:
    text = "method,learning_rate,score_final,better\nfull,1e-4,0.5,0.6\n"
    sweep = imported(tmp_path, text, "--map", "score_final=better")

    assert list(sweep.runs["score_final"]) == [0.6]


def test_a_column_with_a_comma_in_its_name(tmp_path: Path) -> None:
    text = 'method,learning_rate,"acc, final"\nfull,1e-4,0.5\n'
    sweep = imported(tmp_path, text, "--map", "score_final=acc, final,method=method")

    assert list(sweep.runs["score_final"]) == [0.5]


def test_what_a_source_does_not_say_stays_unknown(tmp_path: Path) -> None:
    row = imported(tmp_path, ODD, *ODD_MAP).runs.iloc[1]

    for name in ("model", "task", "prompts_per_step", "target_modules", "git_commit", "lora_alpha",
                 "score_base", "trainable_params", "wall_time_s"):  # fmt: skip
        assert row[name] is None or row[name] != row[name], name


def test_method_is_read_off_the_rank_where_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = imported(tmp_path, "lora_rank,learning_rate,score_final\n8,1e-4,0.5\n,1e-5,0.6\n")

    assert list(sweep.runs["arm"]) == ["lora-r8", "full"]
    said = capsys.readouterr().out
    assert "no method column: lora where lora_rank is a number, full where it is empty" in said
    assert "no seed column: every run counts as seed 0" in said


def test_constants_hold_for_every_run(tmp_path: Path) -> None:
    sweep = imported(
        tmp_path, GRID, "--set", "model=Qwen/Qwen3-1.7B,prompts_per_step=32,score_base=0.25",
        "--set", "dtypes.base=bfloat16,factors.warmup=10",
    )  # fmt: skip

    assert set(sweep.runs["model"]) == {"Qwen/Qwen3-1.7B"}
    assert set(sweep.runs["prompts_per_step"]) == {32}
    assert set(sweep.runs["score_base"]) == {0.25}
    assert list(sweep.runs["dtypes"]) == [{"base": "bfloat16"}] * 6
    config = sweep.plan["arms"]["full"]["config"]
    assert config["model"] == {"name": "Qwen/Qwen3-1.7B", "dtype": "bfloat16"}
    assert config["factors"] == {"warmup": 10}
    assert sweep.plan["experiment"]["factors"] == ["method"]  # only what varies


def test_a_missing_column_is_named_with_those_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(tmp_path, ODD, "--map", "score_final=accuracy", capsys=capsys)
    place = tmp_path / "sweep.csv"
    assert said == (
        f"--map score_final=accuracy: {place} has no column 'accuracy'; it has kind, r, lr, acc"
    )


def test_a_required_column_that_nothing_is_mapped_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(tmp_path, ODD, "--map", "method=kind,learning_rate=lr", capsys=capsys)
    assert "is score_final, by --map score_final=COLUMN; it has kind, r, lr, acc" in said
    said = refused(tmp_path, ODD, "--map", "score_final=acc,learning_rate=lr", capsys=capsys)
    assert "is method (or lora_rank), by --map method=COLUMN" in said


def test_a_record_column_that_does_not_exist(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(tmp_path, GRID, "--map", "lr=learning_rate", capsys=capsys)
    assert said.startswith("--map: a record has no column 'lr'; it has run_id, arm, phase, method")
    assert "dtypes.base" in said
    for name in ("schema_version", "dtypes", "dtypes.gradient", "factors."):
        assert "has no column" in refused(tmp_path, GRID, "--set", f"{name}=1", capsys=capsys)


def test_a_column_and_a_constant_for_one_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(tmp_path, GRID, "--map", "seed=seed", "--set", "seed=1", capsys=capsys)
    assert said == "seed is given by --map and by --set: drop one"


@pytest.mark.parametrize(
    ("options", "text", "said"),
    [
        (("--set", "prompts_per_step=many"), GRID, "prompts_per_step is 'many', not an integer"),
        (("--set", "direction=up"), GRID, "direction must be maximize or minimize, got 'up'"),
        (("--worst-score", "nan"), GRID, "--worst-score must be a finite number, got nan"),
        (("--set", "score_base=inf"), GRID, "score_base is 'inf', not a number"),
        (("--table", "runs"), GRID, "--table is only read with a SQLite file"),
        (("--study-name", "a"), GRID, "--study-name is only read with an Optuna storage"),
        (("--history-map", "step=step"), GRID, "--history-map is read with --history FILE"),
        ((), "", "is empty"),
        ((), "method,learning_rate,score_final\n", "holds column names and no row"),
        ((), "method,learning_rate,score_final\nfull,1e-4,\n", "no row of"),
        ((), "method,learning_rate,score_final\nfull,1e-4,high\n", "no value of column 'score_fi"),
        ((), "a,b\n1\n1,2,3\n", "is not a CSV file"),
        ((), "a,b\n1,2,3\n1,2,3\n", "has rows with more cells than there are names"),
        ((), TWO_WAYS.replace("direction", "score_metric"), "must have one score_metric, found"),
        ((), TWO_WAYS, "every run of a sweep must have one direction, found maximize, m"),
    ],
)
def test_what_cannot_be_used_is_said_in_a_sentence(
    tmp_path: Path, options: tuple[str, ...], text: str, said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    found = refused(tmp_path, text, *options, capsys=capsys)
    assert said in found


def test_words_of_a_factor_stay_words(tmp_path: Path) -> None:
    sweep = imported(tmp_path, GRID, "--set", "factors.a=nan x,factors.b=1e3,factors.c=0.5")
    assert sweep.plan["arms"]["full"]["config"]["factors"] == {"a": "nan x", "b": 1000, "c": 0.5}


def test_one_row_is_a_sweep(tmp_path: Path) -> None:
    sweep = imported(tmp_path, "method,learning_rate,score_final\nfull,1e-4,0.5\n")

    assert (len(sweep.runs), sweep.complete) == (1, True)
    assert sweep.plan["experiment"]["seeds"] == {"search": [0], "report": []}


def test_a_phase_column_makes_report_runs(tmp_path: Path) -> None:
    head = "method,learning_rate,score_final,phase,seed\n"
    sweep = imported(tmp_path, f"{head}full,1e-4,0.5,search,0\nfull,1e-4,0.6,report,1\n")

    assert sweep.plan["experiment"]["seeds"] == {"search": [0], "report": [1]}
    assert sweep.complete


def test_a_seed_in_both_phases_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = "method,learning_rate,score_final,phase,seed\n"
    text = f"{head}full,1e-4,0.5,search,0\nfull,1e-4,0.6,report,0\n"
    said = refused(tmp_path, text, capsys=capsys)
    assert said == "search and report seeds must be disjoint, both hold [0]"
