"""What is said of two experiments: hand-worked numbers, units, and what forbids a verdict."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from analysis.comparing.experiments import compare_experiments
from analysis.comparing.verdicts import DIFFERENT, SAME, UNDECIDED
from analysis.estimates.optimum import lr_ratio
from tests.unit.analysis.comparing.side_by_side import (
    arm,
    cut,
    minimized,
    row,
    sweep,
    verdicts,
    without_base,
)

REPORT_A = {"full": [0.50, 0.52, 0.54, 0.53], "lora-r8": [0.51, 0.52, 0.53, 0.52]}
REPORT_B = {"full": [0.60, 0.62, 0.61, 0.64], "lora-r8": [0.61, 0.60, 0.62, 0.65]}


def two(
    scale: float = 1.0, lora: float = 1.0, *, names: tuple[str, str] = ("a", "b"), **of_b: Any
) -> tuple[Any, Any]:
    """A with a ratio of 10; B's rates at ``scale`` times, its LoRA at ``scale * lora`` times."""
    a = sweep(names[0], {"full": arm("full"), "lora-r8": arm("lora-r8", 10)}, report=REPORT_A)
    curves = {"full": arm("full", scale), "lora-r8": arm("lora-r8", 10 * scale * lora)}
    return a, sweep(names[1], curves, **({"report": REPORT_B} | of_b))


def test_scores_gains_and_their_differences_are_welch() -> None:
    found = row(compare_experiments(*two()), "lora-r8")
    assert found.score.a.point == pytest.approx(0.52)
    assert found.gain.a.point == pytest.approx(0.52 - 0.18)
    expected = stats.ttest_ind(REPORT_B["lora-r8"], REPORT_A["lora-r8"], equal_var=False)
    interval = expected.confidence_interval(0.9)
    assert found.score.between.interval == pytest.approx(tuple(interval))
    assert found.gain.between.interval == pytest.approx(tuple(interval))  # the base is a constant
    assert found.score_from == ("report seeds", "report seeds")


def test_gap_is_paired_within_and_unpaired_between_experiments() -> None:
    found = row(compare_experiments(*two()), "lora-r8").gap
    assert found is not None and found.a.contrast is not None and found.b.contrast is not None
    assert found.a.point == pytest.approx(0.52 - 0.5225)
    assert found.between.point == pytest.approx(found.b.point - found.a.point)
    variance = found.a.contrast.standard_error**2 + found.b.contrast.standard_error**2
    assert found.between.contrast is not None
    assert found.between.contrast.standard_error == pytest.approx(math.sqrt(variance))


def test_rates_scale_and_ratios_of_ratios_do_not() -> None:
    found = compare_experiments(*two(scale=4.0))
    for label in ("full", "lora-r8"):
        assert row(found, label).rate.between.point == pytest.approx(4.0)
    over_full = row(found, "lora-r8").over_full
    assert over_full is not None
    assert [q.point for q in (over_full.a, over_full.b)] == pytest.approx([10, 10])
    assert over_full.between.point == pytest.approx(1.0)
    assert verdicts(found, "learning_rate") == {"full": DIFFERENT, "lora-r8": DIFFERENT}
    assert verdicts(found, "ratio_of_ratios") == {"lora-r8": SAME}


def test_rate_ratio_is_that_of_the_estimators_at_one_threshold() -> None:
    a, b = two(scale=3.0)
    found = compare_experiments(a, b)
    expected = lr_ratio(arm("full", 3.0), arm("full"), found.fraction)
    between = row(found, "full").rate.between
    assert between.interval == pytest.approx(expected.centre.interval)
    assert row(found, "full").flanks.ramp.interval == pytest.approx(expected.ramp.interval)


def test_another_ratio_is_different_and_a_close_one_undecided() -> None:
    assert verdicts(compare_experiments(*two(lora=8.0)), "ratio_of_ratios") == {
        "lora-r8": DIFFERENT
    }
    near = compare_experiments(*two(lora=1.9))
    assert verdicts(near, "ratio_of_ratios") == {"lora-r8": UNDECIDED}
    assert all(v.reason for v in near.verdicts)


def test_margin_of_the_gap_is_the_smaller_one() -> None:
    found = row(compare_experiments(*two()), "lora-r8")
    assert found.gap_margin == pytest.approx(0.1 * (0.5225 - 0.18))
    assert found.gap_margin < 0.1 * (0.6175 - 0.18)


def test_another_task_compares_gains_and_gaps() -> None:
    task = {"task": {"name": "arithmetic", "family": "sum4"}}
    found = row(
        compare_experiments(*two(configs=dict.fromkeys(("full", "lora-r8"), task))), "lora-r8"
    )
    assert found.score.between.estimate is None
    assert found.score.between.reason.startswith("the tasks differ (arithmetic (sum3); arithmetic")
    assert found.gain.between.interval is not None
    assert found.gap is not None and found.gap.between.interval is not None


def test_other_prompts_compare_gains_and_gaps() -> None:
    fewer = {"evaluation": {"eval_prompts": 64}}
    found = compare_experiments(*two(configs=dict.fromkeys(("full", "lora-r8"), fewer)))
    assert "A does not state evaluation.eval_prompts" in found.units.scores
    assert found.units.gains == ""


def test_the_other_direction_is_refused_and_rates_are_still_compared() -> None:
    a, b = two(scale=2.0)
    found = row(compare_experiments(a, minimized(b)), "lora-r8")
    assert found.gap is not None and found.over_full is not None
    for triple in (found.score, found.gain, found.gap):
        assert triple.between.estimate is None
        assert "higher is better in A and lower in B" in triple.between.reason
    assert found.score.b.point == pytest.approx(1 - 0.62)
    assert found.gain.b.point == pytest.approx(0.62 - 0.18)  # still: positive is better
    assert found.rate.between.point == pytest.approx(2.0)
    assert found.over_full.between.point == pytest.approx(1.0)


def test_another_metric_is_refused() -> None:
    a, b = two()
    found = compare_experiments(minimized(a, metric="x"), minimized(b, metric="y"))
    assert found.units.gains == "A is scored by x and B by y: no common unit"


def test_unfinished_is_said_and_decides_nothing() -> None:
    a, b = two(missing=1)
    found = compare_experiments(a, b)
    assert {v.verdict for v in found.verdicts} == {UNDECIDED}
    assert any(note.startswith("B is unfinished (61 of 62 runs)") for note in found.notes)
    assert row(found, "full").rate.between.interval is not None  # its search is complete


def test_a_hole_in_the_search_leaves_no_rate_and_says_why() -> None:
    a, b = two(report={}, missing=1)
    found = row(compare_experiments(a, b), "lora-r8")
    assert found.rate.b.estimate is None
    assert found.rate.b.reason == "unfinished: its search lacks runs"
    assert found.rate.between.reason == "B: unfinished: its search lacks runs"


def test_one_seed_gives_points_without_intervals() -> None:
    a, _ = two()
    curves = {"full": arm("full", seeds=1), "lora-r8": arm("lora-r8", 10, seeds=1)}
    found = compare_experiments(a, sweep("b", curves))
    lora = row(found, "lora-r8")
    assert lora.score.b.interval is None and lora.score.b.reason == "fewer than 3 seeds"
    assert lora.score_from[1] == "best of the grid on one search seed, optimistic"
    assert lora.rate.between.point == pytest.approx(1.0, abs=0.1)
    assert lora.rate.between.interval is None
    assert "fewer than 3 search seeds" in lora.rate.between.reason
    assert lora.over_full is not None and lora.over_full.between.interval is None
    assert lora.over_full.between.point == pytest.approx(1.0, abs=0.1)
    assert {v.verdict for v in found.verdicts} == {UNDECIDED}


def test_without_the_untrained_model_there_is_no_gain_and_no_mixed_ratio() -> None:
    a, b = two()
    found = row(compare_experiments(a, without_base(b)), "full")
    assert found.gain.b.reason == "the untrained model was not evaluated"
    assert found.gain.between.reason == "B: the untrained model was not evaluated"
    assert found.rate.between.estimate is None
    assert "middle of a plateau" in found.rate.between.reason


def test_a_baseline_on_one_side_only_is_said() -> None:
    a, _ = two()
    b = sweep("b", {"lora-r8": arm("lora-r8", 10)})
    found = compare_experiments(a, b)
    over_full = row(found, "lora-r8").over_full
    assert over_full is not None
    assert over_full.a.interval is not None
    assert over_full.b.reason == "no FullFT arm that differs in the method alone"
    assert over_full.between.reason == f"B: {over_full.b.reason}"
    assert any(note.startswith("B has no FullFT arm") for note in found.notes)
    assert [f.name for f in found.matching.only_a] == ["full"]


def test_an_edge_gives_a_bound_and_no_ratio() -> None:
    a, b = two()
    b = sweep("b", {"full": cut(arm("full"), 6), "lora-r8": arm("lora-r8", 10)})
    found = row(compare_experiments(a, b), "full")
    assert found.rate.b.bound == "at least" and found.rate.b.interval is None
    assert found.rate.between.estimate is None
    assert "the high end of the grid: extend it upwards" in found.rate.between.reason
    assert found.flanks.ramp.interval is not None
    assert "(ratio of the ramps alone: 1.00 [" in found.rate.between.reason


def test_curves_of_other_shapes_give_their_ramp_and_cliff_ratios() -> None:
    a, _ = two()
    full = arm("full", 4.0)
    wide = replace(full, scores=np.roll(full.scores, -2, axis=1))  # the ramp 0.5 decade earlier
    wide = replace(wide, scores=np.hstack([wide.scores[:, :5], full.scores[:, 5:]]))
    found = compare_experiments(a, sweep("b", {"full": wide}))
    assert row(found, "full").flanks.shape_differs
    (note,) = (n for n in found.notes if "not shifted copies" in n)
    assert "by their ramps and 4.00 [" in note


def test_imported_against_ours_lists_what_is_not_stated() -> None:
    a, b = two()
    b.plan["experiment"]["kind"] = "imported"
    for planned in b.plan["arms"].values():
        planned["config"]["model"]["dtype"] = None
    found = compare_experiments(a, b)
    dtype = next(d for d in found.settings if d.key == "model.dtype")
    assert (dtype.a, dtype.b) == ("float32", "not stated")
    assert any(note.startswith("B is imported") for note in found.notes)
    assert verdicts(found, "learning_rate") == {"full": SAME, "lora-r8": SAME}


def test_another_method_and_other_grids_are_listed_beside_another_model() -> None:
    wide = {"model": {"name": "lab128", "dtype": "float32"}}
    configs = dict.fromkeys(("full", "lora-r8"), wide)
    a, b = two(scale=2.0, methods={"lora-r8": {"name": "dora"}}, configs=configs)
    found = [(d.key, d.a, d.b, d.arms) for d in compare_experiments(a, b).settings]
    assert found == [
        ("learning rates", "9 from 1e-5 to 1e-3", "9 from 2e-5 to 2e-3", ("full",)),
        ("learning rates", "9 from 1e-4 to 1e-2", "9 from 2e-4 to 2e-2", ("lora-r8",)),
        ("method.name", "lora", "dora", ("lora-r8",)),
        ("model.name", "lab64", "lab128", ()),
    ]


def test_a_search_that_stops_early_is_said() -> None:
    a, b = two()
    b.plan["experiment"]["early_stopping"] = {"grace_steps": 1, "keep": 0.5, "window": 1}
    found = row(compare_experiments(a, b), "lora-r8")
    assert found.over_full is not None and found.gap is not None
    for quantity in (found.over_full.b, found.gap.b):
        assert quantity.reason.startswith("This search stops poor learning rates early")
    assert found.score.b.interval is not None  # its report seeds stand
    assert found.rate.b.reason == "the search only selects, so curves are not estimated"


def test_an_ad_hoc_sweep_is_compared_without_verdicts() -> None:
    a, b = two(kind="adhoc")
    found = compare_experiments(a, b)
    assert {v.reason for v in found.verdicts} == {
        "B is no declared experiment: it is compared without verdicts"
    }


def test_other_alphas_are_said() -> None:
    a, b = two(methods={"lora-r8": {"lora_alpha": 64.0}})
    notes = compare_experiments(a, b).notes
    assert any(note.startswith("lora-r8 has alpha 32 in A and 64 in B") for note in notes)


def test_what_cannot_be_compared_is_one_sentence() -> None:
    a, b = two()
    with pytest.raises(ValueError, match="A and B are the same experiment, a: name two"):
        compare_experiments(a, replace(b, path=a.path))
    with pytest.raises(ValueError, match="hold the same 62 runs: a copy is no second experiment"):
        compare_experiments(a, replace(a, path=b.path))
    with pytest.raises(ValueError, match=r"no common arm: .* B has LoRA at rank 4 \(lora-r4\)"):
        compare_experiments(a, sweep("c", {"lora-r4": arm("lora-r4")}))


def test_runs_in_both_are_not_independent() -> None:
    a, b = two()
    half = replace(b, runs=b.runs.assign(**{
        c: a.runs[c].where(a.runs["arm"] == "full", b.runs[c])
        for c in ("run_id", "learning_rate", "seed", "score_final")
    }))  # fmt: skip
    found = compare_experiments(a, half)
    assert {v.verdict for v in found.verdicts} == {UNDECIDED}
    assert "31 runs are in both" in found.verdicts[0].reason
