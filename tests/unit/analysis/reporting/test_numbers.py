from __future__ import annotations

import json
import math
from dataclasses import asdict

import pytest

from analysis.claims.verdict import Verdict
from analysis.estimates.stats import Estimate
from analysis.reporting.json_text import claims_json
from analysis.reporting.numbers import (
    difference_text,
    listed,
    plural,
    quantity_text,
    ratio_text,
    score_text,
    seconds_text,
    verdict_estimate,
)


def test_numbers_in_words() -> None:
    assert score_text(Estimate(0.4949, 0.4881, 0.5019, 3)) == "0.495 [0.488, 0.502]"
    assert score_text(Estimate(0.4949, None, None, 2)) == "0.495 (no interval, n = 2)"
    assert score_text(Estimate(0.0, None, None, 3)) == "0.000 (no interval, all values equal)"
    assert score_text(None) == score_text(Estimate(math.nan, None, None, 3)) == "none"
    assert difference_text(Estimate(0.01, -0.002, 0.022, 3)) == "+0.010 [-0.002, +0.022]"
    assert ratio_text(Estimate(10.24, 6.76, 15.31, 3)) == "10.2 [6.8, 15.3]"
    assert ratio_text(Estimate(1.618, 1.31, 2.014, 3)) == "1.62 [1.31, 2.01]"
    quantities = (131712, 1.6e12, None, math.nan)
    assert [quantity_text(x) for x in quantities] == ["131,712", "1.60e12", "-", "-"]
    assert [seconds_text(x) for x in (90, 720, 12240, None)] == ["90 s", "12 min", "3.4 h", "-"]
    assert [listed(names) for names in ([], ["a"], ["a", "b", "c"])] == ["", "a", "a, b and c"]
    assert [plural(n, "run") for n in (1, 2, 10_000)] == ["1 run", "2 runs", "10,000 runs"]


@pytest.mark.parametrize(
    ("unit", "interval", "said"),
    [
        ("difference", (-0.002, 0.022), "+0.010 [-0.002, +0.022]"),
        ("ratio", (0.002, 0.022), "0.01 [0.00, 0.02]"),
        ("decades", (-0.002, 0.022), "+0.01 [-0.002, +0.02] decades"),
        ("decades", None, "+0.01 decades (no interval, see notes)"),
        ("slope", (-0.002, 0.022), "slope +0.01 [-0.002, +0.022]"),
        ("something new", (-0.002, 0.022), "0.01 [-0.002, 0.022]"),
    ],
)
def test_an_estimate_reads_by_its_unit(
    unit: str, interval: tuple[float, float] | None, said: str
) -> None:
    verdict = Verdict("C9", "", ("a", "b"), 0.01, interval, 0.9, "supported", "", 3, unit=unit)

    assert verdict_estimate(verdict) == said
    assert asdict(verdict)["estimate"] == 0.01


def test_numbers_that_are_not_finite_become_null() -> None:
    verdict = Verdict("C3", "s", ("a",), math.nan, (1.0, math.inf), 0.9, "undecided", "", 3)

    (claim,) = json.loads(claims_json([verdict]))
    assert claim["estimate"] is None and claim["interval"] == [1.0, None]
    assert verdict_estimate(verdict) == "no estimate"
