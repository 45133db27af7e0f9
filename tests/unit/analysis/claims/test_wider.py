"""C6: LoRA's plateau is wider; ramp and cliff say by which side."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.claims import c06_wider
from analysis.claims.verdict import Verdict
from analysis.estimates.curve import LrCurve
from analysis.estimates.optimum import lr_ratio
from analysis.estimates.search import search_summary
from analysis.simulate.draws import ArmTruth, Design
from tests.unit.analysis.claims.worlds import cut_above, only, world
from tests.unit.analysis.simulated_sweeps import MED, experiment, judged

WIDE = replace(MED, ramp=MED.ramp - 0.19, span=MED.span + 0.65)


def curves(lora: ArmTruth, full: ArmTruth, seeds: int = 5) -> dict[str, LrCurve]:
    return world({"full": full, "lora-r8": lora}, Design(seeds=seeds, points=11))


def verdict(arms: dict[str, LrCurve]) -> Verdict:
    return only(judged(c06_wider.check, experiment(arms)))


@pytest.mark.parametrize(
    ("lora", "full", "expected"),
    [(WIDE, MED, "supported"), (MED, WIDE, "refuted"), (MED, MED, "undecided")],
)
def test_the_verdict_follows_the_truth(lora: ArmTruth, full: ArmTruth, expected: str) -> None:
    arms = curves(lora, full)
    found = verdict(arms)
    assert (found.verdict, found.n_seeds) == (expected, 5)
    truth = [arm.plateau(0.2)[1] - arm.plateau(0.2)[0] for arm in (lora, full)]
    assert found.estimate == pytest.approx(truth[0] - truth[1], abs=0.2)
    ratio = lr_ratio(
        arms["lora-r8"], arms["full"], search_summary(experiment(arms)).fraction_of("full")
    )
    assert found.interval == ratio.width_difference.interval


def test_the_two_sides_are_named() -> None:
    arms = curves(WIDE, MED)
    found = verdict(arms)
    ratio = lr_ratio(
        arms["lora-r8"], arms["full"], search_summary(experiment(arms)).fraction_of("full")
    )
    assert f"the ramp lies at {ratio.ramp.point:.1f} [" in found.reason
    assert f"the cliff at {ratio.cliff.point:.1f} [" in found.reason
    # The truth: 0.19 decades lower and 0.46 higher.
    assert ratio.ramp.point < 1 < ratio.cliff.point


def test_an_undecided_width_asks_for_seeds_or_a_finer_grid() -> None:
    found = verdict(curves(replace(MED, span=MED.span + 0.1), MED, seeds=3))
    assert found.verdict == "undecided"
    assert "seed" in found.missing or "finer grid" in found.missing


@pytest.mark.parametrize("edge", ["full", "lora-r8"])
def test_an_edge_of_either_arm_is_undecided(edge: str) -> None:
    arms = curves(WIDE, MED)
    arms[edge] = cut_above(arms[edge])
    found = verdict(arms)
    assert (found.verdict, found.estimate, found.interval) == ("undecided", None, None)
    assert found.missing == f"extend the grid of {edge} upwards"


def test_one_seed_gives_points() -> None:
    found = verdict(curves(WIDE, MED, seeds=1))
    assert (found.verdict, found.interval, found.missing) == (
        "undecided",
        None,
        "2 more search seeds",
    )
    assert f"As points: {found.estimate:+.2f} decades; the ramp lies at" in found.reason


def test_without_the_untrained_model_no_plateau_has_ends() -> None:
    arms = {name: replace(curve, base=None) for name, curve in curves(WIDE, MED).items()}
    found = verdict(arms)
    assert (found.verdict, found.flags) == ("undecided", ("no_base",))
    assert found.missing == "an evaluation of the untrained model"
