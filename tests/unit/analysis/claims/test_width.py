"""C20: does the ratio grow with the width of the model?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm

from analysis.claims import c20_width
from analysis.claims.verdict import Verdict
from analysis.estimates.optimum import log_ratio
from analysis.estimates.search import search_summary
from analysis.reading.sweep import Sweep
from analysis.simulate.draws import Design
from tests.unit.analysis.claims.worlds import FINE, cut_above, only, world
from tests.unit.analysis.simulated_sweeps import MED, experiment, judged

WIDTHS = (64, 256, 1024, 4096)


def sweep(
    slope: float,
    design: Design = FINE,
    widths: Sequence[int] = WIDTHS,
    cut: str | None = None,
    rng_seed: int = 0,
) -> Sweep:
    """Ratios 4 x (width / 64)^slope at every width."""
    truths = {}
    for width in widths:
        truths[f"full-w{width}"] = MED
        truths[f"lora-r8-w{width}"] = MED.shifted(math.log10(4) + slope * math.log10(width / 64))
    curves = world(truths, design, rng_seed)
    if cut is not None:
        curves[cut] = cut_above(curves[cut])
    width_of = {name: int(name.split("-w")[1]) for name in curves}
    return experiment(
        curves,
        configs={
            name: {"model": {"name": f"lab{width}", "dtype": "float32"}}
            for name, width in width_of.items()
        },
        facts={name: {"model": {"hidden_size": width}} for name, width in width_of.items()},
        factors=("method", "model.name"),
    )


def verdict(found: Sweep) -> Verdict:
    return only(judged(c20_width.check, found))


def test_growth_with_the_square_root_is_supported() -> None:
    found = verdict(sweep(0.5))
    assert (found.verdict, found.missing, found.n_seeds) == ("supported", "", 8)
    assert found.estimate == pytest.approx(0.5, abs=0.1)
    assert found.statement == (
        "The ratio of best learning rates of LoRA at rank 8 and FullFT grows with the hidden size "
        "(64, 256, 1024, 4096): arithmetic (sum3)."
    )
    assert len(found.arms) == 8


def test_a_constant_ratio_refutes_the_growth() -> None:
    found = verdict(sweep(-0.02))
    assert found.verdict == "refuted"
    assert "wholly below 0.25, half the theory's 0.5" in found.reason


def test_slow_growth_is_supported_and_called_slow() -> None:
    found = verdict(sweep(0.13, replace(FINE, seeds=20)))
    assert found.verdict == "supported"
    assert "above 0, yet slower than half the theory's 0.5" in found.reason


def test_the_slope_is_the_weighted_least_squares_of_statsmodels() -> None:
    given = sweep(0.5)
    search = search_summary(given)
    contrasts = [
        log_ratio(
            search.curves[f"lora-r8-w{w}"],
            search.curves[f"full-w{w}"],
            search.fraction_of(f"full-w{w}"),
        )
        for w in WIDTHS
    ]
    errors = np.array([math.hypot(c.standard_error, c.grid_term) for c in contrasts])
    x = sm.add_constant(np.log10(WIDTHS))
    line = sm.WLS([c.point for c in contrasts], x, weights=errors**-2.0).fit(cov_type="fixed scale")
    found = verdict(given)
    assert found.estimate == pytest.approx(line.params[1])
    scatter = math.sqrt(sm.WLS([c.point for c in contrasts], x, weights=errors**-2.0).fit().scale)
    half = 2.919986 * line.bse[1] * max(1.0, scatter)  # t[.95, 2]
    assert found.interval == pytest.approx((line.params[1] - half, line.params[1] + half))


def test_slopes_between_zero_and_a_quarter_are_undecided() -> None:
    found = verdict(sweep(0.12, widths=(64, 96, 128, 192)))
    assert found.verdict == "undecided" and found.interval is not None
    assert found.interval[0] <= 0 and found.interval[1] >= 0.25
    assert found.missing == "hidden sizes that lie further apart, or more search seeds"


def test_uncertain_ratios_are_undecided_and_named() -> None:
    found = verdict(sweep(0.5, Design(seeds=3, points=11)))
    assert (found.verdict, "wide_error" in found.flags) == ("undecided", True)
    assert "the standard error of the log10 ratio is above 0.06 at " in found.reason
    assert "more search seed" in found.missing and " for lora-r8-w" in found.missing


def test_a_grid_that_no_seed_can_mend_is_said() -> None:
    found = verdict(sweep(0.5, Design(seeds=10, spacing=0.5, points=6)))
    assert found.verdict == "undecided" and "a finer grid for lora-r8-w" in found.missing


def test_three_widths_are_one_too_few() -> None:
    found = verdict(sweep(0.5, widths=WIDTHS[:3]))
    assert (found.verdict, found.estimate) == ("undecided", None)
    assert "A slope needs ratios at 4 hidden sizes, known are 3 (64: " in found.reason
    assert found.missing == "models of 1 more hidden size"


def test_an_edge_at_one_of_four_widths_is_what_is_missing() -> None:
    found = verdict(sweep(0.5, cut="lora-r8-w256"))
    assert (found.verdict, found.estimate) == ("undecided", None)
    assert found.missing == "extend the grid of lora-r8-w256 upwards"
    assert "edge_high" in found.flags


def test_an_edge_at_one_of_five_widths_is_left_out() -> None:
    found = verdict(sweep(0.5, widths=(*WIDTHS, 16384), cut="lora-r8-w256"))
    assert found.verdict == "supported" and "edge_high" in found.flags
    assert "Extend the grid of lora-r8-w256 upwards" in found.reason


def test_one_seed_at_every_width_is_undecided() -> None:
    found = verdict(sweep(0.5, replace(FINE, seeds=1)))
    assert found.verdict == "undecided" and "2 more search seeds" in found.missing


def test_widths_in_different_precision_are_not_one_course() -> None:
    given = sweep(0.5)
    for name, arm in given.plan["arms"].items():
        wide = int(name.split("-w")[1]) > 300
        arm["config"]["model"]["dtype"] = "bfloat16" if wide else "float32"
    found = judged(c20_width.check, given)
    assert [(len(v.arms), v.verdict) for v in found] == [(4, "undecided"), (4, "undecided")]
    assert found[0].missing == "models of 2 more hidden sizes"


def test_one_width_is_not_addressed() -> None:
    lack = c20_width.CLAIM.lacks(sweep(0.5, widths=WIDTHS[:1]))
    assert lack == "LoRA and FullFT arms on models of different hidden size"


def test_the_width_is_read_from_records_where_the_plan_lacks_it() -> None:
    given = sweep(0.5)
    for arm in given.plan["arms"].values():
        del arm["model"]
    assert c20_width.CLAIM.lacks(given)
    runs = given.runs.assign(hidden_size=[int(arm.split("-w")[1]) for arm in given.runs["arm"]])
    assert verdict(replace(given, runs=runs)).verdict == "supported"


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_no_growth_is_seldom_supported() -> None:
    """Nominal 5 % one-sided; Monte-Carlo SE at 200: 1.5 points."""
    found = [verdict(sweep(0.0, rng_seed=i)).verdict for i in range(200)]
    assert found.count("supported") / len(found) <= 0.08
