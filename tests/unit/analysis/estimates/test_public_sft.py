"""A published sweep of supervised fine-tuning: LoRA ranks of 18 models, lower is better."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from analysis.estimates.curve import LrCurve, learning_rate_curves
from analysis.estimates.optimum import assumed_ratio, lr_ratio, optimum
from tests.published import published


@pytest.fixture(name="models")
def _models() -> dict[str, dict[str, LrCurve]]:
    rows = pd.read_csv(published("tulu3_sft_rank_lr.csv"))
    runs = rows.assign(
        arm="r" + rows["lora_rank"].astype(str),
        phase="search",
        status="completed",
        direction="minimize",
        score_final=rows["test_nll"],
        score_base=np.nan,
        seed=0,
    )
    return {str(model): learning_rate_curves(own) for model, own in runs.groupby("model")}


def high_ranks(curves: dict[str, LrCurve]) -> list[LrCurve]:
    return [curve for name, curve in curves.items() if int(name[1:]) >= 64]


def test_high_ranks_want_somewhat_more_than_rank_4(models: dict[str, dict[str, LrCurve]]) -> None:
    ratios = [
        lr_ratio(high, curves["r4"], 0.2)
        for curves in models.values()
        for high in high_ranks(curves)
    ]
    interior = [ratio.centre.point for ratio in ratios if math.isfinite(ratio.centre.point)]
    assert len(interior) == 10
    assert all(1.2 < ratio < 2.0 for ratio in interior)
    assert np.median(interior) == pytest.approx(1.6, abs=0.1)  # as published
    edges = [ratio.flags for ratio in ratios if math.isnan(ratio.centre.point)]
    assert all("edge_high" in flags for flags in edges)


def test_an_optimum_at_the_end_of_a_grid_is_flagged(models: dict[str, dict[str, LrCurve]]) -> None:
    found = optimum(models["meta-llama/Llama-3.2-1B"]["r128"], 0.2)
    assert {"parabola", "few_seeds", "edge_high"} <= set(found.flags)
    assert found.lr.point == pytest.approx(1e-3) and found.lr.interval is None


def test_runs_of_one_cell_are_one(models: dict[str, dict[str, LrCurve]]) -> None:
    curve = models["Qwen/Qwen3-235B-A22B-Instruct-2507"]["r1"]
    assert curve.scores[0, 0] == pytest.approx(-(0.4661 + 0.4665) / 2)
    assert curve.base is None


def test_an_assumed_spread_gives_a_labelled_interval(
    models: dict[str, dict[str, LrCurve]],
) -> None:
    curves = models["Qwen/Qwen3.5-4B"]
    found = assumed_ratio(curves["r64"], curves["r4"], 0.2, tau=0.05)
    # The wider cell at 3e-4 is log10(10 / 3) = 0.522879: grid term 0.4 * 0.522879^2 = 0.109361;
    # half width 1.644854 * sqrt(2 * 0.05^2 + 0.109361^2) = 0.214209 decades.
    assert found.interval == pytest.approx(
        (found.point / 10**0.214209, found.point * 10**0.214209), rel=1e-5
    )
    assert "assumed, not measured" in found.assumption
    llama = models["meta-llama/Llama-3.2-1B"]
    assert assumed_ratio(llama["r64"], llama["r4"], 0.2).interval is None
