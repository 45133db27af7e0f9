"""C11: unchanged weights, in the weights that were trained and in a copy of 16 bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.claims import c11_sparsity, not_addressed
from analysis.claims.verdict import Verdict
from analysis.reading.sweep import Sweep
from tests.unit.analysis.claims.worlds import only
from tests.unit.analysis.probed_sweeps import HALF, SFT, measured, probed_sweep
from tests.unit.analysis.simulated_sweeps import judged


def verdicts(found: Sweep) -> dict[str, Verdict]:
    return {verdict.arms[0]: verdict for verdict in judged(c11_sparsity.check, found)}


def arm(fp32: list[int], bf16: int = 900) -> list[dict[str, Any]]:
    return [measured(count, bf16) for count in fp32]


@pytest.mark.parametrize(
    ("fp32", "bf16", "expected", "flags"),
    [
        ([800, 810, 820], 900, "supported", ()),
        ([100, 110, 120], 200, "refuted", ()),
        ([100, 110, 120], 900, "refuted", ("precision_artefact",)),
        ([980, 985, 990], 990, "refuted", ()),
        ([660, 700, 740], 900, "undecided", ()),
    ],
)
def test_the_float32_weights_decide(
    tmp_path: Path, fp32: list[int], bf16: int, expected: str, flags: tuple[str, ...]
) -> None:
    found = verdicts(probed_sweep(tmp_path, {"full": arm(fp32, bf16)}))["full"]
    assert (found.verdict, found.flags, found.n_seeds) == (expected, flags, 3)
    mean, step = fp32[1] / 1000, (fp32[1] - fp32[0]) / 1000
    half = 2.920 * step / 3**0.5  # t at 2 degrees of freedom; the SD of a, a + d, a + 2 d is d
    assert found.interval == pytest.approx((mean - half, mean + half), rel=1e-3)
    assert f"{bf16 / 10:.1f} % [{bf16 / 10:.1f}, {bf16 / 10:.1f}] bit for bit" in found.reason
    assert ("a precision artefact" in found.reason) == bool(flags)


def test_bfloat16_alone_decides_nothing(tmp_path: Path) -> None:
    given = probed_sweep(tmp_path, {"full": [measured(None, 800)] * 3}, configs={"full": HALF})
    found = verdicts(given)["full"]
    assert (found.verdict, found.flags) == ("undecided", ())
    assert found.missing == "full with model.dtype=float32"


def test_the_same_run_in_both_precisions_shows_the_artefact(tmp_path: Path) -> None:
    """800, 810, 840 less 10, 30, 20 are 790, 780, 820: mean 79.67 points, SD 2.08."""
    arms = {
        "full": arm([10, 30, 20]),
        "full-bf16": [measured(None, count) for count in (800, 810, 840)],
    }
    factors = ("method", "model.dtype")
    given = probed_sweep(tmp_path, arms, configs={"full-bf16": HALF}, factors=factors)
    found = verdicts(given)["full-bf16"]
    assert (found.verdict, found.flags) == ("undecided", ("precision_artefact",))
    assert "leave 2.0% unchanged, pure bfloat16 (full-bf16) 81.7%" in found.reason
    assert "+79.7 points [+76.2, +83.2]: a precision artefact." in found.reason
    assert verdicts(given)["full"].flags == ("precision_artefact",)


def test_without_a_difference_there_is_no_artefact(tmp_path: Path) -> None:
    arms = {"full": arm([800, 810, 820]), "full-bf16": [measured(None, n) for n in (802, 805, 823)]}
    given = probed_sweep(tmp_path, arms, configs={"full-bf16": HALF})
    found = verdicts(given)["full-bf16"]
    assert "which holds 0." in found.reason
    assert found.flags == ()


def test_two_seeds_are_undecided(tmp_path: Path) -> None:
    found = verdicts(probed_sweep(tmp_path, {"full": arm([800, 810])}))["full"]
    assert (found.verdict, found.interval, found.flags) == ("undecided", None, ("few_seeds",))
    assert found.missing == "1 more report seed"


def test_supervised_arms_are_not_asked(tmp_path: Path) -> None:
    arms = {"full": arm([800, 810, 820]), "full-sft": arm([10, 20, 30])}
    given = probed_sweep(tmp_path, arms, configs={"full-sft": SFT})
    assert only(judged(c11_sparsity.check, given)).arms == ("full",)


def test_what_was_not_measured_is_no_evidence(tmp_path: Path) -> None:
    gone = {"left_out": "save=none"}
    given = probed_sweep(tmp_path, {"full": [gone, {"failed": "ValueError: x"}, None]})
    lacks = {claim.claim_id: lack for claim, lack in not_addressed(given)}
    assert "probes=default" in lacks["C11"] and "probes=default" in lacks["C13"]
