"""C7: LoRA's loss as the batch grows, and whether ranks share it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from analysis.claims import c07_batch
from analysis.claims.verdict import Verdict
from analysis.estimates.stats import Contrast
from analysis.reading.sweep import Sweep
from tests.unit.analysis.claims.parity_cases import search
from tests.unit.analysis.claims.worlds import cut_above
from tests.unit.analysis.simulated_sweeps import experiment, judged

BATCHES = (8, 16, 32, 64)


def sweep(
    losses: dict[int, Sequence[float]],
    seeds: int = 5,
    noise: float = 0.01,
    batches: Sequence[int] = BATCHES,
    cut: str | None = None,
    **settings: Any,
) -> Sweep:
    """FullFT scores 0.8 at every batch, LoRA of a rank ``losses`` below it."""
    rng = np.random.default_rng(0)
    truth = {f"full-b{batch}": 0.8 for batch in batches}
    for rank, lost in losses.items():
        truth |= {f"lora-r{rank}-b{b}": 0.8 - x for b, x in zip(batches, lost, strict=True)}
    curves = {name: search(name) for name in truth}
    if cut is not None:
        curves[cut] = replace(cut_above(curves[cut]), arm=cut)
    configs = {
        name: {
            "objective": {
                "name": "grpo",
                "prompts_per_step": int(name.split("-b")[1]),
                "steps": 1200 // int(name.split("-b")[1]),
            }
        }
        for name in truth
    }
    report = {name: list(rng.normal(score, noise, seeds)) for name, score in truth.items()}
    return experiment(curves, report if seeds else None, configs=configs, **settings)


def verdicts(found: Sweep) -> list[Verdict]:
    return judged(c07_batch.check, found)


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ((0.0, 0.03, 0.06, 0.09), "supported"),
        ((0.09, 0.06, 0.03, 0.0), "refuted"),
        ((0.02, 0.02, 0.02, 0.02), "undecided"),
    ],
)
def test_the_verdict_follows_the_truth(losses: tuple[float, ...], expected: str) -> None:
    (found,) = verdicts(sweep({8: losses}))
    assert (found.verdict, found.n_seeds) == (expected, 5)
    assert found.estimate == pytest.approx(-(losses[3] - losses[0]) / 3, abs=0.01)
    assert "(8, 16, 32, 64 prompts a step)" in found.statement
    assert bool(found.missing) == (expected == "undecided")


def test_the_slope_is_the_least_squares_one_of_the_differences() -> None:
    given = sweep({8: (0.0, 0.03, 0.06, 0.09)})
    rows = given.runs[given.runs["phase"] == "report"]
    means = rows.groupby("arm")["score_final"].mean()
    gaps = [means[f"lora-r8-b{b}"] - means[f"full-b{b}"] for b in BATCHES]
    line = sm.OLS(gaps, sm.add_constant(np.log2(BATCHES))).fit()
    (found,) = verdicts(given)
    assert found.estimate == pytest.approx(line.params[1])
    assert found.interval is not None
    assert f"8: {gaps[0]:+.3f}" in found.reason


def test_ranks_that_lose_alike_share_the_slope() -> None:
    losses = (0.0, 0.03, 0.06, 0.09)
    found = verdicts(sweep({1: losses, 8: losses}))
    assert [v.verdict for v in found] == ["supported"] * 3
    assert found[-1].statement.startswith(
        "What LoRA loses as the batch grows is the same at ranks 1, 8"
    )
    assert len(found[-1].arms) == 12


def test_ranks_that_lose_otherwise_refute_that_they_share_it() -> None:
    shared = verdicts(sweep({1: (0.0, 0.06, 0.12, 0.18), 8: (0.0, 0.0, 0.0, 0.0)}))[-1]
    assert shared.verdict == "refuted" and "differ by more than ±0.02" in shared.reason
    assert "ranks 1 and 8 (-0.0" in shared.reason  # with the number and its interval


@pytest.mark.parametrize(("error", "expected"), [(0.0106, "undecided"), (0.009, "refuted")])
def test_ranks_are_called_different_only_after_holms_correction(
    error: float, expected: str
) -> None:
    # Two of three pairs lie 0.03 beyond the margin: t = 0.03 / (error sqrt 2) with 20 df, p = 0.030
    # or 0.014 before Holm's factor of 3.
    slopes = {1: 0.0, 4: 0.0, 16: 0.05}
    family: Any = [
        (SimpleNamespace(rank=rank), SimpleNamespace(slope=Contrast(point, error, 20, 5)))
        for rank, point in slopes.items()
    ]
    assert c07_batch._decide_shared(family).verdict == expected


def test_noisy_slopes_do_not_count_as_shared() -> None:
    losses = (0.0, 0.03, 0.06, 0.09)
    shared = verdicts(sweep({1: losses, 8: losses}, noise=0.06))[-1]
    assert (shared.verdict, shared.missing) == (
        "undecided",
        "more report seeds, or more batch sizes",
    )


def test_a_bent_course_is_not_called_a_slope() -> None:
    (found,) = verdicts(sweep({8: (0.0, 0.0, 0.0, 0.2)}))
    assert (found.verdict, "curved" in found.flags) == ("undecided", True)
    assert "not in a straight line" in found.reason


def test_an_edge_at_one_of_four_batches_is_left_out_and_named() -> None:
    (found,) = verdicts(sweep({8: (0.0, 0.03, 0.06, 0.09)}, cut="lora-r8-b16"))
    assert found.verdict == "supported" and "edge_high" in found.flags
    assert "Left out: Extend the grid of lora-r8-b16 upwards" in found.reason


def test_an_edge_at_one_of_three_batches_is_what_is_missing() -> None:
    given = sweep({8: (0.0, 0.03, 0.06)}, batches=BATCHES[:3], cut="lora-r8-b16")
    (found,) = verdicts(given)
    assert (found.verdict, found.estimate) == ("undecided", None)
    assert found.missing == "extend the grid of lora-r8-b16 upwards"


@pytest.mark.parametrize(("seeds", "flag"), [(2, "few_seeds"), (0, "no_report")])
def test_too_few_report_seeds_are_undecided(seeds: int, flag: str) -> None:
    (found,) = verdicts(sweep({8: (0.0, 0.03, 0.06, 0.09)}, seeds=seeds))
    assert (found.verdict, found.flags, found.missing) == ("undecided", (flag,), "5 report seeds")


def test_two_batch_sizes_are_not_addressed() -> None:
    lack = c07_batch.CLAIM.lacks(sweep({8: (0.0, 0.03)}, batches=BATCHES[:2]))
    assert lack == "LoRA and FullFT arms at 3 batch sizes or more, of equal prompts or steps"


def test_equal_prompts_and_equal_steps_are_two_questions() -> None:
    # Twice the batches, once at 1200 prompts and once at 150 steps: the longer runs gain 0.1.
    given = sweep({8: (0.0, 0.0, 0.0, 0.0)})
    arms, runs = dict(given.plan["arms"]), [given.runs]
    for name in [name for name in arms if not name.endswith("b8")]:
        longer = f"{name.replace('-b', '-a-b')}"  # sorts before its shorter twin
        config = arms[name]["config"]
        objective = {**config["objective"], "steps": 150}
        arms[longer] = {**arms[name], "config": {**config, "objective": objective}}
        rows = given.runs[given.runs["arm"] == name]
        gain = 0.1 if name.startswith("lora") else 0.0
        scores = rows["score_final"] + gain * (rows["phase"] == "report")
        ids = rows["run_id"].str.replace(name, longer)
        runs.append(rows.assign(arm=longer, run_id=ids, score_final=scores))
    frame = pd.concat(runs, ignore_index=True)
    planned = frame[["run_id", "arm", "phase", "learning_rate", "seed", "status"]]
    given = replace(given, plan={**given.plan, "arms": arms}, runs=frame, planned=planned)
    found = {v.statement.split(" at equal ")[1].split(":")[0]: v for v in verdicts(given)}
    assert set(found) == {"prompts", "steps"}
    assert found["prompts"].estimate == pytest.approx(0.0, abs=0.01)
    assert found["prompts"].arms[:4] == tuple(f"lora-r8-b{b}" for b in BATCHES)
    assert found["steps"].arms[1:4] == tuple(f"lora-r8-a-b{b}" for b in BATCHES[1:])


def test_batches_of_neither_equal_prompts_nor_steps_are_not_addressed() -> None:
    given = sweep({8: (0.0, 0.0, 0.0)}, batches=BATCHES[:3])
    for name, arm in given.plan["arms"].items():
        arm["config"]["objective"]["steps"] = {"8": 150, "16": 200, "32": 99}[name.split("-b")[1]]
    assert c07_batch.CLAIM.lacks(given)
