"""Whole experiment directories of simulated runs, as a sweep would have left them.

The plan is built by ``study`` itself and every record has every field, so that whatever reads a
real experiment reads these. Nothing is trained: scores come from :mod:`.draws`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from tqdm import tqdm

from analysis.estimates.curve import FloatArray
from analysis.simulate.draws import CENTRED_ON, Design, simulate_paths
from analysis.simulate.records import build_arm, build_plan, run_record
from analysis.simulate.regimes import CLEAR
from analysis.simulate.truths import Truth
from study.plan.arms import Arm
from study.plan.experiment import Plan, PlannedRun, to_json, with_cells
from study.plan.select import select
from study.records.record import Record

GREEDY_GAIN = 0.1
"""Greedy accuracy above the sampled one, at most 1."""
PROVENANCE = {"git_commit": "simulated", "git_dirty": False, "packages": {"simulated": "0"}}
FAILED_ATTEMPT = {
    "attempt": 1,
    "status": "oom",
    "reason": "simulated: out of memory",
    "spent": True,
    "time": "2026-01-01T00:00:00+00:00",
}


@dataclass(frozen=True)
class SimulatedArm:
    """One arm: its truth, its grid, and how its configuration differs from the default one."""

    truth: Truth
    learning_rates: tuple[float, ...]
    """Ascending."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Over full fine-tuning of ``lab64`` on arithmetic, by dotted key: ``{"method.name": "lora",
    "method.rank": 8, "method.target_modules": "attention", "objective.prompts_per_step": 32,
    "model.name": "lab128", "model.dtype": "bfloat16"}``. Widths and vocabulary follow the name:
    ``lab128`` has hidden size 128."""
    noise: float | None = None
    """SD over seeds of its runs, where it differs from the experiment's."""


@dataclass(frozen=True)
class Flaws:
    """What goes wrong in an experiment."""

    missing: float = 0.0
    """Share of the runs without a record; an arm that lacks a search run selects nothing."""
    failed: float = 0.0
    """Share of the runs with a failed attempt before their record."""
    diverged: bool = False
    """Runs that end below half of the base are recorded as diverged, at the score 0."""


def lr_grid(truth: Truth, spacing: float = 0.25, points: int = 9) -> tuple[float, ...]:
    """Learning rates around a truth's optimum, to three digits."""
    offsets = spacing * (np.arange(points) - (points - 1) / 2)
    return tuple(float(f"{10 ** (truth.best(CENTRED_ON) + x):.3g}") for x in offsets)


def rank_arms(
    ranks: Iterable[int] = (1, 8),
    ratio: float = 10.0,
    spacing: float = 0.25,
    points: int = 9,
    truth: Truth = CLEAR,
) -> dict[str, SimulatedArm]:
    """``full`` and ``lora-r1``, ``lora-r8`` ... of equal curves, LoRA's ``ratio`` times higher."""
    lora = truth.shifted(float(np.log10(ratio)))
    arms = {"full": SimulatedArm(truth, lr_grid(truth, spacing, points))}
    for rank in ranks:
        method = {"method.name": "lora", "method.rank": rank}
        arms[f"lora-r{rank}"] = SimulatedArm(lora, lr_grid(lora, spacing, points), method)
    return arms


def write_experiment(
    path: Path,
    arms: Mapping[str, SimulatedArm],
    *,
    search_seeds: int = 3,
    report_seeds: int = 5,
    steps: int = 200,
    eval_every: int = 20,
    eval_prompts: int = 512,
    noise: float = 0.01,
    margin: float | None = None,
    flaws: Flaws = Flaws(),
    rng_seed: int = 0,
    progress: bool = False,
) -> Path:
    """Write ``plan.json``, selections, and record, metrics and provenance of every run.

    Args:
        path: The experiment directory, new or empty; its name becomes the experiment's.
        arms: By name, :func:`rank_arms` or any others.
        search_seeds: Seeds 0, 1, ... of every cell of the grids.
        report_seeds: Seeds 100000, 100001, ... at the selected rate of each arm; 0: no report.
        steps: Optimizer steps of a run.
        eval_every: Steps between evaluations; the score is the mean of the last three.
        eval_prompts: Prompts of one evaluation.
        noise: SD over seeds of a run far from collapse, evaluation noise apart.
        margin: Equality margin of the experiment.
        flaws: What goes wrong.
        rng_seed: Of every draw: the same arguments write the same numbers.
        progress: Show a bar.

    Returns:
        ``path``.

    Raises:
        ValueError: if the directory is not empty, a configuration is none, or two arms are equal.
    """
    if path.exists() and any(path.iterdir()):
        raise ValueError(f"a synthetic experiment needs a new directory, {path} is not empty")
    path.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(rng_seed)
    settings = {"steps": steps, "eval_every": eval_every, "eval_prompts": eval_prompts}
    built = {name: build_arm(name, a.overrides, a.learning_rates, settings)
             for name, a in arms.items()}  # fmt: skip
    plan = build_plan(path.name, built, search_seeds, report_seeds, margin)
    design = Design(seeds=search_seeds, noise=noise, eval_prompts=eval_prompts)
    drawn = _Writer(path, arms, design, flaws, rng, progress)
    records = drawn.write(plan, plan.runs, common=rng.standard_normal(search_seeds))
    selections = [s for name in arms if (s := select(plan, name, records)) is not None]
    if report_seeds:
        searched = len(plan.runs)
        plan = with_cells(plan, "report", {s.arm: [s.learning_rate] for s in selections})
        for selection in selections:
            write_json(path / "selection" / f"{selection.arm}.json", asdict(selection))
        drawn.write(plan, plan.runs[searched:], common=rng.standard_normal(report_seeds))
    write_json(path / "plan.json", to_json(plan))
    return path


@dataclass(frozen=True)
class _Writer:
    """Draws the runs of one phase, arm by arm, and writes their files."""

    path: Path
    arms: Mapping[str, SimulatedArm]
    design: Design
    flaws: Flaws
    rng: Generator
    progress: bool

    def write(self, plan: Plan, runs: list[PlannedRun], common: FloatArray) -> dict[str, Record]:
        """Write the runs, whose seeds have these ``common`` effects, and return their records."""
        records = {}
        bar = tqdm(total=len(runs), unit="run", disable=None if self.progress else True)
        for name, arm in plan.arms.items():
            for run, scores in self._scored([r for r in runs if r.arm == name], arm, common):
                record = self._write_run(plan, arm, run, scores)
                if record is not None:
                    records[run.run_id] = record
                bar.update()
        bar.close()
        return records

    def _scored(
        self, runs: list[PlannedRun], arm: Arm, common: FloatArray
    ) -> Iterator[tuple[PlannedRun, FloatArray]]:
        """Each run with its evaluations ``[steps of evaluation]``, the base's first."""
        if not runs:
            return
        mine = self.arms[arm.name]
        seeds, rates = (
            sorted({getattr(r, key) for r in runs}) for key in ("seed", "learning_rate")
        )
        noise = self.design.noise if mine.noise is None else mine.noise
        design = Design(seeds=len(seeds), noise=noise, eval_prompts=self.design.eval_prompts)
        steps = arm.config.evaluation.steps(arm.config.objective.steps)[1:]
        shares = tuple(step / steps[-1] for step in steps)
        x = np.log10(rates)
        paths = simulate_paths(mine.truth, x, design, self.rng, common, shares)
        for run in runs:
            path = paths[seeds.index(run.seed), rates.index(run.learning_rate)]
            yield run, np.concatenate([[mine.truth.base], path])

    def _write_run(
        self, plan: Plan, arm: Arm, run: PlannedRun, scores: FloatArray
    ) -> Record | None:
        directory = self.path / arm.name / run.run_id
        directory.mkdir(parents=True, exist_ok=True)
        if self.rng.random() < self.flaws.failed:
            _write(directory / "attempts.jsonl", json.dumps(FAILED_ATTEMPT) + "\n")
        if self.rng.random() < self.flaws.missing:
            return None
        window = arm.config.evaluation.final_window
        final = float(scores[-window:].mean())
        diverged = self.flaws.diverged and final < scores[0] / 2
        greedy = np.minimum(scores + GREEDY_GAIN, 1.0)
        record = run_record(plan, arm, run, scores, float(greedy[-window:].mean()), diverged)
        write_run(directory, record, PROVENANCE, metrics_of(arm, record, scores, greedy))
        return record


def metrics_of(
    arm: Arm, record: Record, scores: FloatArray, greedy: FloatArray
) -> list[dict[str, float]]:
    """The lines of ``metrics.jsonl``: an evaluation each, up to the run's last step.

    Args:
        arm: Of the run, whose configuration says when it evaluates.
        record: Of the run.
        scores: Sampled accuracies, the base's first.
        greedy: As many greedy ones.
    """
    steps = arm.config.evaluation.steps(arm.config.objective.steps)
    return [
        {"step": step, "eval/accuracy": float(a), "eval/greedy_accuracy": float(b)}
        for step, a, b in zip(steps, scores, greedy, strict=True)
        if step <= record.steps_done
    ]


def write_run(
    directory: Path,
    record: Record,
    provenance: Mapping[str, Any],
    metrics: Iterable[Mapping[str, float]],
) -> None:
    """Write what a run leaves in its directory: record, provenance and metrics."""
    write_json(directory / "record.json", vars(record))
    write_json(directory / "provenance.json", provenance)
    _write(directory / "metrics.jsonl", "".join(json.dumps(line) + "\n" for line in metrics))


def write_json(path: Path, value: object) -> None:
    """Write one object; its directory is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, json.dumps(value))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
