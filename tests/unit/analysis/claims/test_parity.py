"""C1 and C2: parity of scores, from report seeds or cross-fitted search seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis.claims import check_claims, parity
from analysis.claims.verdict import Verdict
from analysis.estimates.curve import LrCurve
from analysis.estimates.equivalence import equivalence_p, holm
from analysis.estimates.stats import paired_difference, t_quantile
from analysis.reading.load import load
from analysis.reporting.wording import headlines
from analysis.simulate.draws import Design, simulate_pair
from tests.doubles import LORA_GRID, Defects, run_id, write_synthetic_experiment
from tests.unit.analysis.simulated_sweeps import MED, curve, experiment, judged

RATES = tuple(10.0 ** (np.arange(8) / 4 - 5))
SHAPE = np.array((0.2, 0.3, 0.6, 0.8, 0.8, 0.79, 0.0, 0.0))
SEED_OFFSETS = np.array((-0.01, 0.0, 0.01))


def search(arm: str, spread: float = 1.0) -> LrCurve:
    """Three seeds around a plateau at 0.8; run SD 0.01 times ``spread``."""
    rows = [SHAPE + offset * spread * (SHAPE > 0) for offset in SEED_OFFSETS]
    return curve(rows, RATES, arm=arm)


def verdicts(
    report: Mapping[str, Sequence[float]] | None, spread: float = 1.0, **settings: object
) -> list[Verdict]:
    arms = list(report) if report else ["full", "lora-r1", "lora-r8"]
    curves = {arm: search(arm, spread if arm != "full" else 1.0) for arm in arms}
    return judged(parity.check, experiment(curves, report, **settings))  # type: ignore[arg-type]


def claim(found: list[Verdict], claim_id: str, *arms: str) -> Verdict:
    (only,) = [v for v in found if v.claim_id == claim_id and v.arms == arms]
    return only


FULL = [0.80, 0.81, 0.79, 0.80, 0.80]
SAME = [0.80, 0.80, 0.80, 0.79, 0.81]
NEAR = [0.75, 0.76, 0.74, 0.75, 0.75]  # 0.05 lower, the margin is 0.07
LOWER = [0.60, 0.61, 0.59, 0.60, 0.60]
NOISY = [0.72, 0.86, 0.69, 0.84, 0.66]


def test_equal_scores_support_parity() -> None:
    found = verdicts({"full": FULL, "lora-r8": SAME})
    (c1, c2) = found
    assert [v.claim_id for v in found] == ["C1", "C2"]
    assert c1.verdict == c2.verdict == "supported"
    assert c1.arms == ("lora-r8", "full") and c1.n_seeds == 5
    assert c1.statement == (
        "LoRA at rank 8 (lora-r8), the highest rank of this sweep (r = 8), scores the same as "
        "FullFT (full), within the margin: lab64 on arithmetic (sum3)."
    )
    assert c2.statement.startswith("LoRA at rank 8 (lora-r8) scores the same as FullFT (full), ")
    # The margin is 10 % of FullFT's gain: 0.1 * (0.80 - 0.10) = 0.070.
    assert "inside ±0.070" in c1.reason


def test_lower_scores_refute_parity() -> None:
    found = claim(verdicts({"full": FULL, "lora-r8": LOWER}), "C1", "lora-r8", "full")
    assert found.verdict == "refuted"
    assert found.estimate == pytest.approx(-0.2)
    assert found.interval is not None and found.interval[1] < -0.07
    assert found.reason.endswith("wholly outside ±0.070: LoRA scores lower than FullFT.")


def test_higher_scores_refute_equality_and_are_called_higher() -> None:
    higher = [score + 0.15 for score in FULL]
    found = verdicts({"full": FULL, "lora-r8": higher, "lora-r1": SAME})
    assert found[0].verdict == "refuted"
    assert found[0].reason.endswith("LoRA scores higher than FullFT.")
    every = claim(found, "C2", "lora-r1", "lora-r8", "full")
    assert every.reason == "lora-r8 scores higher than FullFT, after Holm's correction."
    said = headlines(found)[0]
    assert said.endswith("for lora-r1; refuted: lora-r8 scores higher than full fine-tuning.")


def test_the_margin_and_the_collapse_go_by_the_base_of_the_report_prompts() -> None:
    # 10 % of 0.80 - 0.50; the search's prompts have a base of 0.10.
    assert "±0.030" in verdicts({"full": FULL, "lora-r8": SAME}, report_base=0.5)[0].reason
    # 0.77 is nearer to a base of 0.75 than to the median 0.80: a collapsed run, no pooling.
    low = {"full": FULL, "lora-r8": [0.80, 0.80, 0.80, 0.83, 0.77]}
    assert "pooled_sd" in verdicts(low)[0].flags
    assert "pooled_sd" not in verdicts(low, report_base=0.75)[0].flags


@pytest.mark.parametrize("stale", ["full", "lora-r8"])
def test_a_selection_that_the_search_has_overruled_decides_nothing(stale: str) -> None:
    report = {"full": FULL, "lora-r8": SAME}
    found = verdicts(report, selections={stale: RATES[2]})
    assert [(v.verdict, v.flags) for v in found] == [("undecided", ("stale_selection",))] * 2
    assert found[0].reason == (
        f"The report runs of {stale} were made at 3.2e-5, the search now prefers 5.6e-5: start the "
        "grown experiment under a new name=..."
    )
    assert verdicts(report, selections={stale: RATES[3]})[0].verdict == "supported"


def test_the_edge_is_that_of_the_grid_now_not_of_the_selection_file(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "e")
    (path / "selection" / "full.json").write_text('{"learning_rate": 2e-4, "edge": "high"}')
    assert check_claims(load(path))[0].verdict == "supported"


def test_seeds_that_were_not_declared_decide_nothing() -> None:
    found = verdicts({"full": FULL, "lora-r8": SAME}, report_seeds=[100, 101, 102])[0]
    assert (found.verdict, found.flags) == ("undecided", ("incomplete",))
    assert "report seeds 100, 101, 102, 103, 104, declared are 100, 101, 102" in found.reason


def test_noisy_scores_are_undecided_and_say_how_many_seeds_decide() -> None:
    found = verdicts({"full": FULL, "lora-r8": NOISY})[0]
    assert found.verdict == "undecided"
    assert "crosses a bound of ±0.070: about" in found.reason
    assert "more report seed" in found.reason


def test_the_pooled_interval_by_hand() -> None:
    # Each arm has three plateau cells of SD 0.01 (df 2 each) and five report scores.
    # FULL: squares 0.0002 (df 4); SAME: mean 0.80, squares 0.0002 (df 4). Pooled over 8 cells:
    # (6 * 2 * 0.0001 + 0.0004) / (12 + 8) = 0.0016 / 20, sd 0.00894427.
    # Half width t[.95, 20] * sd * sqrt(2 / 5) = 1.724718 * 0.00565685 = 0.00975647.
    found = verdicts({"full": FULL, "lora-r8": SAME})[0]
    assert "pooled_sd" in found.flags
    assert found.estimate == pytest.approx(0.0)
    assert found.interval == pytest.approx((-0.00975647, 0.00975647), abs=1e-6)


@pytest.mark.parametrize(
    ("lora", "spread"),
    [
        (SAME, 3.0),  # run SDs differ by a factor of three
        ([0.80, 0.81, 0.79, 0.80, 0.05], 1.0),  # a report run collapsed
    ],
)
def test_unlike_spreads_and_collapses_fall_back_to_the_paired_t(
    lora: list[float], spread: float
) -> None:
    found = verdicts({"full": FULL, "lora-r8": lora}, spread)[0]
    assert "pooled_sd" not in found.flags
    assert found.interval == pytest.approx(paired_difference(lora, FULL).estimate().interval)


def test_a_declared_margin_replaces_the_default() -> None:
    report = {"full": FULL, "lora-r8": NEAR}
    assert verdicts(report)[0].verdict == "supported"
    narrow = verdicts(report, margin=0.03)[0]
    assert narrow.verdict == "refuted" and "±0.030" in narrow.reason


def test_the_default_margin_is_at_least_two_points() -> None:
    shallow = {
        arm: curve([0.1 + (row - 0.1) / 7 for row in search(arm).scores], RATES, arm=arm)
        for arm in ("full", "lora-r8")
    }
    scores = {"full": [0.20, 0.201, 0.199], "lora-r8": [0.201, 0.199, 0.2]}
    assert "±0.020" in judged(parity.check, experiment(shallow, scores))[0].reason


def test_c1_takes_the_highest_rank_and_c2_every_rank() -> None:
    found = verdicts({"full": FULL, "lora-r8": SAME, "lora-r1": LOWER})
    assert claim(found, "C1", "lora-r8", "full").verdict == "supported"
    assert claim(found, "C2", "lora-r8", "full").verdict == "supported"
    assert claim(found, "C2", "lora-r1", "full").verdict == "refuted"
    every = claim(found, "C2", "lora-r1", "lora-r8", "full")
    assert every.verdict == "refuted" and "lora-r1 scores lower than FullFT" in every.reason
    assert len(found) == 4


def test_every_rank_is_supported_if_each_is() -> None:
    found = verdicts({"full": FULL, "lora-r8": SAME, "lora-r1": FULL[::-1]})
    assert claim(found, "C2", "lora-r1", "lora-r8", "full").verdict == "supported"


def test_every_rank_is_undecided_if_one_is_and_none_is_refuted() -> None:
    found = verdicts({"full": FULL, "lora-r8": SAME, "lora-r1": NOISY})
    every = claim(found, "C2", "lora-r1", "lora-r8", "full")
    assert every.verdict == "undecided" and "lora-r1" in every.reason


def test_holm_weighs_on_single_ranks_but_not_on_every_rank() -> None:
    # An interval that ends just inside the margin: p between 0.025 and 0.05 for either arm.
    lora = [0.80 + 4.2 * x for x in (0.012, -0.012, 0.006, -0.006, 0.0)]
    arms = {"full": FULL, "lora-r8": lora, "lora-r1": lora}
    margin = t_quantile(4) * float(np.std(np.array(lora) - FULL, ddof=1)) / math.sqrt(5) * 1.05
    p = equivalence_p(paired_difference(lora, FULL), margin)
    assert 0.025 < p < 0.05 < holm([p, p])[0]
    found = verdicts(arms, spread=4.0, margin=margin)
    assert claim(found, "C1", "lora-r8", "full").verdict == "supported"
    single = claim(found, "C2", "lora-r8", "full")
    assert single.verdict == "undecided"
    assert (
        f"would support the claim against ±{margin:.3f} uncorrected, but does not after Holm's "
        "correction over 2 arms (p = "
    ) in single.reason
    assert claim(found, "C2", "lora-r1", "lora-r8", "full").verdict == "supported"


def test_seeds_are_counted_only_where_one_test_is_made() -> None:
    found = verdicts({"full": FULL, "lora-r8": NOISY, "lora-r1": NOISY[::-1]})
    assert ": about " in claim(found, "C1", "lora-r8", "full").reason
    single = claim(found, "C2", "lora-r8", "full")
    assert single.reason.endswith("crosses a bound of ±0.070: more report seeds are needed.")


def test_two_report_seeds_give_a_point_and_no_verdict() -> None:
    found = verdicts({"full": FULL[:2], "lora-r8": SAME[:2]})[0]
    assert found.verdict == "undecided" and found.interval is None
    assert found.estimate == pytest.approx(-0.005)
    assert "few_seeds" in found.flags and "1 more report seed" in found.reason


def test_without_report_seeds_search_seeds_are_cross_fitted() -> None:
    # The same curve with its seeds in another order: the difference is zero on the mean only.
    full = search("full")
    curves = {"full": full, "lora-r8": replace(search("lora-r8"), scores=full.scores[[1, 2, 0]])}
    one = judged(parity.check, experiment(curves))[0]
    assert "cross_fitted" in one.flags and "cross-fitted" in one.reason
    assert one.estimate == pytest.approx(0.0)
    assert one.interval is not None and one.interval[0] < 0 < one.interval[1]


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
    found = judged(parity.check, experiment(curves, {"full": FULL, "lora-r8": SAME}))[0]
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


def test_an_experiment_read_from_disk(tmp_path: Path) -> None:
    # The doubles' truth: report means 0.495, 0.485 and 0.505, optima ten times apart.
    found = check_claims(load(write_synthetic_experiment(tmp_path / "e")))
    assert [(v.claim_id, v.verdict) for v in found] == [
        ("C1", "supported"),
        ("C2", "supported"),
        ("C2", "supported"),
        ("C2", "supported"),
        ("C3", "supported"),
        ("C3", "supported"),
    ]
    assert found[0].estimate == pytest.approx(0.01)
    assert all(len(v.statement) > 40 and v.reason.endswith(".") for v in found)


def test_a_missing_run_on_disk_leaves_everything_undecided(tmp_path: Path) -> None:
    lost = Defects(missing=["full-search-2e-05-0"])
    found = check_claims(load(write_synthetic_experiment(tmp_path / "e", defects=lost)))
    assert {v.verdict for v in found} == {"undecided"}
    assert all("53 of 54 runs" in v.reason and v.interval is None for v in found)


@pytest.mark.parametrize(
    ("n", "allowed"),
    [(60, 0.12), pytest.param(500, 0.08, marks=[pytest.mark.nightly, pytest.mark.timeout(300)])],
)
@pytest.mark.parametrize("seeds", [3, 5])
def test_parity_at_the_margin_is_seldom_supported(seeds: int, n: int, allowed: float) -> None:
    """False support at a true difference of one margin; Monte-Carlo SE at 60: 3 points."""
    decisions = [_simulated_verdict(0.05, 0.05, seeds, i).verdict for i in range(n)]
    assert decisions.count("supported") / n <= allowed


@pytest.mark.parametrize(
    ("n", "least"),
    [(40, 0.6), pytest.param(500, 0.75, marks=[pytest.mark.nightly, pytest.mark.timeout(300)])],
)
def test_true_parity_is_mostly_supported_with_five_seeds(n: int, least: float) -> None:
    """Power 0.8 for a margin of two run SDs; Monte-Carlo SE at 40: 6 points."""
    decisions = [_simulated_verdict(0.0, 0.05, 5, i).verdict for i in range(n)]
    assert decisions.count("supported") / n > least
    assert decisions.count("refuted") / n < 0.05


def _simulated_verdict(deficit: float, margin: float, seeds: int, rng_seed: int) -> Verdict:
    """C1 on a simulated search phase; report runs have the search's run SD."""
    rng = np.random.default_rng(rng_seed)
    arm, baseline = simulate_pair(MED, MED, Design(noise=0.02, eval_prompts=500), rng)
    run_sd = math.hypot(0.02, math.sqrt(0.85 * 0.15 / 500))
    report = {
        "full": rng.normal(0.84, run_sd, seeds),
        "lora-r8": rng.normal(0.84 - deficit, run_sd, seeds),
    }
    curves = {"full": baseline, "lora-r8": arm}
    return judged(parity.check, experiment(curves, report, margin=margin))[0]
