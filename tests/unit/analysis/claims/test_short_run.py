"""C4: the ratio of best learning rates is larger in short runs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.claims import c04_short_run
from analysis.claims.verdict import Verdict
from analysis.estimates.curve import LrCurve
from analysis.estimates.length import curves_by_step, ratio_slope
from analysis.estimates.optimum import log_ratio
from analysis.estimates.search import search_summary
from analysis.reading.sweep import Sweep
from analysis.simulate.draws import Design, simulate_scores
from tests.unit.analysis.claims.worlds import cut_above, only
from tests.unit.analysis.simulated_sweeps import MED, experiment, judged

STEPS = (25, 50, 100, 200)
DESIGN = Design(seeds=5, spacing=0.2, points=14)


def sweep(power: float, design: Design = DESIGN, cut: bool = False, **settings: Any) -> Sweep:
    """The ratio is 10 (step / 200)^power, evaluated at four steps; FullFT does not move."""
    rng = np.random.default_rng(0)
    centre = sum(MED.plateau(0.2)) / 2
    grid = (np.arange(design.points) - (design.points - 1) / 2) * design.spacing
    curves: dict[str, LrCurve] = {}
    rows: list[tuple[str, int, str, float]] = []
    for name, offset in (("full", 0.0), ("lora-r8", 1.0)):
        positions = centre + offset + grid
        for step in STEPS:
            moved = 0.0 if name == "full" else power * math.log10(step / STEPS[-1])
            scores = simulate_scores(MED.shifted(offset + moved), positions, design, rng)
            curves[name] = LrCurve(
                name,
                tuple(float(x) for x in 10**positions),
                scores,
                tuple(range(design.seeds)),
                MED.base,
                np.zeros(scores.shape, dtype=bool),
            )
            rows += [
                (f"{name}-search-{rate:g}-{seed}", step, "eval/accuracy", float(scores[i, j]))
                for i, seed in enumerate(curves[name].seeds)
                for j, rate in enumerate(curves[name].learning_rates)
            ]
        if cut:
            curves[name] = cut_above(curves[name])
    found = experiment(curves, **settings)
    runs = found.runs.assign(score_metric="eval/accuracy", final_window=1, steps_done=STEPS[-1])
    metrics = pd.DataFrame(rows, columns=["run_id", "step", "metric", "value"])
    return replace(found, runs=runs, metrics=metrics[metrics["run_id"].isin(runs["run_id"])])


def verdict(found: Sweep) -> Verdict:
    return only(judged(c04_short_run.check, found))


@pytest.mark.parametrize(
    ("power", "expected"), [(-0.6, "supported"), (0.6, "refuted"), (0.0, "undecided")]
)
def test_the_verdict_follows_the_truth(power: float, expected: str) -> None:
    given = sweep(power)
    found = verdict(given)
    assert (found.verdict, found.arms) == (expected, ("lora-r8", "full"))
    assert found.estimate == pytest.approx(power, abs=0.25)
    assert bool(found.missing) == (expected == "undecided")


def test_the_slope_is_that_of_the_four_log_ratios() -> None:
    given = sweep(-0.6)
    fraction = search_summary(given).fraction_of("full")
    curves = curves_by_step(given)
    ratios = [log_ratio(c["lora-r8"], c["full"], fraction).point for c in curves.values()]
    found = verdict(given)
    assert found.estimate == pytest.approx(np.polyfit(np.log10(STEPS), ratios, 1)[0])
    assert f"ratio at step 200: {10 ** ratios[-1]:.2g} [" in found.reason
    arm, full = ({s: c[name] for s, c in curves.items()} for name in ("lora-r8", "full"))
    slope = ratio_slope(arm, full, fraction)
    assert slope is not None and found.interval == slope.estimate().interval


def test_a_last_step_without_a_ratio_is_not_quoted() -> None:
    given = sweep(-0.6)
    # At the last evaluation LoRA no longer falls off inside its grid: an edge gives no ratio.
    late = given.metrics["run_id"].str.startswith("lora") & (given.metrics["step"] == STEPS[-1])
    metrics = given.metrics.assign(value=given.metrics["value"].where(~late, 0.8))
    arm, full = (
        {s: found[name] for s, found in curves_by_step(replace(given, metrics=metrics)).items()}
        for name in ("lora-r8", "full")
    )
    text = c04_short_run._ends_text(arm, full, 0.2)
    assert text.startswith("ratio at step 100: ") and "[" in text


def test_two_seeds_give_a_point_and_ask_for_one_more() -> None:
    found = verdict(sweep(-0.6, replace(DESIGN, seeds=2)))
    assert (found.verdict, found.interval, found.missing) == (
        "undecided",
        None,
        "1 more search seed",
    )


def test_grids_that_hold_no_plateau_give_no_slope() -> None:
    found = verdict(sweep(-0.6, cut=True))
    assert (found.verdict, found.flags) == ("undecided", ("few_lengths",))
    assert found.missing == "evaluations at more steps, or wider grids"


def test_a_schedule_with_a_horizon_is_refused() -> None:
    cosine = {"objective": {"name": "grpo", "lr_scheduler_type": "cosine", "prompts_per_step": 8}}
    found = verdict(sweep(-0.6, configs={"full": cosine, "lora-r8": cosine}))
    assert (found.verdict, found.flags) == ("undecided", ("schedule",))
    assert found.reason.startswith("lora-r8 follows a cosine schedule")


def test_without_evaluations_on_the_way_it_is_not_addressed() -> None:
    given = sweep(-0.6)
    silent = replace(given, metrics=given.metrics.iloc[:0])
    assert c04_short_run.CLAIM.lacks(silent).startswith("evaluations on the way")
    assert c04_short_run.CLAIM.lacks(given) == ""


def test_many_lengths_are_thinned_to_eight_of_even_spacing() -> None:
    lengths = {step: {} for step in range(10, 1001, 10)}
    kept = c04_short_run._spread(lengths)
    # 10 x 100^(k/7), to the nearest ten.
    assert list(kept) == [10, 20, 40, 70, 140, 270, 520, 1000]
