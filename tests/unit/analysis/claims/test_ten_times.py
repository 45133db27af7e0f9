"""C3: what its verdict says."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from analysis.claims import c03_ten_times, check_claims
from analysis.claims.verdict import Verdict
from analysis.estimates.curve import LrCurve
from analysis.estimates.optimum import assumed_ratio, lr_ratio
from analysis.estimates.plateau import shared_fraction
from analysis.estimates.search import search_summary
from analysis.simulate.draws import ArmTruth, Design, simulate_pair
from tests.unit.analysis.claims.worlds import world
from tests.unit.analysis.simulated_sweeps import (
    MED,
    curve,
    experiment,
    judged,
)


def verdicts(arm: LrCurve, baseline: LrCurve, **settings: object) -> list[Verdict]:
    sweep = experiment({"full": baseline, "lora-r8": arm}, **settings)  # type: ignore[arg-type]
    return judged(c03_ten_times.check, sweep)


def verdict(arm: LrCurve, baseline: LrCurve, **settings: object) -> Verdict:
    (only,) = verdicts(arm, baseline, **settings)
    return only


def simulated(decades: float, seeds: int = 5, **design: float) -> tuple[LrCurve, LrCurve]:
    plan = replace(Design(seeds=seeds), **design)
    return simulate_pair(MED.shifted(decades), MED, plan, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("truth", "expected"), [(10.0, "supported"), (1.0, "refuted"), (100.0, "refuted")]
)
def test_the_verdict_follows_the_truth(truth: float, expected: str) -> None:
    found = verdict(*simulated(math.log10(truth)))
    assert found.verdict == expected
    assert found.claim_id == "C3"
    assert found.arms == ("lora-r8", "full")
    assert found.n_seeds == 5 and found.confidence == 0.9
    assert found.interval is not None
    assert found.estimate == pytest.approx(truth, rel=0.35)
    assert found.statement == (
        "The best learning rate of LoRA at rank 8 (lora-r8) is about 10 times (5 to 20 times) "
        "that of FullFT (full): lab64 on arithmetic (sum3)."
    )


def test_a_ratio_across_the_bound_is_undecided_and_says_how_many_seeds_decide() -> None:
    found = verdict(*simulated(math.log10(6.5), seeds=3))
    assert found.verdict == "undecided" and found.interval is not None
    assert "crosses a bound of [5, 20]: about" in found.reason
    assert "more search seed" in found.reason
    assert found.missing.endswith("more search seeds") and found.missing in found.reason


def test_a_ratio_on_the_bound_asks_for_a_finer_grid() -> None:
    found = verdict(*simulated(math.log10(5.0), spacing=0.5, points=6))
    assert found.verdict == "undecided"
    assert "a finer grid" in found.reason
    assert found.missing == "a finer grid at the ends of the plateaus"


def test_a_ratio_exactly_on_a_bound_is_too_close_to_it() -> None:
    _, baseline = simulated(0.0, seeds=3)
    arm = replace(
        baseline,
        learning_rates=tuple(5 * rate for rate in baseline.learning_rates),
        scores=baseline.scores[::-1],
    )
    found = verdict(arm, baseline)
    assert found.estimate == pytest.approx(5.0)
    assert "too close to the bound for more search seeds alone" in found.reason
    assert "finer grid" not in found.reason


def test_claims_go_by_the_summary_that_tables_and_figures_show() -> None:
    arm, baseline = simulated(1.0)
    sweep = experiment({"full": baseline, "lora-r8": arm})
    search = replace(search_summary(sweep), fractions=dict.fromkeys(("lora-r8", "full"), 0.05))
    (found,) = [v for v in check_claims(sweep, search) if v.claim_id == "C3"]
    assert found.estimate == pytest.approx(lr_ratio(arm, baseline, 0.05).centre.point)


def test_an_arm_with_its_best_rate_on_the_edge_is_undecided() -> None:
    arm, baseline = simulated(1.0)
    last = int(arm.means.argmax()) + 1
    rates = arm.learning_rates[:last]
    cut = replace(
        arm, scores=arm.scores[:, :last], collapsed=arm.collapsed[:, :last], learning_rates=rates
    )
    found = verdict(cut, baseline)
    assert (found.verdict, found.estimate, found.interval) == ("undecided", None, None)
    assert "edge_high" in found.flags
    assert "Extend the grid of lora-r8 upwards: its best learning rate is the highest" in (
        found.reason
    )
    assert found.missing == "extend the grid of lora-r8 upwards"


def test_two_seeds_are_undecided_and_one_more_is_asked_for() -> None:
    found = verdict(*simulated(1.0, seeds=2))
    assert found.verdict == "undecided" and found.interval is None
    assert found.estimate is not None
    assert "few_seeds" in found.flags
    assert "fewer than 3 search seeds" in found.reason and "1 more search seed " in found.reason


def test_curves_of_different_shape_are_said_to_be() -> None:
    rng = np.random.default_rng(1)
    wide = ArmTruth(ramp=MED.ramp + 0.6, span=MED.span + 0.65)
    arm, baseline = simulate_pair(wide, MED, Design(seeds=10, points=11), rng)
    found = verdict(arm, baseline)
    assert found.verdict == "supported"
    assert "shape_differs" in found.flags
    assert "not shifted copies" in found.reason


def test_an_unfinished_sweep_is_undecided() -> None:
    found = verdict(*simulated(1.0), missing=3)
    assert found.verdict == "undecided" and found.interval is None
    assert "87 of 90 runs" in found.reason
    assert found.missing == "the 3 missing runs"


def test_different_precision_is_refused() -> None:
    half = {"base": "bfloat16", "adapter": "bfloat16", "optimizer": "bfloat16"}
    found = verdict(*simulated(1.0), dtypes={"full": half})
    assert found.verdict == "undecided" and found.estimate is None
    assert "precision_differs" in found.flags and "Precision differs" in found.reason


def test_the_absent_adapter_of_full_fine_tuning_is_not_a_difference() -> None:
    found = verdict(*simulated(1.0), dtypes={"full": {"base": "float32", "optimizer": "float32"}})
    assert found.verdict == "supported"


@pytest.mark.parametrize(("status", "flag"), [("no_signal", "no_signal"), ("pruned", "pruned")])
@pytest.mark.parametrize("arm", ["full", "lora-r8"])
def test_a_run_without_a_score_is_named(status: str, flag: str, arm: str) -> None:
    found = verdict(*simulated(1.0), statuses={arm: status})
    assert found.verdict == "undecided" and found.flags == (flag,)
    assert f"of {arm} " in found.reason


def test_alpha_rules_that_differ_are_never_compared_by_learning_rate() -> None:
    arm, baseline = simulated(1.0)
    sweep = experiment(
        {"full": baseline, "lora-r8": arm, "lora-r1": arm},
        methods={"lora-r1": {"alpha_rule": "2r", "lora_alpha": 2.0}},
    )
    found = judged(c03_ten_times.check, sweep)
    assert [v.arms[0] for v in found] == ["lora-r1", "lora-r8"]
    assert all("alpha_rules_differ" in v.flags for v in found)
    assert all("alpha x learning rate (here " in v.reason for v in found)
    assert "alpha_rules_differ" not in verdict(arm, baseline).flags


def test_an_arm_without_a_baseline_is_undecided_beside_one_that_has_one() -> None:
    arm, baseline = simulated(1.0)
    other = {"lora-r1": {"objective": {"name": "grpo", "prompts_per_step": 64}}}
    sweep = experiment({"full": baseline, "lora-r8": arm, "lora-r1": arm}, configs=other)
    lonely, compared = judged(c03_ten_times.check, sweep)
    assert (lonely.verdict, lonely.arms, lonely.flags) == (
        "undecided",
        ("lora-r1",),
        ("no_baseline",),
    )
    assert "No FullFT arm differs from lora-r1 in the method alone" in lonely.reason
    assert lonely.missing == "a FullFT arm with the settings of lora-r1"
    assert compared.verdict == "supported"


def test_each_arm_meets_the_baseline_of_its_own_settings() -> None:
    arm, baseline = simulated(1.0)
    large = {"objective": {"name": "grpo", "prompts_per_step": 64}}
    sweep = experiment(
        {"full": baseline, "full-b64": baseline, "lora-r8": arm, "lora-r8-b64": arm},
        configs={"full-b64": large, "lora-r8-b64": large},
    )
    found = judged(c03_ten_times.check, sweep)
    assert [v.arms for v in found] == [("lora-r8", "full"), ("lora-r8-b64", "full-b64")]


@pytest.mark.parametrize("kind", ["adhoc", "single"])
def test_sweeps_without_a_criterion_get_no_verdicts(kind: str) -> None:
    arm, baseline = simulated(1.0)
    assert check_claims(experiment({"full": baseline, "lora-r8": arm}, kind=kind)) == []


def test_one_seed_says_what_an_assumed_spread_would_give() -> None:
    arm, baseline = simulated(1.0, seeds=1)
    found = verdict(arm, baseline)
    assert (found.verdict, found.interval, found.missing) == (
        "undecided",
        None,
        "2 more search seeds",
    )
    assert "one seed cannot carry an interval" in found.reason
    assert found.estimate is not None
    assert f"The ratio of 1 seed is {found.estimate:.1f}" in found.reason
    for tau in (0.07, 0.11):
        assumed = assumed_ratio(arm, baseline, shared_fraction((arm, baseline)), tau).interval
        assert assumed is not None
        assert f"[{assumed[0]:.1f}, {assumed[1]:.1f}]" in found.reason
        assert math.log10(assumed[1] / found.estimate) >= 1.645 * math.sqrt(2) * tau
    assert "assumed, not measured" in found.reason


def test_an_edge_still_gives_the_ratio_of_the_other_flank() -> None:
    arm, baseline = simulated(1.0)
    last = int(arm.means.argmax()) + 1
    cut = replace(
        arm,
        scores=arm.scores[:, :last],
        collapsed=arm.collapsed[:, :last],
        learning_rates=arm.learning_rates[:last],
    )
    ramp = lr_ratio(cut, baseline, shared_fraction((cut, baseline))).ramp
    assert ramp.interval is not None
    low, high = ramp.interval
    assert verdict(cut, baseline).reason.endswith(
        f"The ramps of the two plateaus give {ramp.point:.1f} [{low:.1f}, {high:.1f}]."
    )


def shallow(arm: str, first: float) -> LrCurve:
    """A curve nearly free of noise whose grid ends just behind its top."""
    means = np.array([0.2, 0.4, 0.6, 0.7, 0.78, 0.80, 0.81, 0.80, 0.79])
    rows = means + np.random.default_rng(0).normal(0, 0.001, (5, 9))
    return curve(rows, tuple(10.0 ** (np.arange(9) / 4 + first)), arm=arm)


def test_a_shallow_curve_of_another_model_has_no_say() -> None:
    arms = world({"full-a": MED, "lora-r8-a": MED.shifted(1)})
    alone = judged(c03_ten_times.check, experiment(arms))[0]
    for name, first in (("full-b", -6), ("lora-r8-b", -5)):
        arms[name] = shallow(name, first)
    models = {name: {"model": {"name": name[-1], "dtype": "float32"}} for name in arms}
    found = judged(c03_ten_times.check, experiment(arms, configs=models))[0]
    assert (found.arms, found.verdict) == (("lora-r8-a", "full-a"), "supported")
    assert (found.estimate, found.interval) == (alone.estimate, alone.interval)


def test_an_arm_whose_threshold_a_shallow_one_sets_is_not_told_to_train_longer() -> None:
    arms = world({"full": MED, "lora-r8": MED.shifted(1)})
    arms["lora-r64"] = shallow("lora-r64", -5)
    found = judged(c03_ten_times.check, experiment(arms))[0]
    assert (found.arms, found.verdict) == (("lora-r8", "full"), "undecided")
    assert "shallowest curve of this model sets" in found.reason
    assert "train longer" not in found.reason
