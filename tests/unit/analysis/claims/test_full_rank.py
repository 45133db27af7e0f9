"""C12: numerical rank, and the effective one beside a Gaussian update's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.claims import c12_full_rank, not_addressed
from tests.unit.analysis.claims.worlds import only
from tests.unit.analysis.probed_sweeps import HALF, measured, probed_sweep
from tests.unit.analysis.simulated_sweeps import judged


def arm(numerical: list[float], effective: list[float]) -> list[dict[str, Any]]:
    """The Gaussian updates' effective rank is 0.8 of the full one."""
    rows = zip(numerical, effective, strict=True)
    names = ("numerical_rank_share", "effective_rank_share")
    return [measured(observed=dict(zip(names, row, strict=True))) for row in rows]


@pytest.mark.parametrize(
    ("numerical", "effective", "expected"),
    [
        ([1.0, 1.0, 1.0], [0.6, 0.62, 0.64], "supported"),  # 0.775 of the Gaussian one
        ([0.5, 0.51, 0.52], [0.6, 0.62, 0.64], "refuted"),
        ([1.0, 1.0, 1.0], [0.1, 0.11, 0.12], "refuted"),
        ([1.0, 1.0, 1.0], [0.36, 0.40, 0.44], "undecided"),
        ([0.90, 0.95, 1.0], [0.6, 0.62, 0.64], "undecided"),
    ],
)
def test_both_ranks_must_be_high(
    tmp_path: Path, numerical: list[float], effective: list[float], expected: str
) -> None:
    given = probed_sweep(tmp_path, {"full": arm(numerical, effective)})
    found = only(judged(c12_full_rank.check, given))
    assert found.verdict == expected
    ratio, step = effective[1] / 0.8, (effective[1] - effective[0]) / 0.8
    half = 2.920 * step / 3**0.5
    assert found.interval == pytest.approx((ratio - half, ratio + half), rel=1e-3)
    assert bool(found.missing) == (expected == "undecided")
    assert "10.0 % [10.0, 10.0] in the first 1" in found.reason


def test_lora_and_bfloat16_are_not_asked(tmp_path: Path) -> None:
    arms = {"full-bf16": [measured(None)] * 3, "lora-r1": [measured()] * 3}
    given = probed_sweep(tmp_path, arms, configs={"full-bf16": HALF})
    assert judged(c12_full_rank.check, given) == []
    lacks = {claim.claim_id: lack for claim, lack in not_addressed(given)}
    assert lacks["C12"] == "a FullFT arm in float32 whose weights were measured"
