"""Two published sweeps, as a user with a foreign CSV would bring them in."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.__main__ import main
from analysis.reading.arms import arms, choice
from analysis.reading.load import load
from tests.published import published


def test_one_seed_of_reinforcement_learning_on_math(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, history = (published(f"qwen3_1p7b_math_{part}.csv") for part in ("runs", "history"))
    out = tmp_path / "qwen"
    code = main(
        ["import", str(runs), "--out", str(out),
         "--map", "score_final=final_eval_accuracy,score_best=best_eval_accuracy",
         "--history", str(history),
         "--history-map", "run_id=run_id,step=step,eval/accuracy=eval_accuracy"]
    )  # fmt: skip
    sweep, said = load(out), capsys.readouterr().out

    assert code == 0 and sweep.complete and sweep.excluded.empty
    assert (len(sweep.runs), sweep.direction, sweep.score_metric) == (
        49,
        "maximize",
        "eval/accuracy",
    )
    assert [arm.name for arm in arms(sweep)] == ["full", "lora-r1", "lora-r16"]
    assert sweep.plan["experiment"]["seeds"] == {"search": [42], "report": []}
    assert sweep.runs["score_base"].mean() == pytest.approx(0.176, abs=0.001)
    assert sweep.runs["score_base"].median() == 0.176
    best = {arm.name: choice(sweep, arm.name) for arm in arms(sweep)}
    rates = {name: found.learning_rate if found else None for name, found in best.items()}
    assert rates == {"full": 2e-5, "lora-r1": 8e-5, "lora-r16": 3e-5}
    accuracy = sweep.metrics[sweep.metrics["run_id"] == "0injnfxt"].set_index("step")["value"]
    assert (accuracy[0], accuracy[5], accuracy[50]) == (0.176, 0.314, 0.825)
    assert "full at 3e-5 (0.835, 0.816)" in said
    assert f"report: python -m analysis report {out}" in said


def test_supervised_fine_tuning_of_eighteen_models(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "tulu"
    options = ["--map", "score_final=test_nll", "--set", "direction=minimize"]
    code = main(["import", str(published("tulu3_sft_rank_lr.csv")), *options, "--out", str(out)])
    sweep, said = load(out), capsys.readouterr().out

    assert code == 0 and sweep.complete and sweep.excluded.empty
    assert (len(sweep.runs), sweep.direction, sweep.score_metric) == (273, "minimize", "test_nll")
    assert sweep.runs["model"].nunique() == 18
    assert sweep.runs["score_base"].isna().all()
    assert set(sweep.runs["method"]) == {"lora"}
    assert sweep.plan["experiment"]["factors"] == ["method.rank", "model.name"]
    assert "31 cells ran more than once with one seed" in said
    assert "score of the untrained model: none" in said
    # The lowest mean of that file's rows of Qwen3-8B at rank 4, by hand.
    chosen = choice(sweep, "lora-r4-qwen3-8b")
    assert chosen is not None and chosen.learning_rate == 3e-4
