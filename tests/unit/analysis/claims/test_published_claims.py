"""What the claims say of two published sweeps, brought in as a user would."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from analysis.__main__ import main
from analysis.claims import check_claims, not_addressed
from analysis.claims.verdict import Verdict
from analysis.reading.load import load
from analysis.reading.sweep import Sweep
from tests.published import published


def imported(out: Path, source: str, options: Sequence[str]) -> Sweep:
    assert main(["import", str(published(source)), *options, "--out", str(out)]) == 0
    return load(out)


def by_arm(found: list[Verdict], claim_id: str) -> dict[str, Verdict]:
    return {v.arms[0]: v for v in found if v.claim_id == claim_id}


def test_one_seed_of_reinforcement_learning_decides_nothing(tmp_path: Path) -> None:
    history = published("qwen3_1p7b_math_history.csv")
    columns = "score_final=final_eval_accuracy,score_best=best_eval_accuracy"
    options = ["--map", columns, "--history", str(history)]
    options += ["--history-map", "run_id=run_id,step=step,eval/accuracy=eval_accuracy"]
    sweep = imported(tmp_path / "qwen", "qwen3_1p7b_math_runs.csv", options)
    found = check_claims(sweep)
    assert {v.verdict for v in found} == {"undecided"}
    assert all(v.interval is None and v.missing for v in found)
    ratios, widths = by_arm(found, "C3"), by_arm(found, "C6")
    # Read off the published curves at f = 0.2: middles, ramps and cliffs.
    assert ratios["lora-r1"].estimate == pytest.approx(3.4, abs=0.05)
    assert ratios["lora-r16"].estimate == pytest.approx(2.9, abs=0.05)
    assert "the ramp lies at 2.3 times, the cliff at 5.1 times FullFT's" in widths["lora-r1"].reason
    assert "the ramp lies at 2.7 times, the cliff at 3.1 times" in widths["lora-r16"].reason
    for verdict in ratios.values():
        assert "one seed cannot carry an interval" in verdict.reason
        assert "assumed, not measured" in verdict.reason
        assert "precision_unknown" in verdict.flags  # FullFT was in pure bfloat16
    assert "not_unimodal" in ratios["lora-r16"].flags
    parity = by_arm(found, "C1")["lora-r16"]
    assert "(lora-r16 0.869, full 0.885) is luck" in parity.reason


def test_supervised_fine_tuning_moves_the_rate_less_than_twofold(tmp_path: Path) -> None:
    options = ["--map", "score_final=test_nll", "--set", "direction=minimize"]
    sweep = imported(tmp_path / "tulu", "tulu3_sft_rank_lr.csv", options)
    found = check_claims(sweep)
    assert {v.claim_id for v in found} == {"C5"}
    lacks = {claim.claim_id: lack for claim, lack in not_addressed(sweep)}
    assert {lacks[name] for name in ("C1", "C2", "C3", "C6")} == {"a FullFT arm to compare with"}
    inner = [v for v in found if v.estimate is not None]
    edges = [v for v in found if v.estimate is None]
    assert len(inner) >= 6 and len(edges) >= 4
    # The highest rank, 64 or 128, over rank 4: published 1.3 to 1.85.
    assert all(1.2 <= (v.estimate or 0) <= 2.0 for v in inner)
    assert all("few_seeds" in v.flags and v.missing == "2 more search seeds" for v in inner)
    assert all("Left out: " in v.reason and "grid" in v.missing for v in edges)
