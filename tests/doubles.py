"""A stand-in for a finished sweep: its files are those of :mod:`analysis.simulate.store`, its
numbers are exact."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.simulate.records import build_arm, run_record
from analysis.simulate.store import FAILED_ATTEMPT, metrics_of, write_json, write_run
from study.config import ExperimentConfig, SeedsConfig
from study.plan.arms import Arm
from study.plan.experiment import Plan, PlannedRun, to_json
from study.plan.select import Selection
from study.records.record import Record

BASE, REPORT_BASE = 0.18, 0.20
"""Accuracy of the untrained synthetic model on the prompts of the search and of the report."""
STEPS, EVAL_EVERY, FINAL_WINDOW = 200, 20, 3
FULL_GRID = (2e-5, 6e-5, 2e-4, 6e-4, 2e-3)
LORA_GRID = (2e-4, 6e-4, 2e-3, 6e-3, 2e-2)
SEARCH_OFFSETS = (-0.01, 0.0, 0.01)
REPORT_OFFSETS = (-0.004, 0.0, 0.004)
FULL_PARAMS = 131_712


@dataclass(frozen=True)
class SyntheticArm:
    """One arm's truth: the seed means are exactly these, on a full set of three seeds."""

    rank: int | None
    learning_rates: tuple[float, ...]
    search_means: tuple[float, ...]
    report_mean: float

    @property
    def best_rate(self) -> float:
        """The rate of best search mean."""
        return self.learning_rates[self.search_means.index(max(self.search_means))]


# The same curve on a grid ten times higher: the true ratio of the optima is 10, the best grid
# point is the third, and both ends of the plateau are bracketed.
SYNTHETIC_ARMS: dict[str, SyntheticArm] = {
    "full": SyntheticArm(None, FULL_GRID, (0.20, 0.34, 0.50, 0.46, 0.06), 0.495),
    "lora-r1": SyntheticArm(1, LORA_GRID, (0.20, 0.33, 0.48, 0.45, 0.06), 0.485),
    "lora-r8": SyntheticArm(8, LORA_GRID, (0.20, 0.35, 0.51, 0.46, 0.06), 0.505),
}


@dataclass(frozen=True)
class Defects:
    """What goes wrong in a synthetic experiment; every collection holds run ids."""

    missing: Collection[str] = ()
    """Planned, no directory."""
    diverged: Collection[str] = ()
    """Status ``diverged``, score 0, curve cut at half of the steps."""
    no_signal: Collection[str] = ()
    """Status ``no_signal``, no score."""
    failed_attempts: Mapping[str, int] = field(default_factory=dict)
    """Run id -> failed attempts that left a line; the record is there unless it is missing too."""
    unknown_schema: Collection[str] = ()
    """The record says ``schema_version: 99``."""
    unplanned: Collection[str] = ()
    """The record is there, the plan does not name it."""


def run_id(arm: str, phase: str, learning_rate: float, seed: int) -> str:
    """The readable id of a synthetic run."""
    return f"{arm}-{phase}-{learning_rate:g}-{seed}"


def write_synthetic_experiment(
    path: Path,
    *,
    arms: Mapping[str, SyntheticArm] = SYNTHETIC_ARMS,
    search_seeds: Sequence[int] = (0, 1, 2),
    report_seeds: Sequence[int] = (100, 101, 102),
    kind: str = "experiment",
    model: str = "lab64",
    family: str = "sum3",
    completion: str = "3+4=7;7+5=12",
    git_commits: Sequence[str] = ("0123456789abcdef",),
    report_joined: bool = True,
    defects: Defects = Defects(),
) -> Path:
    """Write an experiment directory whose truth is known, as the sweep would have left it.

    Guarantees: the mean score over three search seeds is ``search_means``, over three report
    seeds ``report_mean``; the base scores :data:`BASE` in the search and :data:`REPORT_BASE` in
    the report; an evaluation every 20 of 200 steps; the last three evaluations equal the score;
    greedy accuracy is 0.1 above the sampled one.

    Args:
        path: The experiment directory; its name becomes the experiment's.
        arms: Truth by arm name.
        search_seeds: At most three; fewer shifts the seed means by their offsets.
        report_seeds: At most three; empty leaves the report phase and the selections out.
        kind: ``experiment``, ``adhoc`` or ``single``.
        model: Label of the model.
        family: Family of the arithmetic task.
        completion: What the synthetic model writes, in ``samples.jsonl``.
        git_commits: Commits of the records, in turn.
        report_joined: False: report seeds are declared, and no report run has joined the plan.
        defects: What is missing or broken.

    Returns:
        ``path``.
    """
    built = {name: _arm(name, arm, model, family) for name, arm in arms.items()}
    runs = _runs(arms, search_seeds, report_seeds if report_joined else ())
    planned = [run for run in runs if run.run_id not in defects.unplanned]
    experiment = _experiment(path.name, kind, built, search_seeds, report_seeds)
    plan = Plan(experiment=experiment, engine="trl", arms=built, runs=planned, max_retries=2)
    write_json(path / "plan.json", to_json(plan))
    for i, run in enumerate(runs):
        directory = path / run.arm / run.run_id
        for attempt in range(1, defects.failed_attempts.get(run.run_id, 0) + 1):
            reason = {"attempt": attempt, "reason": "synthetic: out of memory"}
            _append(directory / "attempts.jsonl", {**FAILED_ATTEMPT, **reason})
        if run.run_id not in defects.missing:
            commit = git_commits[i % len(git_commits)]
            _write_run(directory, plan, run, arms[run.arm], commit, defects)
            _append(directory / "samples.jsonl", _sample(completion))
    if report_seeds and report_joined:
        for name, arm in arms.items():
            selection = _selection(name, arm, search_seeds)
            write_json(path / "selection" / f"{name}.json", asdict(selection))
    return path


def _arm(name: str, truth: SyntheticArm, model: str, family: str) -> Arm:
    method = {"method.name": "full"}
    if truth.rank is not None:
        method = {"method.name": "lora", "method.rank": truth.rank}
    named = {"model.name": model, "task.family": family, "engine.name": "trl"}
    settings = {"steps": STEPS, "eval_every": EVAL_EVERY, "eval_prompts": 512}
    arm = build_arm(name, {**method, **named}, truth.learning_rates, settings)
    return dataclasses.replace(
        arm,
        config=dataclasses.replace(arm.config, save="last"),
        factors={"method": arm.config.method.name},
        model=dataclasses.replace(arm.model, hidden_size=64, total_params=FULL_PARAMS),
        trainable_params=FULL_PARAMS if truth.rank is None else 2_000 * truth.rank,
    )


def _runs(
    arms: Mapping[str, SyntheticArm], search_seeds: Sequence[int], report_seeds: Sequence[int]
) -> list[PlannedRun]:
    cells = [
        (name, "search", rate, seed)
        for name, arm in arms.items()
        for rate in arm.learning_rates
        for seed in search_seeds
    ]
    cells += [
        (name, "report", arm.best_rate, seed) for name, arm in arms.items() for seed in report_seeds
    ]
    return [
        PlannedRun(run_id=run_id(*cell), arm=cell[0], phase=cell[1], learning_rate=cell[2],
                   seed=cell[3])
        for cell in cells
    ]  # fmt: skip


def _experiment(
    name: str, kind: str, arms: Mapping[str, Arm], search: Sequence[int], report: Sequence[int]
) -> ExperimentConfig:
    return ExperimentConfig(
        name=name,
        kind=kind,
        hypothesis="LoRA keeps up with full fine-tuning and wants ten times its learning rate.",
        decision_metric="held-out sampled accuracy, mean of the last three evaluations",
        criterion="The interval of the difference lies inside the margin.",
        arms={key: [f"method={arm.config.method.name}"] for key, arm in arms.items()},
        factors=["method"],
        seeds=SeedsConfig(search=list(search), report=list(report)),
    )


def _selection(name: str, arm: SyntheticArm, search_seeds: Sequence[int]) -> Selection:
    best = arm.learning_rates.index(arm.best_rate)
    rates = (f"{rate:g}" for rate in arm.learning_rates)
    return Selection(
        arm=name,
        learning_rate=arm.best_rate,
        mean_score=arm.search_means[best],
        edge={0: "low", len(arm.learning_rates) - 1: "high"}.get(best),
        n_seeds=len(search_seeds),
        means=dict(zip(rates, arm.search_means, strict=True)),
    )


def _score(run: PlannedRun, arm: SyntheticArm) -> float:
    """The truth plus an offset that depends on the seed, rotated by arm so pairs differ."""
    shift = 0 if arm.rank is None else arm.rank % 3
    if run.phase == "report":
        return arm.report_mean + REPORT_OFFSETS[(run.seed + shift) % 3]
    mean = arm.search_means[arm.learning_rates.index(run.learning_rate)]
    return mean + SEARCH_OFFSETS[(run.seed + shift) % 3]


def base(phase: str) -> float:
    """Score of the untrained synthetic model on the prompts of a phase."""
    return REPORT_BASE if phase == "report" else BASE


def _curve(run: PlannedRun, truth: SyntheticArm) -> NDArray[np.float64]:
    """Evaluations from the base to the score, a straight rise up to the last three."""
    start = base(run.phase)
    steps = range(0, STEPS + 1, EVAL_EVERY)
    rises = np.array([min(1.0, step / (STEPS - EVAL_EVERY * FINAL_WINDOW)) for step in steps])
    return start + rises * (_score(run, truth) - start)


def _write_run(
    directory: Path,
    plan: Plan,
    run: PlannedRun,
    truth: SyntheticArm,
    git_commit: str,
    defects: Defects,
) -> None:
    arm, curve = plan.arms[run.arm], _curve(run, truth)
    record = _record(plan, run, truth, curve, defects)
    if run.run_id in defects.unknown_schema:
        record.schema_version = 99
    record.git_commit = git_commit
    packages = {"torch": "2.13.0", "trl": "1.16.0", "peft": None}
    provenance = {"git_commit": git_commit, "git_dirty": False, "packages": packages}
    lines = metrics_of(arm, record, curve, curve + 0.1)
    lines.append({"step": record.steps_done, "train/loss": 0.01})
    write_run(directory, record, provenance, lines)


def _record(
    plan: Plan,
    run: PlannedRun,
    truth: SyntheticArm,
    curve: NDArray[np.float64],
    defects: Defects,
) -> Record:
    diverged, silent = (run.run_id in ids for ids in (defects.diverged, defects.no_signal))
    score = 0.0 if diverged else _score(run, truth)
    record = run_record(plan, plan.arms[run.arm], run, curve, score + 0.1, diverged)
    record.score_final, record.score_best, record.score_greedy = score, score + 0.05, score + 0.1
    if silent:
        record.status, record.steps_done = "no_signal", EVAL_EVERY
        record.score_final = record.score_best = record.score_greedy = None
    if record.status != "completed":
        record.status_reason = f"synthetic {record.status}"
    record.wall_time_s = 90.0 if truth.rank is None else 100.0
    record.train_flops, record.rollout_flops = 2.0e12 if truth.rank is None else 1.6e12, 1.0e12
    return record


def _sample(completion: str) -> dict[str, Any]:
    return {"step": STEPS, "prompt_id": "eval-0", "completion": completion, "correct": True}


def _append(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(value) + "\n")
