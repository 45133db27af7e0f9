"""C13: where updates point, beside random ones of equal norm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.claims import c13_off_principal
from tests.unit.analysis.claims.worlds import only
from tests.unit.analysis.probed_sweeps import CHANCE, HALF, SFT, measured, probed_sweep
from tests.unit.analysis.simulated_sweeps import judged

NAMES = ("largest_on_principal", "angle_left_mean_deg", "angle_right_mean_deg", "spectral_shift")


def arm(*factors: float, fp32: int | None = 0) -> list[dict[str, Any]]:
    """Three seeds, each statistic its factor times chance, less and more by a hundredth."""
    return [
        measured(
            fp32,
            observed={n: (f + aside) * CHANCE[n] for n, f in zip(NAMES, factors, strict=True)},
        )
        for aside in (-0.01, 0.0, 0.01)
    ]


@pytest.mark.parametrize(
    ("factors", "expected"),
    [
        ((0.5, 0.6, 0.7, 0.8), "supported"),
        ((0.5, 0.6, 0.7, 1.1), "refuted"),
        ((0.5, 0.6, 0.7, 1.0), "undecided"),
        # An interval of 90 % reaches down to 1.003, one corrected for four looks to 0.99.
        ((0.5, 0.6, 0.7, 1.02), "undecided"),
    ],
)
def test_all_must_be_below_chance(
    tmp_path: Path, factors: tuple[float, ...], expected: str
) -> None:
    found = only(judged(c13_off_principal.check, probed_sweep(tmp_path, {"full": arm(*factors)})))
    assert found.verdict == expected
    half = 2.920 * 0.01 / 3**0.5
    assert found.interval == pytest.approx((0.5 - half, 0.5 + half), rel=1e-3)
    assert f"shift of the singular values {factors[3]:.2f} [" in found.reason


def test_others_are_stated_beside_it(tmp_path: Path) -> None:
    arms = {
        "full": arm(0.5, 0.6, 0.7, 0.8),
        "full-bf16": arm(0.2, 0.6, 0.7, 0.8, fp32=None),
        "full-sft": arm(1.5, 1.6, 1.7, 1.8),
    }
    given = probed_sweep(tmp_path, arms, configs={"full-bf16": HALF, "full-sft": SFT})
    found = only(judged(c13_off_principal.check, given))
    assert found.arms == ("full",)
    assert "Overlap in pure bfloat16: full-bf16 0.20 [" in found.reason
    assert "Overlap in supervised training: full-sft 1.50 [" in found.reason
