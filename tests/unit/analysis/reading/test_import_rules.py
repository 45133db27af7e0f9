"""Which rows of a foreign sweep count: every rule with a sweep small enough to check by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis.__main__ import main
from analysis.estimates.curve import learning_rate_curves
from analysis.reading.arms import choice
from tests.unit.analysis.reading.foreign import GRID, imported, reasons, write_csv

STATUS = "run_id,method,lora_rank,learning_rate,score_final,status\n"


def test_a_clean_grid_is_taken_whole(tmp_path: Path) -> None:
    sweep = imported(tmp_path, GRID)

    assert (sweep.kind, sweep.imported, sweep.is_experiment) == ("imported", True, True)
    assert (len(sweep.runs), sweep.expected, sweep.complete) == (6, 6, True)
    assert sweep.excluded.empty
    assert list(sweep.runs["run_id"]) == [f"row-{i}" for i in range(1, 7)]
    assert set(sweep.runs["phase"]) == {"search"}
    assert sweep.plan["arms"]["lora-r8"]["learning_rates"] == [1e-4, 1e-3, 1e-2]


@pytest.mark.parametrize(
    ("word", "status"),
    [("Finished", "completed"), ("COMPLETE", "completed"), ("diverged", "diverged")],
)
def test_words_for_a_result(tmp_path: Path, word: str, status: str) -> None:
    sweep = imported(tmp_path, f"{STATUS}a,full,,1e-4,0.5,{word}\n")

    assert list(sweep.runs["status"]) == [status]


@pytest.mark.parametrize("word", ["running", "FAIL", "crashed", "killed", "Pending", "oom"])
def test_an_unfinished_row_is_no_result_and_leaves_a_hole(tmp_path: Path, word: str) -> None:
    sweep = imported(tmp_path, f"{STATUS}a,full,,1e-4,0.5,done\nb,full,,1e-3,0.4,{word}\n")

    assert list(sweep.runs["run_id"]) == ["a"]
    assert reasons(sweep)["b"] == (
        "unfinished",
        f"status {word!r} (learning rate 1e-3, seed 0)",
    )
    assert list(sweep.excluded["arm"]) == ["full"]
    assert dict(zip(sweep.planned["run_id"], sweep.planned["status"], strict=True)) == {
        "a": "completed",
        "b": "missing",
    }
    assert not sweep.complete


def test_a_cell_that_was_tried_again_is_no_hole(tmp_path: Path) -> None:
    sweep = imported(tmp_path, f"{STATUS}a,full,,1e-4,,failed\nb,full,,1e-4,0.4,finished\n")

    assert sweep.complete and list(sweep.planned["run_id"]) == ["b"]
    assert reasons(sweep)["a"][0] == "unfinished"


def test_tries_that_all_failed_are_one_hole(tmp_path: Path) -> None:
    failed = "b,full,,1e-3,,failed\nc,full,,1e-3,,killed\n"
    sweep = imported(tmp_path, f"{STATUS}a,full,,1e-4,0.5,done\n{failed}")

    assert list(sweep.planned["run_id"]) == ["a", "b"]
    assert list(sweep.excluded["run_id"]) == ["b", "c"]


def test_fewer_steps_than_planned_are_unfinished_unless_a_status_says_otherwise(
    tmp_path: Path,
) -> None:
    head = "run_id,method,learning_rate,score_final,steps_done,steps_planned,status\n"
    text = f"{head}a,full,1e-4,0.5,30,50,\nb,full,1e-3,0.4,30,50,finished\n"
    sweep = imported(tmp_path, text)

    assert reasons(sweep) == {
        "a": ("unfinished", "30 of 50 steps done (learning rate 1e-4, seed 0)")
    }
    assert list(sweep.runs["run_id"]) == ["b"]


def test_an_unknown_status_is_no_result(tmp_path: Path) -> None:
    sweep = imported(tmp_path, f"{STATUS}a,full,,1e-4,0.5,done\nb,full,,1e-3,0.5,odd\n")

    kind, reason = reasons(sweep)["b"]
    assert kind == "unknown status"
    assert reason.startswith("status 'odd' is no word for a result or a failure")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("full,,0,0.5", "learning_rate > 0 must hold, got 0.0"),
        ("full,,-1e-4,0.5", "learning_rate > 0 must hold, got -0.0001"),
        ("full,,,0.5", "learning_rate > 0 must hold, got nothing"),
        ("full,,inf,0.5", "learning_rate > 0 must hold, got inf"),
        ("dora,8,1e-4,0.5", "method must be full or lora, got 'dora'"),
        (",8,1e-4,0.5", "method must be full or lora, got nothing"),
        ("lora,0,1e-4,0.5", "lora_rank >= 1 must hold, got 0"),
    ],
)
def test_a_row_without_a_place_is_no_result_and_no_hole(
    tmp_path: Path, row: str, said: str
) -> None:
    head = "method,lora_rank,learning_rate,score_final\n"
    sweep = imported(tmp_path, f"{head}full,,1e-4,0.5\n{row}\n")

    assert reasons(sweep) == {"row-2": ("not comparable", said)}
    assert list(sweep.excluded["arm"]) == [""]
    assert sweep.complete


def test_an_unknown_phase_has_no_place(tmp_path: Path) -> None:
    head = "method,learning_rate,score_final,phase,seed\n"
    sweep = imported(tmp_path, f"{head}full,1e-4,0.5,search,0\nfull,1e-4,0.5,warm-up,0\n")

    assert reasons(sweep)["row-2"][1] == "phase must be search or report, got 'warm-up'"


@pytest.mark.parametrize(
    ("column", "cell", "said"),
    [
        ("score_final", "high", "score_final is 'high', not a number"),
        ("learning_rate", "1e-4x", "learning_rate is '1e-4x', not a number"),
        ("lora_rank", "8.5", "lora_rank is '8.5', not an integer"),
        ("seed", "one", "seed is 'one', not an integer"),
        ("seed", "inf", "seed is 'inf', not an integer"),
    ],
)
def test_a_cell_of_the_wrong_type_is_listed(
    tmp_path: Path, column: str, cell: str, said: str
) -> None:
    good = {"method": "lora", "lora_rank": "8", "learning_rate": "1e-4", "seed": "0",
            "score_final": "0.5"}  # fmt: skip
    rows = [good, {**good, column: cell}]
    text = "\n".join([",".join(good), *(",".join(row.values()) for row in rows)])
    sweep = imported(tmp_path, text)

    assert reasons(sweep) == {"row-2": ("unreadable value", said)}
    assert len(sweep.runs) == 1


@pytest.mark.parametrize("score", ["nan", "", "inf", "-inf"])
def test_a_run_without_a_finite_score_is_left_out_or_counts_as_the_worst(
    tmp_path: Path, score: str
) -> None:
    text = f"{STATUS}a,full,,1e-4,0.5,done\nb,full,,1e-3,{score},done\n"
    sweep = imported(tmp_path, text)
    kind, reason = reasons(sweep)["b"]
    assert kind == "no score" and "--worst-score X would count it as X" in reason
    assert list(sweep.runs["run_id"]) == ["a"] and not sweep.complete

    (tmp_path / "worst").mkdir()
    worst = imported(tmp_path / "worst", text, "--worst-score", "-0.25")
    row = worst.runs.set_index("run_id").loc["b"]
    assert (row["status"], row["score_final"]) == ("diverged", -0.25)
    assert worst.complete and worst.excluded.empty


def test_a_diverged_run_keeps_its_score(tmp_path: Path) -> None:
    sweep = imported(tmp_path, f"{STATUS}a,full,,1e-4,0.02,diverged\n", "--worst-score", "0")

    assert list(sweep.runs["score_final"]) == [0.02]


@pytest.mark.parametrize("status", ["no_signal", "pruned"])
def test_runs_that_never_have_a_score_are_kept_without_one(tmp_path: Path, status: str) -> None:
    text = f"{STATUS}a,full,,1e-4,0.5,done\nb,full,,1e-3,0.9,{status}\n"
    sweep = imported(tmp_path, text, "--worst-score", "0")

    assert list(sweep.runs["status"]) == ["completed", status]
    assert np.isnan(sweep.runs["score_final"].iloc[1])
    chosen = choice(sweep, "full")
    assert chosen is not None and chosen.learning_rate == 1e-4


def test_the_last_finished_row_of_a_run_id_counts(tmp_path: Path) -> None:
    text = f"{STATUS}a,full,,1e-4,0.3,done\na,full,,1e-4,0.5,done\na,full,,1e-4,,failed\n"
    sweep = imported(tmp_path, text)

    assert list(sweep.runs["score_final"]) == [0.5]
    assert list(sweep.excluded["kind"]) == ["unfinished", "retry"]
    assert sweep.complete


def test_a_run_id_of_several_cells_is_a_wrong_map(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_csv(tmp_path / "a.csv", f"{STATUS}a,full,,1e-4,0.3,\na,full,,1e-3,0.5,\n")

    assert main(["import", source, "--out", str(tmp_path / "out")]) == 2
    assert "run_id must name one run, 'a' has learning_rate=0.0001" in capsys.readouterr().err


def test_runs_of_one_cell_and_seed_are_kept_and_averaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = "method,learning_rate,seed,score_final,score_base\n"
    rows = "full,1e-5,0,0.4,0.1\nfull,1e-4,0,0.5,0.1\nfull,1e-4,0,0.8,0.1\nfull,1e-3,0,0.2,0.1\n"
    sweep = imported(tmp_path, head + rows)

    assert len(sweep.runs) == 4 and sweep.excluded.empty
    curve = learning_rate_curves(sweep.runs)["full"]
    assert curve.scores.tolist() == [[0.4, pytest.approx(0.65), 0.2]]
    said = "1 cell ran more than once with one seed, averaged as one; scores of a cell differ by"
    assert f"{said} up to 0.3: full at 1e-4 (0.5, 0.8)" in capsys.readouterr().out


def test_repeated_runs_of_a_seed_weigh_no_more_than_the_other_seeds(tmp_path: Path) -> None:
    # By seeds, 1e-4 scores (0.6 + 0.2) / 2 = 0.4 and 1e-3 (0.45 + 0.45) / 2 = 0.45.
    head = "method,learning_rate,seed,score_final\n"
    first = "full,1e-4,0,0.6\nfull,1e-4,0,0.6\nfull,1e-4,0,0.6\nfull,1e-4,1,0.2\n"
    sweep = imported(tmp_path, f"{head}{first}full,1e-3,0,0.45\nfull,1e-3,1,0.45\n")

    chosen = choice(sweep, "full")
    assert chosen is not None and chosen.learning_rate == 1e-3


def test_learning_rates_keep_six_digits(tmp_path: Path) -> None:
    head = "method,learning_rate,seed,score_final\n"
    sweep = imported(tmp_path, f"{head}full,2.9999999e-5,0,0.5\nfull,3e-5,1,0.6\n")

    assert sweep.plan["arms"]["full"]["learning_rates"] == [3e-5]


def test_lower_is_better_under_minimize(tmp_path: Path) -> None:
    rows = "method,learning_rate,score_final\nfull,1e-5,2.0\nfull,1e-4,1.5\nfull,1e-3,1.7\n"
    (tmp_path / "up").mkdir()
    down = imported(tmp_path, rows, "--set", "direction=minimize")
    up = imported(tmp_path / "up", rows)

    assert (down.direction, up.direction) == ("minimize", "maximize")
    best = [choice(sweep, "full") for sweep in (down, up)]
    assert [c.learning_rate if c else None for c in best] == [1e-4, 1e-5]
