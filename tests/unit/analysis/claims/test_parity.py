"""C1 and C2: parity of scores, from report seeds or cross-fitted search seeds."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import DescrStatsW

from analysis.claims import c01_parity, check_claims
from analysis.claims.verdict import Verdict
from analysis.estimates.equivalence import equivalence_p, holm
from analysis.estimates.stats import paired_difference, t_quantile
from analysis.reading.load import load
from analysis.simulate.draws import Design, simulate_pair
from tests.doubles import write_synthetic_experiment
from tests.unit.analysis.claims.parity_cases import (
    FULL,
    LOWER,
    NEAR,
    NOISY,
    RATES,
    SAME,
    claim,
    parity_checks,
    search,
    verdicts,
)
from tests.unit.analysis.simulated_sweeps import MED, curve, experiment, judged


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


@pytest.mark.parametrize("rng_seed", range(6))
def test_equality_and_holm_are_those_of_statsmodels(rng_seed: int) -> None:
    """Two one-sided paired t tests per arm, Holm over arms; unlike spreads keep the paired t."""
    rng = np.random.default_rng(rng_seed)
    full = rng.normal(0.8, 0.01, 5)
    report = {"full": full}
    for arm, deficit in (("lora-r1", 0.05), ("lora-r4", 0.02), ("lora-r8", 0.0)):
        report[arm] = full - deficit + rng.normal(0, 0.05, 5)
    margin = 0.07
    found = verdicts({arm: list(x) for arm, x in report.items()}, spread=5.0, margin=margin)
    assert not any("pooled_sd" in v.flags for v in found)
    inside, outside = [], []
    for arm in ("lora-r1", "lora-r4", "lora-r8"):
        stats = DescrStatsW(report[arm] - full)
        inside.append(stats.ttost_mean(-margin, margin)[0])
        beyond = ((margin, "larger"), (-margin, "smaller"))
        outside.append(min(stats.ttest_mean(bound, side)[1] for bound, side in beyond))
    supported = multipletests(inside, alpha=0.05, method="holm")[0]
    refuted = multipletests(outside, alpha=0.05, method="holm")[0]
    for arm, yes, no in zip(("lora-r1", "lora-r4", "lora-r8"), supported, refuted, strict=True):
        expected = "supported" if yes else "refuted" if no else "undecided"
        assert claim(found, "C2", arm, "full").verdict == expected


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
    assert "±0.020" in judged(parity_checks, experiment(shallow, scores))[0].reason


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
    one = judged(parity_checks, experiment(curves))[0]
    assert "cross_fitted" in one.flags and "cross-fitted" in one.reason
    assert one.estimate == pytest.approx(0.0)
    assert one.interval is not None and one.interval[0] < 0 < one.interval[1]


def test_an_experiment_read_from_disk(tmp_path: Path) -> None:
    # The doubles' truth: report means 0.495, 0.485 and 0.505, optima ten times apart.
    found = check_claims(load(write_synthetic_experiment(tmp_path / "e")))
    assert [(v.claim_id, v.verdict) for v in found if v.claim_id <= "C3"] == [
        ("C1", "supported"),
        ("C2", "supported"),
        ("C2", "supported"),
        ("C2", "supported"),
        ("C3", "supported"),
        ("C3", "supported"),
    ]
    assert found[0].estimate == pytest.approx(0.01)
    assert all(len(v.statement) > 40 and v.reason.endswith(".") for v in found)


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
    return judged(c01_parity.check, experiment(curves, report, margin=margin))[0]
