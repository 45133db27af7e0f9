"""Sweeps that others ran: whose data it is, what is known of it, and nothing that is not."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pandas as pd
import pytest

from analysis.__main__ import main
from analysis.estimates.optimum import assumed_ratio
from analysis.estimates.search import search_summary
from analysis.reading.load import load
from analysis.reporting.imports import SPREADS
from tests.published import published
from tests.unit.analysis.reporting.pages import Page

pytestmark = [pytest.mark.usefixtures("no_pixels"), pytest.mark.timeout(60)]
HUMP = {1e-6: 0.2, 3e-6: 0.3, 1e-5: 0.6, 3e-5: 0.62, 1e-4: 0.3, 3e-4: 0.05}
HEADER = "kind,r,lr,acc,base\n"


def rows(method: str, rank: str, shift: float) -> str:
    return "".join(
        f"{method},{rank},{rate * shift:g},{score},0.18\n" for rate, score in HUMP.items()
    )


@pytest.fixture
def imported(tmp_path: Path) -> Path:
    source = tmp_path / "others.csv"
    again = "full,,3e-05,0.60,0.18\n"  # a cell that was run twice
    source.write_text(HEADER + rows("full", "", 1) + again + rows("lora", "8", 10))
    columns = "method=kind,lora_rank=r,learning_rate=lr,score_final=acc,score_base=base"
    constants = ["--set", "model=Their-1B,task=theirs"]
    out = tmp_path / "theirs"
    assert main(["import", str(source), "--map", columns, *constants, "--out", str(out)]) == 0
    return out


def shown(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[list[str], Page]:
    capsys.readouterr()
    assert main(["report", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    return lines, Page((path / "report" / "index.html").read_text(encoding="utf-8"))


def test_the_first_line_says_whose_data_it_is(
    imported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, page = shown(imported, capsys)
    digest = hashlib.sha256((imported.parent / "others.csv").read_bytes()).hexdigest()

    assert lines[0] == (
        f"Imported, run by others: others.csv (sha256 {digest[:12]}, 13 rows). "
        "Model Their-1B, task theirs."
    )
    assert lines[1].startswith("The criteria are this package's defaults, fixed before it saw")
    assert lines[0] in page.body and "lab-scale" not in page.body
    assert digest in page.body.split("Provenance")[1]


def test_methods_say_what_is_known_and_once_what_is_not(
    imported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, page = shown(imported, capsys)
    body = " ".join(page.body.split())

    assert "A run's score is acc as imported; higher is better." in body
    assert "All runs: model.name Their-1B, task.name theirs." in body
    assert "2 arms at 6 learning rates each, from 1e-6 to 3e-3." in body
    assert "1 seed an arm: the source names no seed." in body
    silence = re.search(r"The import does not state ([^.]*)\.", body)
    assert silence is not None
    assert silence[1].startswith("precision, LoRA alpha") and "untrained" not in silence[1]
    assert not re.search(r"\b(None|nan|NaN)\b", body)
    assert "AdamW" not in body and "evaluations of the accuracy" not in body


def test_a_cell_that_ran_twice_is_listed_with_its_spread(
    imported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, page = shown(imported, capsys)
    table = pd.read_csv(imported / "report" / "tables" / "repeats.csv")

    assert table.to_dict("records") == [
        {"arm": "full", "phase": "search", "learning_rate": 3e-5, "seed": 0, "runs": 2}
        | {"lowest": 0.6, "highest": 0.62, "spread": pytest.approx(0.02)}
    ]
    assert "Run more than once" in page.body


def test_one_seed_carries_no_interval_but_an_assumed_one(
    imported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, page = shown(imported, capsys)
    search = search_summary(load(imported))
    curves = search.curves["lora-r8"], search.curves["full"]
    narrow, wide = (
        assumed_ratio(*curves, search.fraction_of(*search.curves), tau) for tau in SPREADS
    )

    body = " ".join(page.body.split("Methods")[-1].split())
    said = f"lora-r8 over full {narrow.point:.1f} [{narrow.low:.1f}, {narrow.high:.1f}] to "
    assert f"{said}[{wide.low:.1f}, {wide.high:.1f}]: assumed, not measured." in body
    assert "One seed cannot carry a seed interval" in body
    assert f"{narrow.point:.1f} (no interval, n = 1)" in page.body
    assert 'class="verdict supported"' not in page.html


def test_a_source_that_names_neither_model_nor_task(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "bare.csv"
    source.write_text("lora_rank,learning_rate,loss,seed\n,1e-4,0.5,0\n,1e-3,0.4,0\n")
    out = tmp_path / "bare"
    options = ["--map", "score_final=loss", "--set", "direction=minimize", "--out", str(out)]

    assert main(["import", str(source), *options]) == 0
    lines, page = shown(out, capsys)
    assert re.fullmatch(r"Imported, run by others: bare.csv \(sha256 \w{12}, 2 rows\)\.", lines[0])
    assert any(line.endswith("FullFT (full) scores 0.400. Lower is better.") for line in lines)
    assert "A run's score is loss as imported; lower is better." in page.body
    assert not re.search(r"\b(None|nan|NaN|unnamed)\b", page.body)


def test_the_published_grpo_sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = "score_final=final_eval_accuracy,score_best=best_eval_accuracy"
    source = ["import", str(published("qwen3_1p7b_math_runs.csv")), "--map", columns]
    history = ["--history", str(published("qwen3_1p7b_math_history.csv"))]
    history += ["--history-map", "run_id=run_id,step=step,eval/accuracy=eval_accuracy"]
    out = tmp_path / "qwen"
    constants = ["--set", "task=MATH,objective=grpo"]

    assert main([*source, *history, *constants, "--out", str(out)]) == 0
    lines, page = shown(out, capsys)
    # Maxima as published; ratios read off the published curves at f = 0.2.
    assert any("(lora-r1) scores 0.879" in line for line in lines)
    table = pd.read_csv(out / "report" / "tables" / "arms.csv").set_index("arm")
    assert list(table["score"]) == [0.885, 0.879, 0.869]
    assert list(table["selected_learning_rate"]) == [2e-5, 8e-5, 3e-5]
    ratios = table.loc[["lora-r1", "lora-r16"], "ratio_to_full"]
    assert list(ratios) == pytest.approx([3.4, 2.9], abs=0.05)
    assert table["ratio_to_full_low"].isna().all()
    assert "not_unimodal" in table.loc["lora-r16", "optimum_flags"]
    repeats = pd.read_csv(out / "report" / "tables" / "repeats.csv")
    assert list(repeats["arm"]) == ["full"] and list(repeats["learning_rate"]) == [3e-5]
    assert not re.search(r"\b(None|nan|NaN)\b", page.body)


def test_the_published_sft_sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = ["import", str(published("tulu3_sft_rank_lr.csv")), "--map", "score_final=test_nll"]
    out = tmp_path / "tulu"
    constants = ["--set", "direction=minimize,task=tulu3,objective=sft"]

    assert main([*source, *constants, "--out", str(out)]) == 0
    lines, page = shown(out, capsys)
    assert "18 models, task tulu3." in lines[0]
    assert "lower is better" in page.body
    assert page.body.count("FullFT") < 40 and "Minus FullFT" not in page.body
    table = pd.read_csv(out / "report" / "tables" / "rank_ratios.csv")
    inner = table[(table["rank"] >= 64) & (table["reference_rank"] == 4)].dropna(subset="ratio")
    assert len(inner) >= 6 and inner["ratio"].between(1.2, 2.0).all()
    edges = table[table["ratio"].isna()]
    assert len(edges) > 5 and edges["no_interval_because"].str.contains("grid").all()
    assert len(pd.read_csv(out / "report" / "tables" / "repeats.csv")) == 31
