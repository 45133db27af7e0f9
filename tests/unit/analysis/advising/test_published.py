"""Published rules against the values that were printed, and against the published data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analysis.advising.published import (
    GRPO_PLATEAUS,
    OBSERVED_FACTORS,
    PUBLIC_WIDTH,
    Sourced,
    check_family,
    cookbook_rate,
    published_ratio,
    reinforced_rate,
    supervised_rule,
    to_width,
    used_rates,
)
from analysis.estimates.curve import LrCurve
from analysis.estimates.optimum import optimum
from tests.published import published

WIDTHS = {
    "meta-llama/Llama-3.1-8B": ("llama", 4096),
    "meta-llama/Llama-3.2-1B": ("llama", 2048),
    "meta-llama/Llama-3.3-70B-Instruct": ("llama", 8192),
    "Qwen/Qwen3-8B": ("qwen3", 4096),
    "Qwen/Qwen3-32B": ("qwen3", 5120),
    "Qwen/Qwen3-30B-A3B-Base": ("qwen3", 2048),
    "Qwen/Qwen3-235B-A22B-Instruct-2507": ("qwen3", 4096),
}


@pytest.mark.parametrize(
    ("family", "hidden_size", "rate"),
    [
        ("llama", 2048, 4.91e-4),
        ("llama", 4096, 2.86e-4),
        ("llama", 8192, 1.66e-4),
        ("qwen3", 4096, 4.73e-4),
        ("qwen3", 2000, 5e-4),
    ],
)
def test_the_rule_gives_the_values_of_the_cookbook(
    family: str, hidden_size: int, rate: float
) -> None:
    assert cookbook_rate(family, hidden_size) == pytest.approx(rate, rel=0.002)


def test_without_its_factor_of_ten_the_rule_is_that_of_full_fine_tuning() -> None:
    lora, full = (supervised_rule(method, "llama", 4096) for method in ("lora", "full"))
    assert full.value == pytest.approx(lora.value / 10)
    assert full.interval is None and full.range_is == "no interval published"
    assert lora.interval == pytest.approx((lora.value, 2.1 * lora.value))


def test_an_unknown_family_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="family 'gemma'; known are llama, qwen3"):
        check_family("gemma")
    assert [check_family(name) for name in ("Qwen3", None)] == ["qwen3", None]


def test_another_width_moves_the_point_and_widens_the_range() -> None:
    found = Sourced(1e-4, 5e-5, 2e-4, "measured", "here", "this", "never")
    narrow = to_width(found, 2000, 1000, "llama")
    assert narrow.value == pytest.approx(1e-4 * 2**0.781)
    assert narrow.interval == pytest.approx((5e-5, 4e-4))
    wide = to_width(found, 2000, 4000, None)
    assert wide.value == pytest.approx(1e-4)
    assert wide.interval == pytest.approx((2.5e-5, 2e-4))
    assert "every exponent from 0 to 1" in wide.range_is
    assert to_width(found, 2000, 2000, "llama") == found
    assert to_width(found, 2000, None, "llama") == found


@pytest.mark.parametrize(
    ("method", "rank", "place"), [("full", 8, 0), ("lora", 2, 1), ("lora", 32, 16)]
)
def test_the_nearest_rank_of_the_public_sweep_is_taken(method: str, rank: int, place: int) -> None:
    found = reinforced_rate(method, rank, "qwen3", PUBLIC_WIDTH)
    assert found.value == GRPO_PLATEAUS[place].rate
    assert found.n == 1 and "one seed, not a confidence interval" in found.range_is


def test_the_grpo_ratio_names_the_middles_of_the_plateaus_too() -> None:
    ranges = [published_ratio(rank)[1].range_is for rank in (1, 16)]
    assert [text[-3:] for text in ranges] == ["3.4", "2.9"]


def test_no_published_number_is_bare() -> None:
    for method in ("full", "lora"):
        numbers = [
            used_rates(method),
            reinforced_rate(method, 8, None, None),
            supervised_rule(method, "qwen3", 2560),
            *published_ratio(8),
        ]
        for number in numbers:
            assert all((number.range_is, number.source, number.scope, number.checked))
            if number.interval is not None:
                assert number.interval[0] <= number.value <= number.interval[1]


def test_plateaus_of_the_public_grpo_sweep() -> None:
    """The constants are what the estimator makes of the published runs."""
    runs = pd.read_csv(published("qwen3_1p7b_math_runs.csv"))
    for rank, rows in runs.groupby(runs["lora_rank"].fillna(0).astype(int)):
        scores = rows.groupby("learning_rate")["final_eval_accuracy"].mean()
        curve = LrCurve(
            arm=str(rank),
            learning_rates=tuple(map(float, scores.index)),
            scores=scores.to_numpy()[None],
            seeds=(42,),
            base=0.176,
            collapsed=np.zeros((1, len(scores)), dtype=bool),
        )
        found, place = optimum(curve, 0.2), GRPO_PLATEAUS[int(str(rank))]
        assert place.rate == pytest.approx(found.lr.point, rel=0.01)
        assert place.low == pytest.approx(found.ramp.point, rel=0.03)
        assert place.high == pytest.approx(found.cliff.point, rel=0.04)


def test_observed_factors_are_those_of_the_published_sft_sweep() -> None:
    """Vertices through the best rate and its neighbours, over the rule; edges as the grid's end."""
    sweep = pd.read_csv(published("tulu3_sft_rank_lr.csv"))
    factors: dict[str, list[float]] = {"llama": [], "qwen3": []}
    for (model, _), rows in sweep.groupby(["model", "lora_rank"]):
        if model not in WIDTHS:
            continue
        family, hidden_size = WIDTHS[str(model)]
        loss = rows.groupby("learning_rate")["test_nll"].mean()
        best = int(loss.to_numpy().argmin())
        log10 = np.log10(loss.index.to_numpy(dtype=float))
        place = log10[best]
        if 0 < best < len(loss) - 1:
            near = slice(best - 1, best + 2)
            square, slope, _ = np.polyfit(log10[near], loss.to_numpy()[near], 2)
            place = -slope / (2 * square)
        factors[family].append(float(10**place) / cookbook_rate(family, hidden_size))
    assert min(factors["llama"]) == pytest.approx(OBSERVED_FACTORS["llama"][0], abs=0.06)
    assert min(factors["qwen3"]) == pytest.approx(OBSERVED_FACTORS["qwen3"][0], abs=0.01)
    for family, found in factors.items():
        assert max(found) == pytest.approx(OBSERVED_FACTORS[family][1], abs=0.07)
