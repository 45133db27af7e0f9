"""C9: training FLOPs per token against 2/3 + 2r/N, from what runs recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from analysis.claims import c09_flops, check_claims, not_addressed
from analysis.claims.verdict import Verdict
from analysis.reading.sweep import Sweep
from tests.unit.analysis.claims.worlds import only, world
from tests.unit.analysis.simulated_sweeps import MED, experiment, judged

CLOSED = 2 / 3 + 2 * 8 / 64  # rank 8 at hidden size 64: 0.9167


def sweep(
    ratios: Sequence[float],
    *,
    sampled: float | None = 1000.0,
    evaluated: float | None = None,
    hidden: int = 64,
    targets: Any = "all",
    **settings: Any,
) -> Sweep:
    """FullFT takes 3000 FLOPs per token on every seed, LoRA ``ratios`` of that, seed by seed.

    Tokens differ from seed to seed; both methods sample at the same cost per trained token.
    """
    report = {name: [0.5 + 0.01 * i for i in range(len(ratios))] for name in ("full", "lora-r8")}
    facts = {name: {"model": {"hidden_size": hidden}} for name in report}
    methods = {"lora-r8": {"target_modules": targets}}
    curves = world({"full": MED, "lora-r8": MED.shifted(1.0)})
    found = experiment(curves, report, facts=facts, methods=methods, **settings)
    runs = found.runs.copy()
    share = [
        1.0 if arm == "full" else ratios[seed - 100] if phase == "report" else 7.0
        for arm, phase, seed in zip(runs["arm"], runs["phase"], runs["seed"], strict=True)
    ]
    tokens = 1000 + 10 * runs["seed"]
    runs = runs.assign(train_tokens=tokens, train_flops=3000.0 * tokens * share)
    if sampled is not None:
        runs["rollout_flops"] = sampled * tokens
    if evaluated is not None:
        runs["probes"] = [{"evaluation_flops": evaluated * n} for n in tokens]
    return replace(found, runs=runs)


def verdict(found: Sweep) -> Verdict:
    return only(judged(c09_flops.check, found))


@pytest.mark.parametrize(
    ("centre", "expected"),
    [(CLOSED, "supported"), (0.82, "refuted"), (1.0, "refuted"), (0.98 * CLOSED, "undecided")],
)
def test_the_verdict_follows_the_truth(centre: float, expected: str) -> None:
    found = verdict(sweep([centre - 0.001, centre, centre + 0.001]))
    assert (found.verdict, found.arms, found.n_seeds) == (expected, ("lora-r8", "full"), 3)
    # t(2 df, 90 %) = 2.920; SD 0.001 over sqrt(3).
    half = 2.920 * 0.001 / 3**0.5
    assert found.estimate == pytest.approx(centre)
    assert found.interval == pytest.approx((centre - half, centre + half), abs=1e-6)
    assert ("report seed" in found.missing) == (expected == "undecided")


def test_the_statement_names_the_closed_form_and_the_reason_the_bounds() -> None:
    found = verdict(sweep([0.82] * 2 + [0.821]))
    assert "needs 2/3 + 2r/N = 0.917 of FullFT (full)'s training FLOPs per token" in found.statement
    assert "wholly outside [0.898, 0.935]" in found.reason
    assert "limit of many square layers" in found.reason


def test_a_sum_that_is_equal_on_every_seed_is_exact() -> None:
    found = verdict(sweep([0.82, 0.82, 0.82]))
    assert (found.verdict, found.interval) == ("refuted", (found.estimate, found.estimate))


def test_two_seeds_are_undecided() -> None:
    found = verdict(sweep([0.82, 0.821]))
    assert (found.verdict, found.interval, found.flags) == ("undecided", None, ("few_seeds",))
    assert found.missing == "1 more report seed"


def test_sampling_and_evaluation_are_beside_it_by_hand() -> None:
    # (0.8 x 3000 + 1000) / 4000 = 0.85; with 2000 of evaluation (2400 + 3000) / 6000 = 0.9.
    assert verdict(sweep([0.8] * 3)).reason.endswith("with sampling, the ratio is 0.850.")
    reason = verdict(sweep([0.8] * 3, evaluated=2000.0)).reason
    assert reason.endswith("the ratio is 0.850; with held-out evaluation too, 0.900.")
    assert verdict(sweep([0.8] * 3, sampled=None)).reason.endswith("no end-to-end ratio.")


def test_search_runs_and_diverged_runs_do_not_count() -> None:
    given = sweep([0.82, 0.821, 0.822, 9.0])  # the search has 7.0
    last = (given.runs["arm"] == "lora-r8") & (given.runs["seed"] == 103)
    given.runs.loc[last, "status"] = "diverged"
    found = verdict(given)
    assert (found.n_seeds, found.estimate) == (3, pytest.approx(0.821))


def test_without_report_seeds_the_search_runs_at_the_best_rate_count() -> None:
    given = sweep([])
    assert verdict(given).estimate == pytest.approx(7.0)
    assert "search seeds" in verdict(given).reason


def test_an_unfinished_sweep_is_undecided() -> None:
    found = verdict(sweep([0.82] * 3, missing=2))
    assert (found.verdict, found.missing) == ("undecided", "the 2 missing runs")


def test_no_shared_seed_is_undecided() -> None:
    given = sweep([0.82] * 3)
    given.runs.loc[(given.runs["arm"] == "full"), "train_flops"] = float("nan")
    found = verdict(given)
    assert found.flags == ("incomplete",)
    assert found.missing == "report seeds that lora-r8 and full share"


def test_it_is_not_addressed_without_records_of_flops() -> None:
    given = sweep([0.82] * 3)
    given = replace(given, runs=given.runs.drop(columns=["train_tokens"]))
    lack = {claim.claim_id: text for claim, text in not_addressed(given)}["C9"]
    assert lack == "records of training FLOPs and of the tokens they were for"


def test_a_part_of_the_layers_has_no_closed_form() -> None:
    given = sweep([0.7] * 3, targets="attention")
    assert not [v for v in check_claims(given) if v.claim_id == "C9"]
    assert "on all layers" in c09_flops.CLAIM.lacks(given)
