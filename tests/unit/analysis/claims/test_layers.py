"""C8: all layers against attention and MLPs alone, at equal rank and at equal parameter count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from analysis.claims import c08_layers, check_claims
from analysis.claims.facts import layer_set, parameters
from analysis.claims.verdict import Verdict
from analysis.estimates.stats import paired_difference
from analysis.reading.arms import arms
from analysis.reading.sweep import Sweep
from tests.unit.analysis.claims.parity_cases import FULL, NOISY, SAME, search
from tests.unit.analysis.simulated_sweeps import experiment, judged

LOWER = [0.60, 0.60, 0.62, 0.58, 0.60]  # not in step with FULL
TARGETS = {"attn": "attention", "mlp": "mlp", "all": "all"}
PARAMETERS = {  # per unit of rank, of lab64: attention 1,024 of 2,816
    "lora-r8-all": 22528,
    "lora-r8-attn": 8192,
    "lora-r22-attn": 22528,
    "lora-r8-mlp": 14336,
    "lora-r12-mlp": 21504,
}


def sweep(report: Mapping[str, Sequence[float]] | None = None, **settings: Any) -> Sweep:
    names = list(report) if report else list(PARAMETERS)
    methods = {name: {"target_modules": TARGETS[name.split("-")[-1]]} for name in names}
    facts = {name: {"trainable_params": PARAMETERS.get(name)} for name in names}
    # A spread that differs by more than a factor of 2 keeps the paired t.
    curves = {name: search(name, 5.0 if name == "lora-r8-all" else 1.0) for name in names}
    defaults: dict[str, Any] = {"methods": methods, "facts": facts}
    return experiment(curves, report, **{**defaults, **settings})


def verdicts(report: Mapping[str, Sequence[float]], **settings: Any) -> list[Verdict]:
    return judged(c08_layers.check, sweep(report, **settings))


def test_all_layers_that_score_higher_support_the_claim_at_equal_parameters() -> None:
    found = verdicts({"lora-r8-all": FULL, "lora-r22-attn": LOWER})
    (matched,) = found
    assert matched.verdict == "supported"
    assert matched.arms == ("lora-r8-all", "lora-r22-attn")
    assert matched.estimate == pytest.approx(0.2)
    assert matched.interval == pytest.approx(paired_difference(FULL, LOWER).estimate().interval)
    assert "equal_parameters" in matched.flags
    assert "at equal parameter count (22,528 and 22,528)" in matched.statement
    assert matched.reason.endswith("excludes 0: lora-r8-all scores higher than lora-r22-attn.")


def test_all_layers_that_score_lower_refute_it() -> None:
    (found,) = verdicts({"lora-r8-all": LOWER, "lora-r22-attn": FULL})
    assert (found.verdict, found.estimate) == ("refuted", pytest.approx(-0.2))
    assert found.reason.endswith("lora-r8-all scores lower than lora-r22-attn.")


def test_noisy_scores_are_undecided_and_say_how_many_seeds_decide() -> None:
    (found,) = verdicts({"lora-r8-all": NOISY, "lora-r22-attn": FULL})
    assert found.verdict == "undecided" and "holds 0: about" in found.reason
    assert found.missing.endswith("more report seeds") and found.missing in found.reason


def test_equal_rank_is_raw_and_equal_parameters_decide() -> None:
    found = verdicts({"lora-r8-all": FULL, "lora-r22-attn": SAME, "lora-r8-attn": LOWER})
    deciding, raw = found
    assert deciding.arms == ("lora-r8-all", "lora-r22-attn")
    assert deciding.verdict == "undecided"
    assert raw.arms == ("lora-r8-all", "lora-r8-attn") and raw.verdict == "undecided"
    assert (
        raw.interval is not None and raw.interval[0] > 0
    )  # a clear gap, and yet it decides nothing
    assert "equal_rank" in raw.flags and "at equal rank (8)" in raw.statement
    assert "train 22,528 and 8,192 parameters: arms of equal parameter count" in raw.reason
    assert raw.missing == "the contrast at equal parameter count"


def test_without_equal_parameters_the_deciding_contrast_is_undecided_and_says_which_rank() -> None:
    found = verdicts({"lora-r8-all": FULL, "lora-r8-attn": LOWER})
    deciding, raw = found
    assert (deciding.verdict, deciding.flags) == ("undecided", ("parameters_differ",))
    # 8 x 22528 / 8192 = 22
    assert deciding.missing == "an arm on attention alone at rank 22"
    assert "22,528 (lora-r8-all) and 8,192 (lora-r8-attn)" in deciding.reason
    assert raw.verdict == "undecided"


def test_ten_percent_of_parameters_is_equal_and_more_is_not() -> None:
    report = {"lora-r8-all": FULL, "lora-r22-attn": LOWER}
    for count, flag in ((20276, "equal_parameters"), (20274, "parameters_differ")):
        facts = {
            "lora-r8-all": {"trainable_params": 22528},
            "lora-r22-attn": {"trainable_params": count},
        }
        (found,) = verdicts(report, facts=facts)
        assert flag in found.flags


def test_unknown_parameter_counts_are_said() -> None:
    (found,) = verdicts({"lora-r8-all": FULL, "lora-r22-attn": LOWER}, facts={})
    assert (found.verdict, found.missing) == ("undecided", "parameter counts of the arms")


@pytest.mark.parametrize(
    ("mlp", "expected"), [(SAME, "supported"), (LOWER, "refuted"), (NOISY, "undecided")]
)
def test_mlps_alone_are_an_equivalence_test(mlp: list[float], expected: str) -> None:
    (found,) = verdicts({"lora-r8-all": FULL, "lora-r12-mlp": mlp})
    assert found.verdict == expected
    assert found.arms == ("lora-r12-mlp", "lora-r8-all")
    assert found.statement.startswith(
        "LoRA on the MLPs alone (lora-r12-mlp) scores the same as on all layers (lora-r8-all) at "
        "equal parameter count (22,528 and 21,504), within the margin"
    )
    # 10 % of the gain of the arm on all layers, 0.80 - 0.10
    assert "±0.070" in found.reason


def test_attention_comes_first_and_parameters_before_rank() -> None:
    report = dict.fromkeys(PARAMETERS, FULL)
    rng = np.random.default_rng(0)
    found = verdicts({name: list(rng.normal(0.8, 0.01, 5)) for name in report})
    assert [set(v.arms) - {"lora-r8-all"} for v in found] == [
        {"lora-r22-attn"},
        {"lora-r8-attn"},
        {"lora-r12-mlp"},
        {"lora-r8-mlp"},
    ]


def test_two_report_seeds_give_a_point_and_no_verdict() -> None:
    (found,) = verdicts({"lora-r8-all": FULL[:2], "lora-r22-attn": LOWER[:2]})
    assert (found.verdict, found.interval, found.missing) == (
        "undecided",
        None,
        "1 more report seed",
    )


def test_where_lower_is_better_higher_is_worse() -> None:
    (found,) = verdicts({"lora-r8-all": FULL, "lora-r22-attn": LOWER}, direction="minimize")
    # Scores are stated with the opposite sign: -0.80 against -0.60.
    assert (found.verdict, found.estimate) == ("supported", pytest.approx(-0.2))
    assert found.reason.endswith("lora-r8-all scores lower than lora-r22-attn, which is better.")


def test_precision_that_differs_is_refused() -> None:
    half = {"base": "bfloat16", "adapter": "bfloat16", "optimizer": "float32"}
    (found,) = verdicts(
        {"lora-r8-all": FULL, "lora-r22-attn": LOWER}, dtypes={"lora-r22-attn": half}
    )
    assert found.flags == ("precision_differs",)
    assert found.missing == "lora-r8-all and lora-r22-attn in one precision"


def test_early_stopping_and_missing_runs_leave_it_undecided() -> None:
    (found,) = verdicts({"lora-r8-all": FULL, "lora-r22-attn": LOWER}, missing=1)
    assert (found.verdict, found.flags) == ("undecided", ("unfinished",))


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ("all-linear", "all"),
        (["q_proj", "k_proj", "v_proj", "o_proj"], "attention"),
        (["attention"], "attention"),
        (["up_proj", "gate_proj", "down_proj"], "mlp"),
        (["q_proj", "v_proj"], ""),
        (None, ""),
    ],
)
def test_layer_sets_are_read_from_presets_and_lists(targets: object, expected: str) -> None:
    sweep = experiment(
        {"lora-r8": search("lora-r8")}, methods={"lora-r8": {"target_modules": targets}}
    )
    assert layer_set(sweep, arms(sweep)[0]) == expected
    assert parameters(sweep, arms(sweep)[0]) is None


def test_a_sweep_of_one_layer_set_is_not_addressed() -> None:
    given = experiment({"full": search("full"), "lora-r8": search("lora-r8")})
    assert c08_layers.CLAIM.lacks(given).startswith("LoRA arms on all layers and on attention")
    assert not [v for v in check_claims(given) if v.claim_id == "C8"]


def test_ranks_that_round_to_no_equal_count_ask_for_two_arms() -> None:
    # Equal to all layers at rank 1 are the MLPs at 1.57, to rank 2 at 3.14: 3 is within 5 %.
    facts = {"lora-r1-all": {"trainable_params": 2816}, "lora-r1-mlp": {"trainable_params": 1792}}
    found = verdicts({"lora-r1-all": FULL, "lora-r1-mlp": SAME}, facts=facts)[0]
    assert found.missing == "one on all layers at rank 2 and an arm on the MLPs alone at rank 3"


def test_which_of_two_scores_better_needs_no_untrained_model() -> None:
    given = sweep({"lora-r8-all": FULL, "lora-r22-attn": LOWER})
    bare = given.runs["score_base"].where(given.runs["phase"] == "search")
    (found,) = judged(c08_layers.check, replace(given, runs=given.runs.assign(score_base=bare)))
    assert found.verdict == "supported"
