"""C3, and the promises of the ratio's interval on simulated sweeps with a known truth."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from analysis.claims import check_claims, learning_rate
from analysis.claims.verdict import Verdict
from analysis.estimates.curve import LrCurve
from analysis.estimates.edges import find_edges
from analysis.estimates.optimum import LrRatio, lr_ratio, optimum
from analysis.estimates.plateau import shared_fraction
from analysis.estimates.search import search_summary
from analysis.simulate.draws import ArmTruth, Design, simulate_curve, simulate_pair
from tests.unit.analysis.simulated_sweeps import (
    MED,
    REGIMES,
    experiment,
    judged,
    pairs,
    true_log_ratio,
)

FAST, FULL = 60, 500


def replications(fast: int = FAST) -> list[object]:
    """A short run by default, the full one at night."""
    return [fast, pytest.param(FULL, marks=[pytest.mark.nightly, pytest.mark.timeout(300)])]


def verdicts(arm: LrCurve, baseline: LrCurve, **settings: object) -> list[Verdict]:
    sweep = experiment({"full": baseline, "lora-r8": arm}, **settings)  # type: ignore[arg-type]
    return judged(learning_rate.check, sweep)


def verdict(arm: LrCurve, baseline: LrCurve, **settings: object) -> Verdict:
    (only,) = verdicts(arm, baseline, **settings)
    return only


def simulated(decades: float, seeds: int = 5, **design: float) -> tuple[LrCurve, LrCurve]:
    plan = replace(Design(seeds=seeds), **design)
    return simulate_pair(MED.shifted(decades), MED, plan, np.random.default_rng(0))


# What the interval promises.


@pytest.mark.parametrize("n", replications())
@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("regime", REGIMES)
def test_the_interval_covers(regime: str, seeds: int, n: int) -> None:
    """Stated 90 % intervals hold the truth in 86 to 100 % of sweeps, bias below 0.02 decade.

    Monte-Carlo SE at 60 replications: 3.9 points and 0.015 decade; at 500: 1.3 and 0.005.
    """
    truth = true_log_ratio(regime)
    hits, errors = [], []
    for arm, baseline in pairs(regime, seeds, n):
        centre = lr_ratio(arm, baseline, shared_fraction((arm, baseline))).centre
        if centre.interval is not None:
            hits.append(centre.interval[0] <= 10**truth <= centre.interval[1])
            errors.append(math.log10(centre.point) - truth)
    assert len(hits) >= 0.88 * n
    assert np.mean(hits) >= (0.86 if n == FULL else 0.80)
    assert abs(np.mean(errors)) < (0.02 if n == FULL else 0.04)


@pytest.mark.parametrize("n", replications())
@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("regime", ["low", "wide", "soft", "half-decade"])
def test_the_interval_of_the_optimum_and_its_edges_covers(regime: str, seeds: int, n: int) -> None:
    """LR*, ramp, cliff and width of one arm; Monte-Carlo SE at 60 replications: 4 points."""
    _, truth, design = REGIMES[regime]
    ramp, cliff = truth.plateau(0.2)
    hits: dict[str, list[bool]] = {"lr": [], "ramp": [], "cliff": [], "width": []}
    rng = np.random.default_rng(0)
    for _ in range(n):
        found = optimum(simulate_curve("x", truth, replace(design, seeds=seeds), rng), 0.2)
        true = {
            "lr": 10 ** ((ramp + cliff) / 2),
            "ramp": 10**ramp,
            "cliff": 10**cliff,
            "width": cliff - ramp,
        }
        for name, own in hits.items():
            interval = getattr(found, name).interval
            if interval is not None:
                own.append(interval[0] <= true[name] <= interval[1])
    coverage = {name: float(np.mean(own)) for name, own in hits.items()}
    assert min(coverage.values()) >= (0.84 if n == FULL else 0.76), coverage


@pytest.mark.parametrize("n", replications())
def test_a_seed_bootstrap_would_not_cover(n: int) -> None:
    """Why the percentile bootstrap is not used: with 3 seeds it covers far less than 90 %.

    With 3 seeds there are ten distinct resamples, so the bootstrap is computed exactly.
    """
    truth = true_log_ratio("low")
    hits = []
    for arm, baseline in pairs("low", 3, n):
        (a, w_a), (b, w_b) = _resampled_centres(arm), _resampled_centres(baseline)
        differences, weights = np.subtract.outer(a, b).ravel(), np.outer(w_a, w_b).ravel()
        order = np.argsort(differences)
        cumulated = np.cumsum(weights[order])
        low = differences[order][np.searchsorted(cumulated, 0.05)]
        high = differences[order][np.searchsorted(cumulated, 0.95)]
        hits.append(low <= truth <= high)
    assert np.mean(hits) < 0.8


def _resampled_centres(curve: LrCurve) -> tuple[np.ndarray, np.ndarray]:
    """Midpoints of the mean curve of every resample of three seeds, with its probability."""
    centres, weights = [], []
    for chosen in itertools.combinations_with_replacement(range(3), 3):
        mean = curve.scores[list(chosen)].mean(axis=0)
        centres.append(find_edges(curve.positions, mean, curve.base, 0.2).centre)
        weights.append({1: 1, 2: 3, 3: 6}[len(set(chosen))] / 27)
    return np.array(centres), np.array(weights)


@pytest.mark.parametrize("n", replications())
@pytest.mark.parametrize("ratio", [5.0, 20.0])
def test_a_ratio_at_the_bound_is_seldom_supported(ratio: float, n: int) -> None:
    """Nominal 5 %, allowed 10 %; Monte-Carlo SE at 60 replications 2.8 points."""
    supported = _share(pairs_at(ratio, n, Design(seeds=3)), lambda v: v == "supported")
    assert supported <= (0.10 if n == FULL else 0.13)


@pytest.mark.parametrize("n", replications())
def test_half_decade_grids_are_mostly_undecided(n: int) -> None:
    """For want of a short interval, not of an interval."""
    design = Design(seeds=3, spacing=0.5, points=6)
    sweeps = pairs_at(10.0, n, design)
    stated = [pair for pair in sweeps if _ratio(*pair)[0].centre.interval is not None]
    assert len(stated) >= 0.8 * n
    assert _share(stated, lambda v: v == "undecided") > 0.5


@pytest.mark.parametrize("n", replications(40))
def test_quarter_decade_grids_mostly_decide(n: int) -> None:
    """Power: truth 10 supported, truth 3 refuted, with 5 seeds (0.99 or more in theory)."""
    design = Design(seeds=5)
    assert _share(pairs_at(10.0, n, design), lambda v: v == "supported") > 0.85
    assert _share(pairs_at(3.0, n, design), lambda v: v == "refuted") > 0.8


def pairs_at(ratio: float, n: int, design: Design) -> list[tuple[LrCurve, LrCurve]]:
    rng = np.random.default_rng(2)
    return [simulate_pair(MED.shifted(math.log10(ratio)), MED, design, rng) for _ in range(n)]


def _share(sweeps: list[tuple[LrCurve, LrCurve]], wanted: Callable[[str], bool]) -> float:
    return float(np.mean([wanted(_decision(*pair)) for pair in sweeps]))


def _decision(arm: LrCurve, baseline: LrCurve) -> str:
    return learning_rate.judge(arm, baseline, *_ratio(arm, baseline))[0]


def _ratio(arm: LrCurve, baseline: LrCurve) -> tuple[LrRatio, float]:
    fraction = shared_fraction((arm, baseline))
    return lr_ratio(arm, baseline, fraction), fraction


@pytest.mark.parametrize("n", replications())
def test_a_quadratic_vertex_is_biased_by_the_cliff(n: int) -> None:
    """Why the textbook vertex is not used: it misses the plateau's midpoint."""
    _, truth, design = REGIMES["wide"]
    middle = sum(truth.plateau(0.2)) / 2
    rng = np.random.default_rng(0)
    curves = [simulate_curve("x", truth, replace(design, seeds=5), rng) for _ in range(n)]
    vertices = [_vertex(curve.positions, curve.means) for curve in curves]
    found = [math.log10(optimum(curve, 0.2).lr.point) for curve in curves]
    assert abs(np.mean(vertices) - middle) > 0.05
    assert abs(np.mean(found) - middle) < 0.05


def _vertex(x: np.ndarray, y: np.ndarray) -> float:
    """Vertex of the parabola through the five points around the best one."""
    best = int(np.clip(y.argmax(), 2, len(x) - 3))
    window = slice(best - 2, best + 3)
    a, b, _ = np.polyfit(x[window] - x[best], y[window], 2)
    return float(x[best] + np.clip(-b / (2 * a), -0.5, 0.5)) if a < 0 else float(x[best])


# What the verdict says.


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


def test_a_ratio_on_the_bound_asks_for_a_finer_grid() -> None:
    found = verdict(*simulated(math.log10(5.0), spacing=0.5, points=6))
    assert found.verdict == "undecided"
    assert "a finer grid" in found.reason


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
    search = replace(search_summary(sweep), fraction=0.05)
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
    found = judged(learning_rate.check, sweep)
    assert [v.arms[0] for v in found] == ["lora-r1", "lora-r8"]
    assert all("alpha_rules_differ" in v.flags for v in found)
    assert all("alpha x learning rate (here " in v.reason for v in found)
    assert "alpha_rules_differ" not in verdict(arm, baseline).flags


@pytest.mark.parametrize(
    ("arms", "missing"), [(["full"], "no LoRA arm"), (["lora-r8"], "no FullFT arm")]
)
def test_a_sweep_of_one_method_is_undecided(arms: list[str], missing: str) -> None:
    arm, _ = simulated(1.0)
    found = check_claims(experiment(dict.fromkeys(arms, arm)))
    assert [v.claim_id for v in found] == ["C1", "C2", "C3"]
    assert all(v.verdict == "undecided" and missing in v.reason for v in found)


def test_a_baseline_must_differ_in_the_method_alone() -> None:
    arm, baseline = simulated(1.0)
    other = {"lora-r8": {"objective": {"name": "grpo", "prompts_per_step": 64}}}
    found = verdict(arm, baseline, configs=other)
    assert found.verdict == "undecided"
    assert "No FullFT arm differs from lora-r8 in the method alone" in found.reason


def test_each_arm_meets_the_baseline_of_its_own_settings() -> None:
    arm, baseline = simulated(1.0)
    large = {"objective": {"name": "grpo", "prompts_per_step": 64}}
    sweep = experiment(
        {"full": baseline, "full-b64": baseline, "lora-r8": arm, "lora-r8-b64": arm},
        configs={"full-b64": large, "lora-r8-b64": large},
    )
    found = judged(learning_rate.check, sweep)
    assert [v.arms for v in found] == [("lora-r8", "full"), ("lora-r8-b64", "full-b64")]


@pytest.mark.parametrize("kind", ["adhoc", "single"])
def test_sweeps_without_a_criterion_get_no_verdicts(kind: str) -> None:
    arm, baseline = simulated(1.0)
    assert check_claims(experiment({"full": baseline, "lora-r8": arm}, kind=kind)) == []
