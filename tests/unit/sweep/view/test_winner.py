"""What a joint search ends with, and the command that repeats a run."""

from __future__ import annotations

import json
import math
import multiprocessing
import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from study.compose import compose
from study.config import ModelConfig
from study.plan.best import simultaneous
from study.plan.experiment import Plan, plan_search
from study.plan.select import grow
from study.records.record import Record
from study.records.store import ExperimentStore
from study.sweep.schedule import State
from study.sweep.view.repeat import command
from study.sweep.view.winner import announce
from tests.plans import (
    FULL_RATES,
    LORA_RATES,
    arm,
    experiment,
    full,
    lora,
    record_of,
    run_config,
    toy_plan,
)
from tests.unit.plan.joint import joint, run_to_the_end


def announced(plan: Plan, records: dict[str, Record], path: Path) -> str:
    console = Console(width=400, record=True, quiet=False)
    with console.capture() as printed:
        announce(console, State(plan=plan, records=records), ExperimentStore(path))
    return printed.get()


@pytest.mark.parametrize(
    "overrides",
    [
        ["method=lora", "method.rank=3", "method.alpha_rule=sqrt", "method.lora_alpha=8"],
        ["method=full", "objective.learning_rate=3.16e-05", "seed=7", "save=none"],
        ["method=lora", "method.target_modules=[q_proj,v_proj]", "objective.loss_type=dapo"],
        ["method=lora", "model=local", "model.path='/a b/it\\'s'", "model.dtype=bfloat16"],
        ["task=reasoning_gym", "task.dataset=chain_sum", "task.threshold=0.9",
         "+task.params.num_terms=2", "+task.params.words=[a,'b c']"],
    ],
)  # fmt: skip
def test_the_command_composes_to_the_very_configuration(overrides: list[str]) -> None:
    config = compose(overrides).run()
    words = shlex.split(command(config))
    assert words[:3] == ["python", "-m", "study"]
    assert compose(words[3:]).run() == config


def test_the_interval_is_students_and_widens_with_the_number_of_candidates() -> None:
    # Mean 0.5, sd 0.1, n 3: 0.5 -+ t(0.95, 2) 0.1 / sqrt(3), t = 2.920; for 3 candidates the
    # quantile is at 1 - 0.1 / 6, where t with 2 degrees is (2p - 1) sqrt(2 / (1 - (2p - 1)^2)).
    scores = [0.4, 0.5, 0.6]
    one, three = simultaneous(scores, 1), simultaneous(scores, 3)
    assert one is not None and three is not None
    assert one.high - 0.5 == pytest.approx(2.920 * 0.1 / math.sqrt(3), abs=1e-4)
    share = 1 - 0.1 / 3
    quantile = share * math.sqrt(2 / (1 - share**2))
    assert 0.5 - three.low == pytest.approx(quantile * 0.1 / math.sqrt(3), abs=1e-9)
    assert simultaneous([0.5], 3) is None


def finished(path: Path, weights: str | None) -> tuple[Plan, dict[str, Record]]:
    plan, records = run_to_the_end(joint())
    for run in plan.runs:
        if run.phase == "report":
            records[run.run_id] = record_of(run, records[run.run_id].score_final, seed=run.seed)
        if weights is not None:
            kept = path / run.arm / run.run_id / weights
            kept.mkdir(parents=True)
            (kept / "w.safetensors").write_text(run.run_id)
    return plan, records


def test_a_finished_search_names_its_winner_and_keeps_its_best_runs_weights(
    tmp_path: Path,
) -> None:
    plan, records = finished(tmp_path, "adapter")
    said = announced(plan, records, tmp_path)
    found = json.loads((tmp_path / "best.json").read_text())
    assert f"best setting: {found['arm']} at learning rate {found['learning_rate']:g}" in said
    assert f"the best of {2} finalists of {12} trials" in said
    assert found["command"] in said
    assert found["best_of"] == {"finalists": 2, "trials": 12}
    low, high = found["interval"]
    assert low <= found["report_mean"] <= high
    kept = tmp_path / "best" / found["arm"]
    assert (kept / "adapter" / "w.safetensors").read_text() == found["run_id"]
    assert (kept / "command.sh").read_text().strip() == found["command"]
    assert str(kept / "adapter") in (kept / "load.py").read_text()
    compile((kept / "load.py").read_text(), "load.py", "exec")
    assert announced(plan, records, tmp_path) == said


def test_weights_that_were_not_kept_are_not_promised(tmp_path: Path) -> None:
    plan, records = finished(tmp_path, None)
    assert "weights" not in announced(plan, records, tmp_path)
    assert not (tmp_path / "best").exists()


def test_an_unfinished_search_and_other_modes_say_nothing(tmp_path: Path) -> None:
    plan, records = finished(tmp_path, None)
    last = plan.runs[-1].run_id
    assert announced(plan, {k: r for k, r in records.items() if k != last}, tmp_path) == ""
    assert announced(toy_plan(), {}, tmp_path) == ""
    assert not (tmp_path / "best.json").exists()


def test_the_command_of_the_winner_trains_its_best_run(tmp_path: Path) -> None:
    plan, records = finished(tmp_path, None)
    announced(plan, records, tmp_path)
    found: dict[str, Any] = json.loads((tmp_path / "best.json").read_text())
    run = plan.run(found["run_id"])
    assert f"seed={run.seed}" in found["command"]
    assert f"objective.learning_rate={run.learning_rate}" in found["command"]


def reported(path: Path, weights: str | None) -> tuple[Plan, dict[str, Record]]:
    """Two arms that have reported on seeds 100 and 101, scores 0.25 and 0.75 for each."""
    model = ModelConfig(name="lab32", source="lab")
    arms = {
        "full": arm("full", run_config(full(), model=model), FULL_RATES),
        "lora-r1": arm("lora-r1", run_config(lora(), model=model), LORA_RATES),
    }
    plan = plan_search(experiment(), arms, "trl")
    records = {run.run_id: record_of(run, 0.5) for run in plan.runs}
    plan, selections = grow(plan, records, {})
    for selection in selections:
        ExperimentStore(path).write_selection(selection.arm, asdict(selection))
    for run in (run for run in plan.runs if run.phase == "report"):
        records[run.run_id] = record_of(run, {100: 0.25, 101: 0.75}[run.seed])
        if weights is not None:
            kept = path / run.arm / run.run_id / weights
            kept.mkdir(parents=True)
            (kept / "w.safetensors").write_text(run.run_id)
    return plan, records


def kept_weights(path: Path) -> dict[str, str]:
    """Of the arms in ``best/``, the run whose weights they are."""
    return {p.parts[-3]: p.read_text() for p in path.glob("best/*/*/w.safetensors")}


def best_runs(plan: Plan, seed: int) -> dict[str, str]:
    return {r.arm: r.run_id for r in plan.runs if r.phase == "report" and r.seed == seed}


def test_each_arm_that_has_reported_keeps_its_best_run(tmp_path: Path) -> None:
    plan, records = reported(tmp_path, "adapter")
    assert f"how to load them: {tmp_path / 'best'}" in announced(plan, records, tmp_path)
    assert kept_weights(tmp_path) == best_runs(plan, 101)
    said = (tmp_path / "best" / "full" / "command.sh").read_text()
    assert "method=full" in said and "seed=101" in said
    load = (tmp_path / "best" / "full" / "load.py").read_text()
    assert str(tmp_path / "best" / "full" / "adapter") in load
    assert not (tmp_path / "best.json").exists()


def test_a_kept_run_is_copied_once_and_makes_room_for_a_better_one(tmp_path: Path) -> None:
    plan, records = reported(tmp_path, "adapter")
    announced(plan, records, tmp_path)
    copies = sorted(tmp_path.glob("best/*/*/w.safetensors"))
    before = [copy.stat().st_ino for copy in copies]
    announced(plan, records, tmp_path)
    assert [copy.stat().st_ino for copy in copies] == before
    first = best_runs(plan, 100)["full"]
    records[first] = record_of(plan.run(first), 0.8)
    announced(plan, records, tmp_path)
    assert kept_weights(tmp_path) == {**best_runs(plan, 101), "full": first}


def test_a_copy_that_was_cut_short_is_made_again(tmp_path: Path) -> None:
    plan, records = reported(tmp_path, "adapter")
    announced(plan, records, tmp_path)
    (tmp_path / "best" / "full" / "command.sh").unlink()
    (tmp_path / "best" / "full" / "adapter" / "w.safetensors").write_text("half")
    announced(plan, records, tmp_path)
    assert kept_weights(tmp_path) == best_runs(plan, 101)


def test_an_arm_with_an_open_report_run_or_without_weights_keeps_nothing(tmp_path: Path) -> None:
    plan, records = reported(tmp_path, "model")
    left = {k: r for k, r in records.items() if k != best_runs(plan, 100)["full"]}
    announced(plan, left, tmp_path)
    assert kept_weights(tmp_path) == {"lora-r1": best_runs(plan, 101)["lora-r1"]}
    plan, records = reported(tmp_path / "weightless", None)
    assert announced(plan, records, tmp_path / "weightless") == ""
    assert not (tmp_path / "weightless" / "best").exists()


def test_runs_that_diverged_are_nobodys_best(tmp_path: Path) -> None:
    plan, records = reported(tmp_path, "model")
    report = {run.run_id for run in plan.cells("full", "report")}
    for run_id in report:
        records[run_id] = replace(records[run_id], status="diverged", score_final=0.0)
    announced(plan, records, tmp_path)
    assert not (tmp_path / "best" / "full").exists()
    assert (tmp_path / "best" / "lora-r1").exists()


def test_launches_that_end_together_keep_one_winner(tmp_path: Path) -> None:
    plan, records = reported(tmp_path, "adapter")
    context = multiprocessing.get_context("fork")
    launches = [context.Process(target=announced, args=(plan, records, tmp_path)) for _ in range(6)]
    for launch in launches:
        launch.start()
    for launch in launches:
        launch.join()
    assert [launch.exitcode for launch in launches] == [0] * 6
    assert sorted(path.name for path in (tmp_path / "best").iterdir()) == ["full", "lora-r1"]
    assert kept_weights(tmp_path) == best_runs(plan, 101)
