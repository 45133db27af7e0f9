"""``python -m analysis simulate``: seeds before money."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.__main__ import main
from analysis.estimates.power import seeds_for_margin
from analysis.reading.load import load


def test_a_design_is_judged_before_it_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--seeds", "2", "5", "--replications", "20"]) == 0
    printed = capsys.readouterr().out
    rows = [line.split() for line in printed.splitlines() if line.strip()[:1].isdigit()][1:]
    assert [row[:2] for row in rows] == [["2", "18"], ["5", "45"]]  # seeds, runs of an arm
    few, enough = rows
    assert few[2] == "0"  # two seeds give no interval
    assert int(enough[2]) > 80 and int(enough[-2]) > 80  # stated, and C3 right
    assert "±" in printed and "true ratio 10" in printed


def test_the_seeds_that_parity_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--margin", "0.02", "--noise", "0.01"]) == 0
    needed = seeds_for_margin(0.02, 0.01)
    assert f"For 80 %: {needed} report seeds if the arms are equal" in capsys.readouterr().out


def test_an_experiment_is_written(tmp_path: Path) -> None:
    arguments = ["--seeds", "3", "--ratio", "4", "--points", "7", "--shape", "soft"]
    assert main(["simulate", "--write", str(tmp_path / "syn"), *arguments]) == 0
    sweep = load(tmp_path / "syn")
    assert sweep.complete
    assert {len(arm["learning_rates"]) for arm in sweep.plan["arms"].values()} == {7}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--margin", "0.02", "--spacing", "0.5"], "--spacing is not read with --margin"),
        (["--write", "x", "--replications", "5"], "--replications is not read with --write"),
        (["--seeds", "0"], "--seeds >= 1 must hold, got 0"),
        (["--noise", "-1"], "noise >= 0 must hold, got -1.0"),
        (["--margin", "-1"], "must be positive and finite, got -1"),
        (["--replications", "0"], "at least one replication is needed, got 0"),
        (["--ratio", "nan"], "a ratio must be positive and finite, got nan"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert main(["simulate", *arguments]) == 2
    assert sentence in capsys.readouterr().err
