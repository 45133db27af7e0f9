"""Synthetic experiments are read like real ones, and hold the truth they were drawn from."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis.estimates.optimum import lr_ratio
from analysis.estimates.search import search_summary
from analysis.reading.load import load
from analysis.simulate.regimes import CLEAR
from analysis.simulate.store import Flaws, SimulatedArm, lr_grid, rank_arms, write_experiment
from study.plan.experiment import from_json
from study.records.record import Record
from study.records.store import ExperimentStore


def test_an_experiment_is_complete_and_study_reads_it_too(tmp_path: Path) -> None:
    path = write_experiment(tmp_path / "syn", rank_arms((1, 8)))
    sweep = load(path)
    assert sweep.complete and sweep.excluded.empty
    assert (sweep.name, sweep.kind) == ("syn", "experiment")
    assert len(sweep.runs) == 3 * (9 * 3 + 5)
    assert sweep.experiment["factors"] == ["method"]
    plan = from_json(json.loads((path / "plan.json").read_text()))
    store = ExperimentStore(path)
    records = [store.record(run.arm, run.run_id) for run in plan.runs]
    assert all(isinstance(record, Record) for record in records)
    assert set(store.read_selections()) == {"full", "lora-r1", "lora-r8"}


def test_the_truth_comes_out_again(tmp_path: Path) -> None:
    sweep = load(write_experiment(tmp_path / "syn", rank_arms((8,)), search_seeds=10))
    search = search_summary(sweep)
    ratio = lr_ratio(
        search.curves["lora-r8"], search.curves["full"], search.fraction_of("full")
    ).centre
    assert ratio.interval is not None
    assert math.log10(ratio.point) == pytest.approx(1.0, abs=0.12)  # 3 SDs of ten seeds
    assert search.curves["full"].base == pytest.approx(CLEAR.base)
    report = sweep.runs[(sweep.runs["phase"] == "report") & (sweep.runs["arm"] == "full")]
    expected = CLEAR.alive(math.log10(sweep.selections["full"]))
    alive = report["score_final"][report["score_final"] > 0.5]
    assert alive.mean() == pytest.approx(float(expected), abs=0.03)


def test_the_score_is_the_mean_of_the_last_three_evaluations(tmp_path: Path) -> None:
    sweep = load(write_experiment(tmp_path / "syn", rank_arms((8,)), report_seeds=0))
    mine = sweep.metrics[sweep.metrics["metric"] == "eval/accuracy"]
    windows = mine[mine["step"] > 140].groupby("run_id")["value"].mean()
    scores = sweep.runs.set_index("run_id")["score_final"]
    assert scores.to_numpy() == pytest.approx(windows[scores.index].to_numpy())
    assert sorted(set(mine["step"])) == list(range(0, 201, 20))
    assert sweep.complete and sweep.selections == {}  # nothing selects without a report phase


def test_any_arms_may_be_written(tmp_path: Path) -> None:
    lora = CLEAR.shifted(1.0)
    rates, low_rates = lr_grid(lora), lr_grid(CLEAR, spacing=0.5, points=6)
    rank = {"method.name": "lora", "method.rank": 4}
    arms = {
        "full": SimulatedArm(CLEAR, low_rates),
        "attention": SimulatedArm(lora, rates, {**rank, "method.target_modules": "attention"}),
        "wide": SimulatedArm(lora, rates, {**rank, "model.name": "lab128"}),
        "batch": SimulatedArm(lora, rates, {**rank, "objective.prompts_per_step": 32}),
        "2r": SimulatedArm(lora, rates, {**rank, "method.alpha_rule": "2r"}, noise=0.05),
        "bf16": SimulatedArm(CLEAR, low_rates, {"model.dtype": "bfloat16"}),
    }
    runs = load(write_experiment(tmp_path / "syn", arms)).runs.groupby("arm").first()
    assert runs["hidden_size"]["wide"] == 128
    assert runs["prompts_per_step"]["batch"] == 32
    assert runs["lora_alpha"]["2r"] == 8
    assert runs["dtypes"]["bf16"]["base"] == "bfloat16"
    # Rank 4, two blocks, four square matrices of 64: 2 * 4 * 4 * (64 + 64) = 4096.
    assert runs["trainable_params"]["attention"] == 4096
    assert runs["trainable_params"]["full"] == runs["total_params"]["full"]


def test_flaws_are_those_of_a_real_sweep(tmp_path: Path) -> None:
    flaws = Flaws(missing=0.05, failed=0.2, diverged=True)
    sweep = load(write_experiment(tmp_path / "syn", rank_arms((8,), points=11), flaws=flaws))
    assert not sweep.complete
    assert (sweep.excluded["kind"] == "no record").any()
    assert len(sweep.attempts) == pytest.approx(0.2 * len(sweep.planned), rel=0.6)
    diverged = sweep.runs[sweep.runs["status"] == "diverged"]
    assert len(diverged) > 0 and (diverged["score_final"] == 0).all()
    assert (diverged["steps_done"] == 100).all()


def test_the_same_arguments_write_the_same_numbers(tmp_path: Path) -> None:
    first, second, other = (
        load(write_experiment(tmp_path / name / "syn", rank_arms((8,)), rng_seed=seed)).runs
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first["score_final"].equals(second["score_final"])
    assert not np.allclose(first["score_final"][:30], other["score_final"][:30])


@pytest.mark.parametrize(
    ("overrides", "law"),
    [
        ({"method.name": "dora"}, "must be one of full, lora, got 'dora'"),
        ({"rank": 8}, "looks like method.rank"),
        ({"method.rank": 8}, "no configuration has these keys"),
        ({"method.name": "lora", "method.rank": 0}, "method.rank >= 1"),
    ],
)
def test_a_configuration_that_is_none_is_refused(
    tmp_path: Path, overrides: dict[str, object], law: str
) -> None:
    with pytest.raises(ValueError, match=law):
        write_experiment(tmp_path / "syn", {"x": SimulatedArm(CLEAR, (1e-4,), overrides)})


def test_a_directory_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(ValueError, match="is not empty"):
        write_experiment(tmp_path, rank_arms((8,)))


def test_two_equal_arms_are_refused(tmp_path: Path) -> None:
    arm = SimulatedArm(CLEAR, (1e-4, 1e-3))
    with pytest.raises(ValueError, match="are the same configuration"):
        write_experiment(tmp_path / "syn", {"a": arm, "b": replace(arm, noise=0.5)})
