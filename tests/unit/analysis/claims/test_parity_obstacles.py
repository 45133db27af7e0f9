"""C1 and C2: what keeps them undecided, whatever the scores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from analysis.claims import check_claims
from analysis.reading.load import load
from tests.doubles import LORA_GRID, Defects, run_id, write_synthetic_experiment
from tests.unit.analysis.claims.parity_cases import (
    FULL,
    LOWER,
    RATES,
    SAME,
    SHAPE,
    claim,
    parity_checks,
    search,
    verdicts,
)
from tests.unit.analysis.simulated_sweeps import curve, experiment, judged


def test_the_edge_is_that_of_the_grid_now_not_of_the_selection_file(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "e")
    (path / "selection" / "full.json").write_text('{"learning_rate": 2e-4, "edge": "high"}')
    assert check_claims(load(path))[0].verdict == "supported"


def test_seeds_that_were_not_declared_decide_nothing() -> None:
    found = verdicts({"full": FULL, "lora-r8": SAME}, report_seeds=[100, 101, 102])[0]
    assert (found.verdict, found.flags) == ("undecided", ("incomplete",))
    assert "report seeds 100, 101, 102, 103, 104, declared are 100, 101, 102" in found.reason


def test_a_full_fine_tuning_that_learned_nothing_decides_nothing() -> None:
    found = verdicts({"full": [0.11, 0.12, 0.10], "lora-r8": [0.10, 0.11, 0.12]})[0]
    assert found.verdict == "undecided" and "no_gain" in found.flags


def test_identical_scores_over_seeds_are_suspicious() -> None:
    found = verdicts({"full": [0.8] * 3, "lora-r8": [0.8] * 3})[0]
    assert found.verdict == "undecided" and "no_spread" in found.flags


def test_a_difference_without_spread_is_never_a_sharp_one() -> None:
    shifted = [score + 0.01 for score in FULL]  # the run SDs differ, so the paired t decides
    found = verdicts({"full": FULL, "lora-r8": shifted}, spread=3.0)[0]
    assert (found.verdict, found.flags, found.interval) == ("undecided", ("no_spread",), None)
    found = verdicts(None)[0]  # cross-fitted: the two arms are the same curve, seed by seed
    assert (found.verdict, found.flags, found.interval) == ("undecided", ("no_spread",), None)


def test_a_selected_rate_on_the_edge_is_not_the_best_rate() -> None:
    curves = {"full": search("full"), "lora-r8": search("lora-r8")}
    arm = curves["lora-r8"]
    curves["lora-r8"] = replace(
        arm,
        scores=arm.scores[:, :4],
        collapsed=arm.collapsed[:, :4],
        learning_rates=RATES[:4],
    )
    found = judged(parity_checks, experiment(curves, {"full": FULL, "lora-r8": SAME}))[0]
    assert found.verdict == "undecided" and found.flags == ("edge_high",)
    assert found.reason == (
        "Extend the grid of lora-r8 upwards: its best learning rate is the highest one, 5.6e-5."
    )


def test_unfinished_sweeps_leave_every_claim_undecided() -> None:
    found = verdicts({"full": FULL, "lora-r8": SAME, "lora-r1": FULL[::-1]}, missing=1)
    assert [v.claim_id for v in found] == ["C1", "C2", "C2", "C2"]
    assert all(v.verdict == "undecided" and "86 of 87 runs" in v.reason for v in found)


def test_different_precision_is_refused() -> None:
    half = {"base": "bfloat16", "adapter": "bfloat16", "optimizer": "float32"}
    found = verdicts({"full": FULL, "lora-r8": SAME}, dtypes={"full": half})
    assert all(v.verdict == "undecided" and "Precision differs" in v.reason for v in found)


def test_precision_may_differ_where_it_is_a_factor() -> None:
    half = {"base": "bfloat16", "adapter": "bfloat16", "optimizer": "float32"}
    settings = {"dtypes": {"full": half}, "factors": ["method", "model.dtype"]}
    assert verdicts({"full": FULL, "lora-r8": SAME}, **settings)[0].verdict == "supported"


def test_an_arm_without_any_score_does_not_keep_the_others_waiting(tmp_path: Path) -> None:
    silent = [run_id("lora-r1", "search", rate, seed) for rate in LORA_GRID for seed in range(3)]
    never = [run_id("lora-r1", "report", 2e-3, seed) for seed in (100, 101, 102)]
    defects = Defects(no_signal=silent, missing=never, unplanned=never)
    path = write_synthetic_experiment(tmp_path / "e", defects=defects)
    (path / "selection" / "lora-r1.json").unlink()
    found = check_claims(load(path))
    flags = {(v.claim_id, v.arms[0]): v.flags for v in found if len(v.arms) == 2}
    assert flags["C2", "lora-r1"] == flags["C3", "lora-r1"] == ("no_signal",)
    assert claim(found, "C1", "lora-r8", "full").verdict == "supported"


def test_a_record_that_cannot_be_read_is_why_a_sweep_is_unfinished(tmp_path: Path) -> None:
    defects = Defects(unknown_schema=[run_id("full", "search", 2e-5, 0)])
    found = check_claims(load(write_synthetic_experiment(tmp_path / "e", defects=defects)))
    assert "53 of 54 runs" in found[0].reason
    assert found[0].reason.endswith("; 1 of them left a record that cannot be read.")


def test_a_run_without_signal_is_named_before_the_missing_ones(tmp_path: Path) -> None:
    defects = Defects(
        no_signal=[run_id("full", "search", 2e-5, 0)], missing=[run_id("full", "search", 2e-5, 1)]
    )
    found = check_claims(load(write_synthetic_experiment(tmp_path / "e", defects=defects)))
    assert {v.flags for v in found if len(v.arms) == 2} == {("no_signal",)}


def test_a_missing_run_on_disk_leaves_everything_undecided(tmp_path: Path) -> None:
    lost = Defects(missing=["full-search-2e-05-0"])
    found = check_claims(load(write_synthetic_experiment(tmp_path / "e", defects=lost)))
    assert {v.verdict for v in found} == {"undecided"}
    assert all("53 of 54 runs" in v.reason and v.interval is None for v in found)


def test_one_seed_of_an_imported_sweep_gives_the_points_and_the_reason() -> None:
    curves = {
        arm: curve([SHAPE + shift], RATES, arm=arm)
        for arm, shift in (("full", 0.0), ("lora-r8", 0.015))
    }
    found = judged(parity_checks, experiment(curves, kind="imported"))[0]
    assert (found.verdict, found.flags, found.missing) == (
        "undecided",
        ("few_seeds",),
        "5 report seeds",
    )
    assert found.reason == (
        "1 search seed and no report seeds: one seed cannot carry an interval, and the best of a "
        "grid over so few (lora-r8 0.815, full 0.800) is luck; plan 5 report seeds."
    )


def test_without_the_untrained_model_the_default_margin_is_unknown() -> None:
    curves = {arm: replace(search(arm), base=None) for arm in ("full", "lora-r8")}
    found = judged(parity_checks, experiment(curves))[0]
    assert (found.verdict, found.flags) == ("undecided", ("no_base",))
    assert found.missing == "an evaluation of the untrained model"
    assert judged(parity_checks, experiment(curves, margin=0.1))[0].flags != ("no_base",)


def test_where_lower_is_better_the_estimate_is_as_stated_and_the_reason_says_worse() -> None:
    found = verdicts({"full": FULL, "lora-r8": LOWER}, direction="minimize")[0]
    # Scores are stated with the opposite sign: -0.6 for LoRA, -0.8 for FullFT.
    assert found.verdict == "refuted" and found.estimate == pytest.approx(0.2)
    assert found.interval is not None and found.interval[0] > 0.07
    assert found.reason.endswith("LoRA scores higher than FullFT, which is worse.")


@pytest.mark.parametrize("scores", [[0.0] * 8, [0.1] * 8])
def test_runs_that_all_diverged_or_learned_nothing_are_explained(scores: list[float]) -> None:
    curves = {arm: curve([scores] * 3, RATES, arm=arm) for arm in ("full", "lora-r8")}
    for found in check_claims(experiment(curves)):
        assert found.verdict == "undecided"
        assert found.reason and found.missing
        assert found.interval is None


def test_a_single_learning_rate_is_explained() -> None:
    curves = {
        arm: curve([[0.5], [0.52], [0.48]], RATES[:1], arm=arm) for arm in ("full", "lora-r8")
    }
    found = check_claims(experiment(curves))
    assert {v.verdict for v in found} == {"undecided"}
    assert all(v.reason and v.missing for v in found)


def test_a_report_seed_that_ran_twice_is_one_seed() -> None:
    given = experiment(
        {arm: search(arm) for arm in ("full", "lora-r8")}, {"full": FULL, "lora-r8": SAME}
    )
    twin = given.runs[(given.runs["arm"] == "lora-r8") & (given.runs["seed"] == 100)]
    twin = twin[twin["phase"] == "report"].assign(score_final=SAME[0] + 0.02, run_id="twin")
    runs = pd.concat([given.runs, twin], ignore_index=True)
    planned = pd.concat([given.planned, twin[list(given.planned)]], ignore_index=True)
    found = judged(parity_checks, replace(given, runs=runs, planned=planned))[0]
    assert (found.verdict, found.n_seeds) == ("supported", 5)
    once = judged(parity_checks, given)[0]
    assert found.estimate == pytest.approx((once.estimate or 0) + 0.01 / 5)


def test_a_report_without_a_base_is_judged_by_a_declared_margin_and_the_paired_t() -> None:
    given = experiment(
        {arm: search(arm) for arm in ("full", "lora-r8")},
        {"full": FULL, "lora-r8": SAME},
        margin=0.05,
    )
    bare = given.runs["score_base"].where(given.runs["phase"] == "search")
    found = judged(parity_checks, replace(given, runs=given.runs.assign(score_base=bare)))[0]
    assert (found.verdict, found.flags) == ("supported", ())
    assert "paired t" in found.reason
