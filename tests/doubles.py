"""Stand-ins for the tests: what each guarantees is in its docstring."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from study.config import (
    ArithmeticTaskConfig,
    EngineConfig,
    EvaluationConfig,
    ExperimentConfig,
    FullMethod,
    GrpoObjective,
    LoraMethod,
    ModelConfig,
    RunConfig,
    SeedsConfig,
)
from study.records.record import Record

BASE, REPORT_BASE = 0.18, 0.20
"""Accuracy of the untrained synthetic model on the prompts of the search and of the report."""
STEPS, EVAL_EVERY, FINAL_WINDOW = 200, 20, 3
FULL_GRID = (2e-5, 6e-5, 2e-4, 6e-4, 2e-3)
LORA_GRID = (2e-4, 6e-4, 2e-3, 6e-3, 2e-2)
SEARCH_OFFSETS = (-0.01, 0.0, 0.01)
REPORT_OFFSETS = (-0.004, 0.0, 0.004)


@dataclass(frozen=True)
class SyntheticArm:
    """One arm's truth: the seed means are exactly these, on a full set of three seeds."""

    rank: int | None
    learning_rates: tuple[float, ...]
    search_means: tuple[float, ...]
    report_mean: float


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
    configs = {name: _config(arm, model, family) for name, arm in arms.items()}
    runs = _cells(arms, search_seeds, report_seeds if report_joined else ())
    planned = [run for run in runs if run["run_id"] not in defects.unplanned]
    seeds = SeedsConfig(search=list(search_seeds), report=list(report_seeds))
    _write_json(path / "plan.json", _plan(path.name, kind, arms, configs, planned, seeds))
    for i, run in enumerate(runs):
        directory = path / run["arm"] / run["run_id"]
        for attempt in range(1, defects.failed_attempts.get(run["run_id"], 0) + 1):
            _append(directory / "attempts.jsonl", _failed_attempt(attempt))
        if run["run_id"] not in defects.missing:
            commit = git_commits[i % len(git_commits)]
            _write_run(directory, run, arms[run["arm"]], configs[run["arm"]], commit, defects)
            _append(directory / "samples.jsonl", _sample(completion))
    if report_seeds and report_joined:
        for name, arm in arms.items():
            _write_json(path / "selection" / f"{name}.json", _selection(name, arm, search_seeds))
    return path


def _config(arm: SyntheticArm, model: str, family: str) -> RunConfig:
    return RunConfig(
        model=ModelConfig(name=model, source="lab"),
        method=(
            FullMethod(name="full", default_learning_rate=2e-4)
            if arm.rank is None
            else LoraMethod(name="lora", default_learning_rate=1e-3, rank=arm.rank)
        ),
        task=ArithmeticTaskConfig(
            name="arithmetic", train_prompts=4096, max_completion_length=14, family=family
        ),
        objective=_objective(arm.learning_rates[0]),
        evaluation=EvaluationConfig(
            eval_every=EVAL_EVERY,
            eval_prompts=512,
            final_window=FINAL_WINDOW,
            eval_batch_size=512,
        ),
        engine=EngineConfig(name="trl"),
        seed=0,
        save="last",
    )


def _objective(learning_rate: float) -> GrpoObjective:
    return GrpoObjective(
        name="grpo",
        learning_rate=learning_rate,
        steps=STEPS,
        prompts_per_step=8,
        num_generations=8,
        micro_batch_size=None,
        loss_type="dr_grpo",
        scale_rewards="none",
        beta=0.0,
        epsilon=0.2,
        epsilon_high=0.2,
        num_iterations=1,
        importance_sampling_level="token",
        mask_truncated_completions=False,
        lr_scheduler_type="constant",
        warmup_steps=0,
        weight_decay=0.0,
        adam_beta1=0.9,
        adam_beta2=0.999,
        adam_epsilon=1e-8,
        max_grad_norm=1.0,
        temperature=1.0,
        no_signal_steps=20,
    )


def _cells(
    arms: Mapping[str, SyntheticArm], search_seeds: Sequence[int], report_seeds: Sequence[int]
) -> list[dict[str, Any]]:
    cells = [
        (name, "search", rate, seed)
        for name, arm in arms.items()
        for rate in arm.learning_rates
        for seed in search_seeds
    ]
    cells += [
        (name, "report", _best_rate(arm), seed)
        for name, arm in arms.items()
        for seed in report_seeds
    ]
    return [
        {
            "run_id": run_id(*cell),
            "arm": cell[0],
            "phase": cell[1],
            "learning_rate": cell[2],
            "seed": cell[3],
        }
        for cell in cells
    ]


def _best_rate(arm: SyntheticArm) -> float:
    return arm.learning_rates[arm.search_means.index(max(arm.search_means))]


def _plan(
    name: str,
    kind: str,
    arms: Mapping[str, SyntheticArm],
    configs: Mapping[str, RunConfig],
    runs: list[dict[str, Any]],
    seeds: SeedsConfig,
) -> dict[str, Any]:
    experiment = ExperimentConfig(
        name=name,
        kind=kind,
        hypothesis="LoRA keeps up with full fine-tuning and wants ten times its learning rate.",
        decision_metric="held-out sampled accuracy, mean of the last three evaluations",
        criterion="The interval of the difference lies inside the margin.",
        arms={arm: [f"method={configs[arm].method.name}"] for arm in arms},
        factors=["method"],
        seeds=seeds,
    )
    return {
        "schema_version": 1,
        "experiment": asdict(experiment),
        "engine": "trl",
        "arms": {
            arm: {
                "config": asdict(configs[arm]),
                "factors": {"method": configs[arm].method.name},
                "learning_rates": list(truth.learning_rates),
            }
            for arm, truth in arms.items()
        },
        "runs": runs,
        "looks": 1,
        "max_retries": 2,
    }


def _selection(name: str, arm: SyntheticArm, search_seeds: Sequence[int]) -> dict[str, Any]:
    best = arm.search_means.index(max(arm.search_means))
    edge = {0: "low", len(arm.learning_rates) - 1: "high"}.get(best)
    return {
        "arm": name,
        "learning_rate": arm.learning_rates[best],
        "mean_score": arm.search_means[best],
        "edge": edge,
        "n_seeds": len(search_seeds),
        "means": dict(zip((f"{x:g}" for x in arm.learning_rates), arm.search_means, strict=True)),
    }


def _score(run: Mapping[str, Any], arm: SyntheticArm) -> float:
    """The truth plus an offset that depends on the seed, rotated by arm so pairs differ."""
    shift = 0 if arm.rank is None else arm.rank % 3
    offsets = SEARCH_OFFSETS if run["phase"] == "search" else REPORT_OFFSETS
    mean = (
        arm.search_means[arm.learning_rates.index(run["learning_rate"])]
        if run["phase"] == "search"
        else arm.report_mean
    )
    return mean + offsets[(run["seed"] + shift) % 3]


def base(phase: str) -> float:
    """Score of the untrained synthetic model on the prompts of a phase."""
    return REPORT_BASE if phase == "report" else BASE


def _write_run(
    directory: Path,
    run: Mapping[str, Any],
    arm: SyntheticArm,
    config: RunConfig,
    git_commit: str,
    defects: Defects,
) -> None:
    status, score, steps = "completed", _score(run, arm), STEPS
    if run["run_id"] in defects.diverged:
        status, score, steps = "diverged", 0.0, STEPS // 2
    if run["run_id"] in defects.no_signal:
        status, steps = "no_signal", 20
    record = asdict(_record(run, arm, config, status, score, steps, git_commit))
    if run["run_id"] in defects.unknown_schema:
        record["schema_version"] = 99
    _write_json(directory / "record.json", record)
    packages = {"torch": "2.13.0", "trl": "1.16.0", "peft": None}
    provenance = {"git_commit": git_commit, "git_dirty": False, "packages": packages}
    _write_json(directory / "provenance.json", provenance)
    lines: list[dict[str, float]] = []
    for step in range(0, steps + 1, EVAL_EVERY):
        rise = min(1.0, step / (STEPS - EVAL_EVERY * FINAL_WINDOW))
        accuracy = base(run["phase"]) + rise * (_score(run, arm) - base(run["phase"]))
        lines.append(
            {"step": step, "eval/accuracy": accuracy, "eval/greedy_accuracy": accuracy + 0.1}
        )
    lines.append({"step": steps, "train/loss": 0.01})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (directory / "metrics.jsonl").write_text(text, encoding="utf-8")


def _record(
    run: Mapping[str, Any],
    arm: SyntheticArm,
    config: RunConfig,
    status: str,
    score: float,
    steps: int,
    git_commit: str,
) -> Record:
    scored = status != "no_signal"
    method = config.method
    lora = isinstance(method, LoraMethod)
    trainable = 131_712 if arm.rank is None else 2_000 * arm.rank
    return Record(
        run_id=run["run_id"],
        experiment="synthetic",
        arm=run["arm"],
        phase=run["phase"],
        factors={"method": method.name},
        method=method.name,
        lora_rank=method.rank if isinstance(method, LoraMethod) else None,
        lora_alpha=method.alpha if isinstance(method, LoraMethod) else None,
        alpha_rule=method.alpha_rule if isinstance(method, LoraMethod) else None,
        target_modules=[f"model.layers.{i}.mlp.up_proj" for i in range(14)] if lora else [],
        learning_rate=run["learning_rate"],
        prompts_per_step=8,
        num_generations=8,
        objective="grpo",
        task="arithmetic",
        model=config.model.name,
        model_revision="f00dfeed",
        hidden_size=64,
        seed=run["seed"],
        engine="trl",
        dtypes={"base": "float32", "adapter": "float32", "optimizer": "float32"},
        status=status,
        status_reason="" if status == "completed" else f"synthetic {status}",
        score_metric="eval/accuracy",
        direction="maximize",
        score_final=score if scored else None,
        score_best=score + 0.05 if scored else None,
        score_base=base(run["phase"]),
        score_greedy=score + 0.1 if scored else None,
        final_window=FINAL_WINDOW,
        eval_prompts=512,
        steps_planned=STEPS,
        steps_done=steps,
        episodes=steps * 64,
        trainable_params=trainable,
        total_params=131_712 + (trainable if lora else 0),
        train_tokens=steps * 64 * 20,
        generated_tokens=steps * 64 * 12,
        train_flops=2.0e12 if arm.rank is None else 1.6e12,
        rollout_flops=1.0e12,
        wall_time_s=90.0 if arm.rank is None else 100.0,
        peak_memory_bytes=500_000_000,
        git_commit=git_commit,
    )


def _failed_attempt(attempt: int) -> dict[str, Any]:
    return {
        "attempt": attempt,
        "status": "oom",
        "reason": "synthetic: out of memory",
        "spent": True,
        "time": "2026-11-30T12:00:00+00:00",
    }


def _sample(completion: str) -> dict[str, Any]:
    return {"step": STEPS, "prompt_id": "eval-0", "completion": completion, "correct": True}


def _write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def _append(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(value) + "\n")
