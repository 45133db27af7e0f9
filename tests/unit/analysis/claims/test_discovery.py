"""Claims are found by their files; a sweep is asked the ones that it has the arms for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import analysis.claims
from analysis.claims import check_claims, claims, not_addressed
from analysis.estimates.curve import LrCurve
from analysis.simulate.draws import Design, simulate_curve
from tests.unit.analysis.simulated_sweeps import MED, experiment

NEW_CLAIM = """
from analysis.claims.claim import Claim
from analysis.claims.verdict import Obstacle, undecided

CLAIM = Claim(
    claim_id="C99",
    title="new",
    statement="A new claim is one new file.",
    criterion="None.",
    unit="slope",
    question="Is it found?",
    lacks=lambda sweep: "" if "full" in sweep.plan["arms"] else "an arm called full",
    check=lambda sweep, search: [
        undecided("C99", "Found.", ("full",), Obstacle("new", "It is new.", "nothing"))
    ],
)
"""


def plain(arm: str = "full") -> LrCurve:
    return replace(simulate_curve(arm, MED, Design(), np.random.default_rng(0)), arm=arm)


@pytest.fixture
def new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "c99_new.py").write_text(NEW_CLAIM)
    (tmp_path / "helpers.py").write_text("raise AssertionError('not a claim')")
    monkeypatch.setattr(analysis.claims, "__path__", [*analysis.claims.__path__, str(tmp_path)])


def test_claims_come_in_the_order_of_their_numbers() -> None:
    found = claims()
    numbers = [int(claim.claim_id[1:]) for claim in found]
    assert numbers == sorted(set(numbers))
    assert {1, 2, 3, 5, 6, 8, 11, 12, 13, 17, 20, 21, 22} <= set(numbers)
    assert {claim.unit for claim in found} <= {"difference", "ratio", "decades", "slope", "share"}
    for claim in found:
        assert claim.statement.endswith(".") and claim.criterion.endswith(".")
        assert claim.question.endswith("?")


@pytest.mark.usefixtures("new_file")
def test_a_new_file_is_a_new_claim() -> None:
    assert claims()[-1].title == "new"
    found = check_claims(experiment({"full": plain()}))
    assert [(v.claim_id, v.unit, v.missing) for v in found] == [("C99", "slope", "nothing")]
    without = experiment({"lora-r8": plain("lora-r8")})
    assert check_claims(without) == []
    assert (claims()[-1], "an arm called full") in not_addressed(without)


@pytest.mark.parametrize(
    ("arm", "lack"), [("full", "a LoRA arm"), ("lora-r8", "a FullFT arm to compare with")]
)
def test_a_sweep_of_one_method_leaves_comparisons_unaddressed(arm: str, lack: str) -> None:
    sweep = experiment({arm: plain(arm)})
    assert check_claims(sweep) == []
    lacks = {claim.claim_id: text for claim, text in not_addressed(sweep)}
    assert {lacks[name] for name in ("C1", "C2", "C3", "C6")} == {lack}
    assert set(lacks) == {claim.claim_id for claim in claims()}


def test_without_any_baseline_comparisons_are_unaddressed() -> None:
    other = {"lora-r8": {"objective": {"name": "grpo", "prompts_per_step": 64}}}
    sweep = experiment({"full": plain(), "lora-r8": plain("lora-r8")}, configs=other)
    assert check_claims(sweep) == []
    lacks = {claim.claim_id: text for claim, text in not_addressed(sweep)}
    assert lacks["C3"] == "a FullFT arm that differs from a LoRA arm in the method alone"


def test_every_claim_is_either_checked_or_not_addressed() -> None:
    sweep = experiment({"full": plain(), "lora-r4": plain("lora-r4"), "lora-r8": plain("lora-r8")})
    checked = {verdict.claim_id for verdict in check_claims(sweep)}
    assert checked == {"C1", "C2", "C3", "C5", "C6"}
    named = {claim.claim_id for claim, _ in not_addressed(sweep)}
    assert checked | named == {claim.claim_id for claim in claims()}
    assert not checked & named


@pytest.mark.parametrize("kind", ["adhoc", "single"])
def test_sweeps_without_a_criterion_are_asked_nothing(kind: str) -> None:
    sweep = experiment({"full": plain(), "lora-r8": plain("lora-r8")}, kind=kind)
    assert check_claims(sweep) == [] and not_addressed(sweep) == []


def test_an_imported_sweep_is_judged_by_the_defaults() -> None:
    sweep = experiment({"full": plain(), "lora-r8": plain("lora-r8")}, kind="imported")
    assert {verdict.claim_id for verdict in check_claims(sweep)} == {"C1", "C2", "C3", "C6"}


def test_a_hole_in_an_imported_arm_leaves_the_others_judged() -> None:
    curves = {"full": plain(), "lora-r1": plain("lora-r1"), "lora-r8": plain("lora-r8")}
    sweep = experiment(curves, kind="imported", missing=1)  # the last run of lora-r8
    found = {v.arms: v for v in check_claims(sweep) if v.claim_id == "C3"}
    assert found["lora-r1", "full"].verdict == "refuted"
    holed = found["lora-r8", "full"]
    assert (holed.verdict, holed.flags) == ("undecided", ("incomplete",))
    assert holed.missing == "the missing scores of lora-r8"
