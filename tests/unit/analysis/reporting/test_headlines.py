"""Verdicts in a manager's words, whatever the claims are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.claims import Claim
from analysis.claims.verdict import Verdict
from analysis.reading.load import load
from analysis.reporting import headlines as module
from analysis.reporting.headlines import answers, headlines
from analysis.reporting.report import Report
from tests.doubles import write_synthetic_experiment
from tests.unit.analysis.simulated_sweeps import curve, experiment

SWEEP = experiment({"full": curve([[0.1, 0.5, 0.2]], (1e-4, 1e-3, 1e-2))})


@pytest.fixture(autouse=True)
def invented_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims that this package does not have: nothing may know the real ids."""
    questions = {"C90": "Is it new?", "C91": "Is it blue?", "C92": "Is it blue?"}
    found = tuple(
        Claim(i, "", "", "", "ratio", question, lambda _: "", lambda *_: [])
        for i, question in questions.items()
    )
    monkeypatch.setattr(module, "claims", lambda: found)


def verdict(claim: str, arms: tuple[str, ...], word: str, **settings: Any) -> Verdict:
    given: dict[str, Any] = {"estimate": None, "interval": None, "n_seeds": 3, **settings}
    return Verdict(
        claim_id=claim, statement="", arms=arms, confidence=0.9, verdict=word, reason="", **given
    )


def test_an_answer_names_arms_and_numbers_the_supported_first() -> None:
    found = [
        verdict("C90", ("r4", "full"), "undecided"),
        verdict("C90", ("r1", "full"), "supported", estimate=10.0, interval=(8, 12), unit="ratio"),
    ]

    assert headlines(found) == [
        "Is it new? Supported for r1 (ratio 10.0 [8.0, 12.0]); undecided for r4."
    ]


def test_a_refuted_difference_says_on_which_side_the_arm_lies() -> None:
    number = {"estimate": -0.05, "interval": (-0.06, -0.04), "unit": "difference"}
    found = [verdict("C90", ("r1", "full"), "refuted", **number)]

    assert headlines(found) == [
        "Is it new? Refuted: scores lower than full: r1 (difference -0.050 [-0.060, -0.040])."
    ]


def test_the_verdict_on_all_arms_is_the_chip_and_no_item() -> None:
    found = [
        verdict("C90", ("r1", "full"), "supported"),
        verdict("C90", ("r4", "full"), "undecided", missing="2 more seeds"),
        verdict("C90", ("r1", "r4", "full"), "undecided", missing="see above"),
    ]

    (answer,) = answers(SWEEP, found)
    assert answer.verdict == "undecided"
    assert answer.text == "Supported for r1; undecided for r4."
    assert answer.missing == "2 more seeds"


def test_arms_that_differ_without_a_verdict_on_all_are_mixed() -> None:
    found = [
        verdict("C90", ("r1", "full"), "supported"),
        verdict("C90", ("r4", "full"), "refuted", unit="ratio"),
    ]

    assert answers(SWEEP, found)[0].verdict == "mixed"


def test_the_last_claim_that_speaks_answers_a_shared_question() -> None:
    found = [
        verdict("C91", ("r8", "full"), "supported"),
        verdict("C92", ("r1", "full"), "refuted"),
        verdict("C92", ("r8", "full"), "undecided"),
    ]

    assert headlines(found) == ["Is it blue? Refuted for r1; undecided for r8."]
    assert headlines(found[:1]) == ["Is it blue? Supported for r8."]


def test_a_verdict_on_many_arms_at_once_names_its_number_alone() -> None:
    number = {"estimate": 1.56, "interval": (1.03, 2.37), "unit": "ratio"}

    assert headlines([verdict("C90", ("r4", "r16", "r64"), "undecided", **number)]) == [
        "Is it new? Undecided (ratio 1.56 [1.03, 2.37])."
    ]


def test_pairs_are_named_whole_where_a_baseline_is_judged_too() -> None:
    found = [
        verdict("C90", ("all", "mlp"), "supported"),
        verdict("C90", ("mlp", "all"), "undecided"),
        verdict("C90", ("mlp", "r1", "r4"), "undecided"),
    ]

    assert headlines(found) == [
        "Is it new? Supported for all against mlp; "
        "undecided for mlp against all and mlp and 2 more."
    ]


def test_many_arms_are_counted_with_their_range() -> None:
    found = [
        verdict("C90", (f"r{i}", "full"), "supported", estimate=float(i), unit="ratio", n_seeds=1)
        for i in range(5, 11)
    ]
    low, high = "r5 ratio 5.0", "r10 ratio 10.0, no interval, n = 1"

    assert headlines(found) == [f"Is it new? Supported for 6 of 6 (from {low} to {high})."]


def test_what_it_rests_on_is_seeds_grid_and_flags() -> None:
    found = [verdict("C90", ("r1", "full"), "supported", flags=("pooled_sd",))]

    assert answers(SWEEP, found)[0].rests_on == (
        "Rests on 3 seeds; 3 learning rates an arm, 1e-4 to 1e-2, up to 1.00 decades apart; "
        "flags: pooled_sd."
    )
    found = [verdict("C90", ("r1", "full"), "undecided", n_seeds=0)]
    assert answers(SWEEP, found)[0].rests_on.startswith("Nothing estimated; 3 learning rates")


def test_what_is_missing_comes_by_frequency_and_ends_somewhere() -> None:
    wanted = ["a", "b", "b", "c", "d"]
    found = [
        verdict("C90", (f"r{i}", "full"), "undecided", missing=text)
        for i, text in enumerate(wanted)
    ]

    assert answers(SWEEP, found)[0].missing == "b; a; and 2 more, see the verdicts"


def test_arms_without_baseline_are_not_compared() -> None:
    found = [
        verdict("C90", ("r1", "full"), "supported"),
        verdict("C90", ("r8",), "undecided", flags=("no_baseline",)),
    ]

    assert headlines(found) == [
        "Is it new? Supported for r1; not compared: r8 (no full fine-tuning to compare with)."
    ]


def test_an_unknown_claim_is_called_by_its_id() -> None:
    assert headlines([verdict("C99", (), "undecided")]) == ["C99: Undecided."]


def test_the_report_of_the_real_claims_has_an_answer_for_each(
    finished: Report, tmp_path: Path
) -> None:
    judged = {found.claim_id for found in finished.verdicts}

    assert {answer.question for answer in finished.findings.answers} == {
        claim.question for claim in finished.findings.judged.values()
    }
    assert set(finished.findings.judged) == judged
    adhoc = load(write_synthetic_experiment(tmp_path / "q", kind="adhoc", report_seeds=()))
    assert answers(adhoc, []) == []
