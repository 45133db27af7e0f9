"""C5: LR* does not move with the rank; every pair tested, never the largest over the smallest."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from analysis.claims import c05_rank_free, check_claims
from analysis.claims.verdict import Verdict
from analysis.estimates.curve import LrCurve
from analysis.estimates.equivalence import beyond_margin_p
from analysis.estimates.optimum import log_ratio, lr_ratio, optimum
from analysis.estimates.search import search_summary
from analysis.simulate.draws import Design
from tests.unit.analysis.claims.worlds import COARSE, FIVE_SEEDS, cut_above, only, world
from tests.unit.analysis.simulated_sweeps import MED, curve, experiment, judged

RANKS = (4, 16, 64)


def curves(shifts: tuple[float, ...], design: Design = FIVE_SEEDS) -> dict[str, LrCurve]:
    """Arms of rank 4, 16, 64 whose best rates lie at ``shifts`` times that of rank 4."""
    truths = {
        f"lora-r{rank}": MED.shifted(math.log10(shift))
        for rank, shift in zip(RANKS, shifts, strict=True)
    }
    return world(truths, design)


def verdict(arms: dict[str, LrCurve]) -> Verdict:
    return only(judged(c05_rank_free.check, experiment(arms)))


def test_one_rate_for_every_rank_is_supported() -> None:
    found = verdict(curves((1, 1, 1)))
    assert (found.verdict, found.n_seeds, found.missing) == ("supported", 5, "")
    assert found.arms == ("lora-r4", "lora-r16", "lora-r64")
    assert "All 3 pairs lie inside [0.5, 2]" in found.reason
    assert found.statement == (
        "The best learning rates of LoRA at ranks 4, 16, 64 lie within a factor of 2 of each "
        "other: lab64 on arithmetic (sum3)."
    )


def test_the_estimate_is_the_highest_rank_over_the_lowest() -> None:
    arms = curves((1, 1.2, 1.1))
    found, search = verdict(arms), search_summary(experiment(arms))
    ratio = lr_ratio(arms["lora-r64"], arms["lora-r4"], search.fraction_of("lora-r4")).centre
    assert found.estimate == pytest.approx(ratio.point)
    assert found.interval == pytest.approx(ratio.interval)


def test_a_rank_with_another_rate_refutes_and_is_named() -> None:
    found = verdict(curves((1, 1, 6)))
    assert found.verdict == "refuted"
    assert "lora-r64/lora-r4 " in found.reason and "lora-r64/lora-r16 " in found.reason
    assert "after Holm's correction over 3 pairs" in found.reason
    assert "lora-r16/lora-r4" not in found.reason


def test_a_factor_on_the_bound_is_undecided_and_says_what_is_missing() -> None:
    found = verdict(curves((1, 1, 2)))
    assert found.verdict == "undecided"
    assert "pairs not inside [0.5, 2] (" in found.reason and "lora-r64/lora-r4" in found.reason
    assert found.missing


def test_coarse_grids_ask_for_finer_ones_or_seeds() -> None:
    found = verdict(curves((1, 1.4, 1.9), COARSE))
    assert found.verdict == "undecided"
    assert "search seed" in found.missing or "finer grid" in found.missing


@pytest.mark.parametrize("rng_seed", range(4))
def test_holm_over_pairs_is_that_of_statsmodels(rng_seed: int) -> None:
    shifts = dict(zip(RANKS, (1.0, 2.3, 4.2), strict=True))
    truths = {f"lora-r{rank}": MED.shifted(math.log10(x)) for rank, x in shifts.items()}
    arms = world(truths, Design(seeds=3), rng_seed)
    search = search_summary(experiment(arms))
    p_values = [
        beyond_margin_p(log_ratio(arms[b], arms[a], search.fraction_of(a)), math.log10(2))
        for a, b in itertools.combinations(arms, 2)
    ]
    rejected = multipletests(p_values, alpha=0.05, method="holm")[0]
    assert (verdict(arms).verdict == "refuted") == bool(rejected.any())


def test_an_arm_on_the_edge_is_left_out_and_named() -> None:
    arms = curves((1, 1, 6))
    arms["lora-r64"] = cut_above(arms["lora-r64"])
    found = verdict(arms)
    # Its rate is six times the others': what agrees without it supports nothing about it.
    assert found.verdict == "undecided" and "edge_high" in found.flags
    assert found.missing == "extend the grid of lora-r64 upwards"
    assert "Left out: Extend the grid of lora-r64 upwards" in found.reason
    assert "The pair lies inside [0.5, 2]" in found.reason
    assert "but lora-r64 cannot be judged" in found.reason


def test_an_arm_on_the_edge_does_not_shield_the_others_from_refutation() -> None:
    arms = curves((1, 10, 1))
    arms["lora-r64"] = cut_above(arms["lora-r64"])
    found = verdict(arms)
    assert found.verdict == "refuted" and "edge_high" in found.flags


def test_an_arm_without_a_base_puts_all_on_parabolas_and_their_flags() -> None:
    # The plateau of r4 is bracketed, and its best rate is the last: by a parabola, an edge.
    rates = tuple(10.0 ** (np.arange(7) / 4 - 5))
    rows = np.array([[0.2, 0.3, 0.8, 0.8, 0.8, 0.2, 0.81]] * 3) + np.array([[-0.01], [0], [0.01]])
    humped = np.array([[0.2, 0.3, 0.5, 0.8, 0.6, 0.3, 0.2]] * 3) + np.array([[-0.01], [0], [0.01]])
    arms = {"lora-r4": curve(rows, rates, arm="lora-r4")}
    arms["lora-r16"] = curve(humped, rates, arm="lora-r16", base=None)
    found = verdict(arms)
    assert found.verdict == "undecided" and "edge_high" in found.flags
    assert "edge_high" not in optimum(arms["lora-r4"], 0.2).flags


def test_a_flat_arm_is_left_out_and_named() -> None:
    arms = curves((1, 1, 1))
    noise = np.random.default_rng(0).normal(MED.base, 0.02, arms["lora-r16"].scores.shape)
    arms["lora-r16"] = replace(arms["lora-r16"], scores=noise)
    found = verdict(arms)
    assert "flat" in found.flags and "scores of lora-r16 rise too little" in found.reason


def test_one_known_optimum_decides_nothing() -> None:
    arms = {name: cut_above(curve) for name, curve in curves((1, 1, 1)).items()}
    found = verdict(arms)
    assert (found.verdict, found.estimate) == ("undecided", None)
    assert found.reason.startswith("Of no arm is the optimum known, and two are needed.")
    assert found.missing.startswith("extend the grid of lora-r4 upwards; extend the grid of lora-")


def test_one_seed_lists_the_point_ratios() -> None:
    arms = curves((1, 1.5, 1.8), Design(seeds=1))
    found, fraction = verdict(arms), search_summary(experiment(arms)).fraction_of("lora-r4")
    assert (found.verdict, found.interval, found.flags) == ("undecided", None, ("few_seeds",))
    best = {name: optimum(curve, fraction).lr.point for name, curve in arms.items()}
    middle, ratio = (best[f"lora-r{rank}"] / best["lora-r4"] for rank in RANKS[1:])
    assert found.estimate == pytest.approx(ratio)
    assert f"lora-r16 {middle:.2g}, lora-r64 {ratio:.2g}" in found.reason
    assert "One seed cannot carry an interval" in found.reason
    assert "assumed, not measured" in found.reason
    assert found.missing == "2 more search seeds"


def test_each_model_is_a_group_of_its_own() -> None:
    truths = {
        f"lora-r{rank}-{model}": MED.shifted(shift)
        for model, shift in (("small", 0.0), ("large", 0.8))
        for rank in RANKS
    }
    configs = {
        name: {"model": {"name": name.split("-")[-1], "dtype": "float32"}} for name in truths
    }
    found = judged(c05_rank_free.check, experiment(world(truths), configs=configs))
    assert [v.arms[0] for v in found] == ["lora-r4-large", "lora-r4-small"]
    assert [v.verdict for v in found] == ["supported", "supported"]
    assert found[0].statement.endswith("large on arithmetic (sum3).")


def test_ranks_below_four_do_not_count() -> None:
    arms = world({"lora-r1": MED, "lora-r4": MED})
    assert not [v for v in check_claims(experiment(arms)) if v.claim_id == "C5"]


def test_an_alpha_that_goes_with_the_rank_is_said() -> None:
    methods = {f"lora-r{rank}": {"alpha_rule": "2r"} for rank in RANKS}
    found = only(judged(c05_rank_free.check, experiment(curves((1, 1, 1)), methods=methods)))
    assert "Alpha goes with the rank here (rule 2r)" in found.reason


def test_an_unfinished_sweep_is_undecided() -> None:
    found = only(judged(c05_rank_free.check, experiment(curves((1, 1, 1)), missing=2)))
    assert (found.verdict, found.missing) == ("undecided", "the 2 missing runs")


@pytest.mark.parametrize(
    ("n", "allowed"),
    [(20, 0.2), pytest.param(300, 0.08, marks=[pytest.mark.nightly, pytest.mark.timeout(300)])],
)
def test_ranks_at_the_bound_are_seldom_refuted_or_supported(n: int, allowed: float) -> None:
    """One rank at twice the others: two pairs on the bound; nominal 5 % for either error."""
    truths = {"lora-r4": MED, "lora-r16": MED, "lora-r64": MED.shifted(math.log10(2))}
    found = [verdict(world(truths, Design(seeds=3), i)).verdict for i in range(n)]
    assert found.count("refuted") / n <= allowed
    assert found.count("supported") / n <= allowed


def test_a_curve_of_two_humps_is_flagged_though_it_is_judged() -> None:
    arms = curves((1, 1, 1))
    rates = arms["lora-r64"].learning_rates
    arms["lora-r64"] = curve([[0.2, 0.3, 0.8, 0.8, 0.2, 0.8, 0.1, 0.1, 0.1]] * 3, rates[:9])
    arms["lora-r64"] = replace(arms["lora-r64"], arm="lora-r64")
    assert "not_unimodal" in verdict(arms).flags
