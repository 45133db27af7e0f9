"""C21: at equal rank, alpha changes the step size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from analysis.claims import c21_alpha
from analysis.claims.verdict import Verdict
from analysis.estimates.optimum import lr_ratio
from analysis.estimates.search import search_summary
from analysis.reading.arms import arms
from analysis.reading.sweep import Sweep
from analysis.simulate.draws import Design
from tests.unit.analysis.claims.worlds import FIVE_SEEDS, cut_above, only, world
from tests.unit.analysis.simulated_sweeps import MED, experiment, judged

ALPHAS = (8.0, 32.0, 128.0)


def sweep(
    power: float, alphas: Sequence[float] = ALPHAS, design: Design = FIVE_SEEDS, **settings: Any
) -> Sweep:
    """Arms of rank 8 whose best rate goes with alpha^power: -1 is a pure step size."""
    truths = {
        f"lora-r8-a{alpha:g}": MED.shifted(power * math.log10(alpha / alphas[0]))
        for alpha in alphas
    }
    methods: Mapping[str, dict[str, Any]] = {
        name: {"lora_alpha": alpha} for name, alpha in zip(truths, alphas, strict=True)
    }
    return experiment(world(truths, design), methods=methods, **settings)


def verdict(found: Sweep) -> Verdict:
    return only(judged(c21_alpha.check, found))


def test_a_rate_inverse_to_alpha_is_supported() -> None:
    given = sweep(-1)
    found, search = verdict(given), search_summary(given)
    assert (found.verdict, found.missing) == ("supported", "")
    assert found.arms == ("lora-r8-a8", "lora-r8-a32", "lora-r8-a128")
    ratio = lr_ratio(
        search.curves["lora-r8-a128"], search.curves["lora-r8-a8"], search.fraction_of("lora-r8-a8")
    ).centre
    assert found.estimate == pytest.approx(16 * ratio.point)
    assert "All 3 pairs lie inside [0.5, 2]: the products alpha x LR* agree" in found.reason
    assert f"LR* of lora-r8-a128 over lora-r8-a8 is {ratio.point:.2g}" in found.reason


def test_a_rate_that_alpha_does_not_move_refutes_it() -> None:
    found = verdict(sweep(0))
    assert found.verdict == "refuted" and "after Holm's correction over 3 pairs" in found.reason
    assert found.estimate == pytest.approx(16, rel=0.35)


def test_alphas_that_hardly_differ_have_nothing_to_explain() -> None:
    found = verdict(sweep(-1, (32.0, 36.0)))
    assert found.verdict == "undecided"
    assert "which holds 1, so there is nothing to explain" in found.reason
    assert found.missing.endswith(", or alphas that lie further apart")


def test_a_rate_that_grows_with_alpha_is_no_step_size() -> None:
    # The products differ by 36/32 x 1.35 = 1.5, inside the factor of 2, and yet the rate rises.
    names, alphas = ("lora-r8-a32", "lora-r8-a36"), (32.0, 36.0)
    truths = {names[0]: MED, names[1]: MED.shifted(math.log10(1.35))}
    methods = {name: {"lora_alpha": alpha} for name, alpha in zip(names, alphas, strict=True)}
    curves = world(truths, Design(seeds=20, spacing=0.1, points=20))
    found = verdict(experiment(curves, methods=methods))
    assert (found.verdict, found.missing) == ("undecided", "alphas that lie further apart")
    assert "The pair lies inside [0.5, 2]" in found.reason and "grows with alpha" in found.reason


def test_a_half_way_power_on_coarse_grids_is_undecided() -> None:
    found = verdict(sweep(-0.75, (8.0, 128.0), Design(seeds=3, spacing=0.5, points=6)))
    assert found.verdict == "undecided" and found.missing


def test_one_seed_lists_products() -> None:
    found = verdict(sweep(-1, design=Design(seeds=1)))
    assert (found.verdict, found.interval, found.flags) == ("undecided", None, ("few_seeds",))
    assert "The products alpha x LR* over that of lora-r8-a8: lora-r8-a32 " in found.reason


def test_an_edge_is_left_out_and_named() -> None:
    truths = {f"lora-r8-a{alpha:g}": MED.shifted(-math.log10(alpha / 8)) for alpha in ALPHAS}
    curves = world(truths)
    curves["lora-r8-a32"] = cut_above(curves["lora-r8-a32"])
    methods = {f"lora-r8-a{alpha:g}": {"lora_alpha": alpha} for alpha in ALPHAS}
    found = verdict(experiment(curves, methods=methods))
    assert found.verdict == "undecided" and "edge_high" in found.flags
    assert found.missing == "extend the grid of lora-r8-a32 upwards"
    assert "Left out: Extend the grid of lora-r8-a32 upwards" in found.reason


@pytest.mark.parametrize(
    ("rank", "rule", "constant", "alpha"),
    [(8, "constant", 32.0, 32.0), (8, "2r", 32.0, 16.0), (4, "sqrt", 4.0, 8.0)],
)
def test_alpha_by_rule(rank: int, rule: str, constant: float, alpha: float) -> None:
    name = f"lora-r{rank}"
    methods = {name: {"alpha_rule": rule, "lora_alpha": constant}}
    given = experiment(world({name: MED}), methods=methods)
    assert c21_alpha.alpha_of(given, arms(given)[0]) == pytest.approx(alpha)


def test_each_rank_is_a_group_and_rules_of_equal_alpha_are_one() -> None:
    truths = dict.fromkeys(("lora-r4", "lora-r4-x", "lora-r16", "lora-r16-x"), MED)
    methods = {name: {"alpha_rule": "2r"} for name in truths if name.endswith("x")}
    given = experiment(world(truths), methods=methods)
    # At rank 16 the rule 2r gives 32, the constant: nothing differs.
    assert [v.arms for v in judged(c21_alpha.check, given)] == [("lora-r4-x", "lora-r4")]


def test_one_alpha_is_not_addressed() -> None:
    lack = c21_alpha.CLAIM.lacks(experiment(world({"lora-r4": MED, "lora-r8": MED})))
    assert lack == "LoRA arms of one rank that differ in alpha alone"


def test_an_unfinished_sweep_is_undecided() -> None:
    found = verdict(sweep(-1, missing=1))
    assert (found.verdict, found.missing) == ("undecided", "the 1 missing run")
