"""C22: full fine-tuning in float32 and in bfloat16; and that nothing else crosses precisions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from analysis.claims import c22_precision, check_claims
from analysis.claims.verdict import Verdict
from analysis.estimates.optimum import lr_ratio
from analysis.estimates.search import search_summary
from analysis.reading.sweep import Sweep
from analysis.simulate.draws import Design
from tests.unit.analysis.claims.worlds import FIVE_SEEDS, cut_above, only, world
from tests.unit.analysis.probed_sweeps import measured, probed_sweep
from tests.unit.analysis.simulated_sweeps import MED, experiment, judged

HALF = {"model": {"name": "lab64", "dtype": "bfloat16"}}
ALL_HALF = dict.fromkeys(("base", "optimizer"), "bfloat16")
VERY_FINE = Design(seeds=30, spacing=0.125, points=17)


def sweep(
    ratio: float,
    design: Design = FIVE_SEEDS,
    factors: tuple[str, ...] = ("method", "model.dtype"),
    cut: str | None = None,
    **settings: Any,
) -> Sweep:
    """FullFT's best rate in float32 is ``ratio`` times that in bfloat16, LoRA's 10 times it."""
    truths = {
        "full": MED,
        "full-bf16": MED.shifted(-math.log10(ratio)),
        "lora-r8": MED.shifted(1.0),
    }
    curves = world(truths, design)
    if cut is not None:
        curves[cut] = cut_above(curves[cut])
    return experiment(
        curves,
        configs={"full-bf16": HALF},
        dtypes={"full-bf16": ALL_HALF},
        factors=factors,
        **settings,
    )


def verdict(found: Sweep) -> Verdict:
    return only(judged(c22_precision.check, found))


@pytest.mark.parametrize(("ratio", "expected"), [(3.0, "supported"), (1 / 3, "refuted")])
def test_the_verdict_follows_the_truth(ratio: float, expected: str) -> None:
    given = sweep(ratio)
    found, search = verdict(given), search_summary(given)
    assert (found.verdict, found.arms) == (expected, ("full", "full-bf16"))
    own = lr_ratio(
        search.curves["full"], search.curves["full-bf16"], search.fraction_of("full")
    ).centre
    assert (found.estimate, found.interval) == (own.point, own.interval)
    assert found.estimate == pytest.approx(ratio, rel=0.3)
    word = "shrinks" if ratio > 1 else "raises"
    assert f"bfloat16 {word} FullFT's best rate" in found.reason


def test_too_small_an_effect_refutes_it() -> None:
    found = verdict(sweep(1.0, VERY_FINE))
    assert found.verdict == "refuted" and "inside [0.8, 1.25]: too little" in found.reason


def test_an_interval_around_one_is_undecided_and_says_what_is_missing() -> None:
    found = verdict(sweep(1.0))
    assert found.verdict == "undecided"
    assert "which holds 1 and leaves [0.8, 1.25]" in found.reason
    assert "search seed" in found.missing or "finer grid" in found.missing


def test_the_part_that_needs_probes_is_named() -> None:
    assert verdict(sweep(3.0)).reason.endswith("which needs weights measured by probes.")


def test_the_sparsity_that_precision_makes_is_stated_beside_it(tmp_path: Path) -> None:
    arms = {"full": [measured(10, 100)] * 3, "full-bf16": [measured(None, 800)] * 3}
    given = probed_sweep(
        tmp_path, arms, configs={"full-bf16": HALF}, factors=("method", "model.dtype")
    )
    assert verdict(given).reason.endswith(
        "Float32 masters (full) leave 1.0% unchanged, pure bfloat16 (full-bf16) 80.0%, a "
        "difference of +79.0 points [+79.0, +79.0]: a precision artefact."
    )


def test_the_ratio_of_lora_to_its_own_baseline_is_beside_it() -> None:
    given = sweep(3.0)
    search = search_summary(given)
    ratio = lr_ratio(
        search.curves["lora-r8"], search.curves["full"], search.fraction_of("full")
    ).centre
    assert f" LoRA over FullFT: lora-r8/full {ratio.point:.2g} [" in verdict(given).reason


def test_an_edge_is_undecided() -> None:
    found = verdict(sweep(3.0, cut="full-bf16"))
    assert (found.verdict, found.estimate) == ("undecided", None)
    assert found.missing == "extend the grid of full-bf16 upwards"


def test_one_seed_is_undecided_with_an_assumed_interval() -> None:
    found = verdict(sweep(3.0, Design(seeds=1)))
    assert (found.verdict, found.interval) == ("undecided", None)
    assert "assumed, not measured" in found.reason and found.missing == "2 more search seeds"


def test_an_unfinished_sweep_is_undecided() -> None:
    found = verdict(sweep(3.0, missing=4))
    assert (found.verdict, found.missing) == ("undecided", "the 4 missing runs")


def test_precisions_are_compared_only_where_precision_is_a_factor() -> None:
    found = verdict(sweep(3.0, factors=("method",)))
    assert (found.verdict, found.flags) == ("undecided", ("precision_differs",))


def test_every_arm_meets_the_baseline_of_its_own_precision() -> None:
    found = check_claims(sweep(3.0))
    pairs = {v.arms for v in found if v.claim_id in ("C3", "C6")}
    assert pairs == {("lora-r8", "full")}


def test_one_precision_is_not_addressed() -> None:
    lack = c22_precision.CLAIM.lacks(experiment(world({"full": MED, "lora-r8": MED})))
    assert lack == "FullFT arms in float32 and bfloat16 that differ in nothing else"
