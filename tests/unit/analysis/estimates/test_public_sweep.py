"""A published single-seed sweep: GRPO of Qwen3-1.7B on MATH, FullFT against LoRA."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from analysis.estimates.curve import LrCurve, learning_rate_curves
from analysis.estimates.optimum import assumed_ratio, lr_ratio
from analysis.estimates.plateau import shared_fraction
from tests.published import published


@pytest.fixture(name="curves")
def _curves() -> dict[str, LrCurve]:
    runs, history = (
        pd.read_csv(published(f"qwen3_1p7b_math_{part}.csv")) for part in ("runs", "history")
    )
    base = history[history["step"] == 0].set_index("run_id")["eval_accuracy"]  # about 0.176
    rank = runs["lora_rank"].fillna(0).astype(int).astype(str)
    return learning_rate_curves(
        runs.assign(
            arm="r" + rank,
            phase="search",
            status="completed",
            direction="maximize",
            score_final=runs["final_eval_accuracy"],
            score_base=runs["run_id"].map(base),
        )
    )


@pytest.mark.parametrize(
    ("arm", "ramp", "cliff", "centre"), [("r1", 2.3, 5.1, 3.4), ("r16", 2.7, 3.1, 2.9)]
)
def test_published_ratios(
    curves: dict[str, LrCurve], arm: str, ramp: float, cliff: float, centre: float
) -> None:
    fraction = shared_fraction(curves.values())
    assert fraction == pytest.approx(0.2)
    ratio = lr_ratio(curves[arm], curves["r0"], fraction)
    rounded = [round(e.point, 1) for e in (ratio.ramp, ratio.cliff, ratio.centre)]
    assert rounded == [ramp, cliff, centre]
    assert all(e.interval is None for e in (ratio.ramp, ratio.cliff, ratio.centre))
    assert "few_seeds" in ratio.flags
    assert ("not_unimodal" in ratio.flags) == (arm == "r16")


@pytest.mark.parametrize(
    ("arm", "tau", "low", "high"),
    [
        ("r1", 0.07, 2.3, 5.0),
        ("r1", 0.11, 1.9, 6.2),
        ("r16", 0.07, 1.9, 4.3),
        ("r16", 0.11, 1.5, 5.3),
    ],
)
def test_what_an_assumed_spread_would_give(
    curves: dict[str, LrCurve], arm: str, tau: float, low: float, high: float
) -> None:
    found = assumed_ratio(curves[arm], curves["r0"], 0.2, tau=tau)
    assert found.point == lr_ratio(curves[arm], curves["r0"], 0.2).centre.point
    assert [round(x, 1) for x in found.interval or ()] == [low, high]
    assert 1.4 < (found.high or 0) / found.point < 1.9
    assert f"by {tau:g} decades" in found.assumption


def test_an_assumed_spread_must_be_positive(curves: dict[str, LrCurve]) -> None:
    with pytest.raises(ValueError, match="must be positive, got 0"):
        assumed_ratio(curves["r1"], curves["r0"], 0.2, tau=0)


def test_a_cell_that_was_run_twice_counts_once(curves: dict[str, LrCurve]) -> None:
    full = curves["r0"]
    assert full.n_seeds == 1
    i = next(i for i, rate in enumerate(full.learning_rates) if math.isclose(rate, 3e-5))
    assert full.scores[0, i] == pytest.approx((0.835 + 0.816) / 2)
