"""C14: three parts, of which each can refute and all must hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.claims import c14_sharpening, not_addressed
from analysis.claims.verdict import Verdict
from analysis.reading.sweep import Sweep
from study.records.files import write_json
from tests.unit.analysis.probed_sweeps import SFT, measured, probed_sweep
from tests.unit.analysis.simulated_sweeps import judged

GAIN, FALL, LEAD = (0.1, 0.2, 0.3), (0.5, 0.6, 0.7), (0.01, 0.02, 0.03)


def behaviour(gain: float, fall: float, lead: float, samples: int = 4) -> dict[str, Any]:
    base = {"pass_at_k": {"1": 0.2, str(samples): 0.9}, "answer_entropy": [1.0, 2.0]}
    tuned = {"pass_at_k": {"1": 0.2 + gain, str(samples): 0.9 - lead}}
    return {
        "settings": {"samples": samples},
        "base": base,
        "tuned": {**tuned, "answer_entropy": [1.0 - fall, 2.0 - fall]},
        "crossover": 2 if lead > 0 else None,
    }


def sweep_of(path: Path, parts: list[dict[str, Any] | None], **settings: Any) -> Sweep:
    found = probed_sweep(path, {"full": [measured()] * len(parts)}, **settings)
    runs = found.runs[found.runs["phase"] == "report"]
    for run_id, seed in zip(runs["run_id"], runs["seed"], strict=True):
        content = {"schema_version": 2, "run_id": run_id, "behaviour": parts[seed - 100]}
        write_json(path / "full" / run_id / "probes.json", content)
    return found


def verdict(found: Sweep) -> Verdict:
    (one,) = judged(c14_sharpening.check, found)
    return one


def of(path: Path, gain=GAIN, fall=FALL, lead=LEAD) -> Verdict:  # type: ignore[no-untyped-def]
    parts = [behaviour(*row) for row in zip(gain, fall, lead, strict=True)]
    return verdict(sweep_of(path, parts))


def test_all_three_parts_support_it(tmp_path: Path) -> None:
    found = of(tmp_path)
    half = 2.920 * 0.01 / 3**0.5  # t at 2 degrees of freedom; the SD of a, a + d, a + 2 d is d
    assert found.verdict == "supported"
    assert found.estimate == pytest.approx(0.02)
    assert found.interval == pytest.approx((0.02 - half, 0.02 + half), rel=1e-3)
    assert "The base overtakes in 3 of 3 runs, from k = 2, 2, 2 on." in found.reason


@pytest.mark.parametrize("part", [{"gain": (-0.1, -0.11, -0.12)}, {"fall": (-0.5, -0.51, -0.52)}])
def test_one_part_that_goes_the_other_way_refutes_it(tmp_path: Path, part: Any) -> None:
    assert of(tmp_path, **part).verdict == "refuted"


def test_a_tuned_model_that_stays_ahead_refutes_it(tmp_path: Path) -> None:
    found = of(tmp_path, lead=(-0.1, -0.11, -0.12))
    assert found.verdict == "refuted"
    assert "In no run does the base overtake." in found.reason


@pytest.mark.parametrize("lead", [(-0.03, 0.0, 0.03), (0.0, 0.0, 0.0), (-0.01, -0.02, -0.03)])
def test_a_lead_that_may_be_none_leaves_it_open(tmp_path: Path, lead: Any) -> None:
    """The last is below 0 at 90 %, and no longer after correction for three parts."""
    assert of(tmp_path, lead=lead).verdict == "undecided"


def test_two_seeds_and_mixed_samples_decide_nothing(tmp_path: Path) -> None:
    part = behaviour(0.1, 0.5, 0.1)
    few = verdict(sweep_of(tmp_path / "a", [part, part]))
    assert (few.verdict, few.flags) == ("undecided", ("few_seeds",))
    mixed = verdict(sweep_of(tmp_path / "b", [part, part, behaviour(0.1, 0.5, 0.1, samples=8)]))
    assert (mixed.verdict, mixed.flags) == ("undecided", ("mixed_samples",))


def test_it_is_not_asked_of_supervised_or_unmeasured_arms(tmp_path: Path) -> None:
    parts: list[Any] = [behaviour(0.1, 0.5, 0.1)] * 3
    supervised = sweep_of(tmp_path / "a", parts, configs={"full": SFT})
    failed = sweep_of(tmp_path / "b", [{"failed": "OSError: gone"}] * 3)
    for sweep in (supervised, failed):
        lacks = {claim.claim_id: lack for claim, lack in not_addressed(sweep)}
        assert "measured by probes" in lacks["C14"]
