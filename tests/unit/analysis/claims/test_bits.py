"""C10: bits that rewards can tell against capacity, from what runs recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from analysis.claims import c10_bits, check_claims, not_addressed
from analysis.claims.verdict import Verdict
from analysis.reading.sweep import Sweep
from tests.unit.analysis.claims.worlds import only, world
from tests.unit.analysis.simulated_sweeps import MED, experiment, judged

PARAMETERS_PER_RANK = 100  # capacity: 200 bits a rank
EPISODES = 1000


def sweep(
    bits: Mapping[str, Sequence[float]],
    scores: Mapping[str, Sequence[float]] | None = None,
    *,
    with_full: bool = True,
    **settings: Any,
) -> Sweep:
    """Arms like ``lora-r4`` with the bits of each report seed; binary rewards, 1000 episodes."""
    names = [*(["full"] if with_full else []), *bits]
    seeds = len(next(iter(bits.values())))
    curves = world(dict.fromkeys(names, MED))
    report = scores or {name: [0.5 + 0.01 * i for i in range(seeds)] for name in names}
    sizes = {name: PARAMETERS_PER_RANK * int(name.split("-r")[1]) for name in bits}
    facts = {name: {"trainable_params": size} for name, size in sizes.items()}
    found = experiment(curves, report, facts=facts, **settings)
    runs = found.runs.copy()
    told = [
        bits[arm][seed - 100] if phase == "report" and arm in bits else 1e9
        for arm, phase, seed in zip(runs["arm"], runs["phase"], runs["seed"], strict=True)
    ]
    runs["probes"] = [{"reward_bits": value, "reward_values": 2, "groups": 9} for value in told]
    return replace(found, runs=runs.assign(episodes=EPISODES))


def verdict(found: Sweep) -> Verdict:
    return only(judged(c10_bits.check, found))


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ([20.0, 22.0, 24.0], "supported"),  # a tenth of 200 bits
        ([300.0, 302.0, 304.0], "refuted"),
        ([180.0, 200.0, 220.0], "undecided"),
    ],
)
def test_the_verdict_follows_the_truth_at_the_smallest_rank(
    own: list[float], expected: str
) -> None:
    found = verdict(sweep({"lora-r1": own, "lora-r8": [20.0, 22.0, 24.0]}))
    assert (found.verdict, found.arms, found.n_seeds) == (expected, ("lora-r1", "lora-r8"), 3)
    spread = 2.920 * (own[1] - own[0]) / 3**0.5 / 200  # t at 2 degrees of freedom
    centre = own[1] / 200
    assert found.estimate == pytest.approx(centre)
    assert found.interval == pytest.approx((centre - spread, centre + spread), rel=1e-3)
    assert ("report seeds" in found.missing) == (expected == "undecided")


def test_a_rank_above_capacity_is_corrected_for_the_number_of_ranks() -> None:
    own = [202.0, 206.0, 210.0, 206.0]  # mean 1.03 of capacity, SE 1.633 / 200 = 0.0082
    alone = verdict(sweep({"lora-r1": own}))
    assert alone.verdict == "refuted"  # t of 3 degrees of freedom at 90 %: 2.353; from 1.011 on
    rest = {f"lora-r{rank}": [1.0, 2.0, 3.0, 4.0] for rank in (2, 4, 8, 16, 32)}
    beside = verdict(sweep({"lora-r1": own, **rest}))
    # At 98.33 % it is 4.86: from 0.990 on.
    assert beside.verdict == "undecided"


def test_episodes_are_told_by_hand() -> None:
    found = verdict(sweep({"lora-r1": [100.0, 110.0, 120.0], "lora-r8": [90.0, 90.0, 90.0]}))
    # (0.11 + 0.09) / 2 bits an episode; two reward values allow one.
    assert "An episode told 0.10 bits, of 1.00 that its rewards allow." in found.reason
    assert "0.55 [" in found.reason and "0.056 [0.056, 0.056] at rank 8" in found.reason


def test_where_there_is_no_room_the_gap_to_full_fine_tuning_is_stated() -> None:
    bits = {
        "lora-r1": [800.0, 810.0, 820.0],  # 4.05 x capacity
        "lora-r2": [800.0, 810.0, 820.0],  # 2.02
        "lora-r4": [800.0, 810.0, 820.0],  # 1.01
    }
    scores = {
        "full": [0.50, 0.51, 0.52],
        "lora-r1": [0.44, 0.45, 0.46],
        "lora-r2": [0.46, 0.47, 0.48],
        "lora-r4": [0.48, 0.49, 0.50],
    }
    found = verdict(sweep(bits, scores))
    assert found.verdict == "refuted"
    assert "+0.060 at rank 1, +0.040 at rank 2, +0.020 at rank 4" in found.reason
    assert "+0.020 [" in found.reason and "per doubling of the load" in found.reason
    few = verdict(sweep({name: bits[name] for name in ("lora-r1", "lora-r2")}))
    assert "a slope on log2 of the load needs 3 ranks" in few.reason
    alone = verdict(sweep(bits, with_full=False))
    assert "There is no FullFT arm to tell what that costs." in alone.reason


def test_two_seeds_are_undecided() -> None:
    found = verdict(sweep({"lora-r1": [20.0, 21.0]}))
    assert (found.verdict, found.interval, found.flags) == ("undecided", None, ("few_seeds",))
    assert found.missing == "1 more report seed"


def test_an_arm_without_probes_is_undecided_and_named() -> None:
    given = sweep({"lora-r1": [20.0] * 3, "lora-r8": [20.0] * 3})
    mine = given.runs["arm"] == "lora-r8"
    given.runs["probes"] = [
        None if one else probes for one, probes in zip(mine, given.runs["probes"], strict=True)
    ]
    found = verdict(given)
    assert (found.verdict, found.missing) == ("undecided", "report runs of lora-r8")


def test_without_probes_it_is_not_addressed() -> None:
    given = sweep({"lora-r1": [20.0] * 3})
    given = replace(given, runs=given.runs.drop(columns=["probes"]))
    assert not [v for v in check_claims(given) if v.claim_id == "C10"]
    lack = {claim.claim_id: text for claim, text in not_addressed(given)}["C10"]
    assert lack == "records of the bits that the rewards of each run could tell"


def test_an_unfinished_sweep_is_undecided() -> None:
    found = verdict(sweep({"lora-r1": [20.0] * 3}, missing=3))
    assert (found.verdict, found.missing) == ("undecided", "the 3 missing runs")
