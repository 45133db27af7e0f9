"""``python -m study.tracking runs/quickstart``: mirror a sweep to Weights & Biases.

A mirror, fed from the run directories: training never waits for it, and it can be made afterwards,
again, or elsewhere. One W&B run a record, its id made of experiment and run id, so that a second
pass changes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from study.cli import reporting_user_errors
from study.plan.experiment import Plan
from study.records.record import Record
from study.records.store import ExperimentStore, write_json
from study.sweep.schedule import read_state

FOLLOW_EVERY_S = 3.0
SUMMARY = ("score_final", "score_best", "score_base", "score_greedy", "status", "status_reason",
           "wall_time_s", "trainable_params", "train_flops", "rollout_flops")  # fmt: skip


def mirror(store: ExperimentStore, mode: str, project: str) -> int:
    """Mirror every published run that has not been mirrored in this mode.

    Returns:
        Number of runs mirrored now.
    """
    state = read_state(store)
    fresh = 0
    for run in state.plan.runs:
        mark = store.path / "wandb" / "mirrored" / f"{run.run_id}-{mode}.json"
        record = state.records.get(run.run_id)
        if record is not None and not mark.exists():
            rows = _mirror_run(store, state.plan, record, mode, project)
            write_json(mark, {"run_id": run.run_id, "mode": mode, "rows": rows})
            fresh += 1
    return fresh


def _mirror_run(store: ExperimentStore, plan: Plan, record: Record, mode: str, project: str) -> int:
    import wandb  # a second of import that --help need not pay

    run_dir = store.run_dir(record.arm, record.run_id)
    run: Any = wandb.init(
        project=project,
        id=f"{plan.experiment.name}-{record.run_id}",
        name=f"{record.arm} lr={record.learning_rate:g} seed={record.seed} {record.phase}",
        group=plan.experiment.name,
        job_type=record.arm,
        tags=[record.phase, record.status, record.method, f"seed-{record.seed}"],
        config=_config(plan, record),
        dir=str(store.path),
        mode="online" if mode == "online" else "offline",
        reinit="create_new",
        # This process is the mirror: its output, machine load and code are not the run's.
        settings=wandb.Settings(
            console="off",
            silent=True,
            disable_git=True,
            save_code=False,
            x_disable_stats=True,
            x_disable_meta=True,
        ),
    )
    try:
        # W&B's own step must never go back and would drop rows; ours is an ordinary column.
        run.define_metric("step")
        run.define_metric("*", step_metric="step")
        rows = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
        for row in rows:
            run.log({key: value for key, value in row.items() if value is not None})
        for key in SUMMARY:
            run.summary[key] = getattr(record, key)
    finally:
        run.finish()
    return len(rows)


def _config(plan: Plan, record: Record) -> dict[str, Any]:
    """The resolved configuration and the facts people group by; no paths, no host names."""
    config = asdict(plan.arms[record.arm].config)
    config["model"].pop("path")
    config["objective"]["learning_rate"] = record.learning_rate
    config["seed"] = record.seed
    keys = (
        "arm",
        "phase",
        "lora_rank",
        "lora_alpha",
        "alpha_rule",
        "model_revision",
        "hidden_size",
    )
    return {**config, **{key: getattr(record, key) for key in keys}, "factors": record.factors}


def _follow(store: ExperimentStore, mode: str, project: str) -> None:
    """Mirror until standard input closes, then once more."""
    open_input = True
    while open_input:
        ready, _, _ = select.select([sys.stdin], [], [], FOLLOW_EVERY_S)
        open_input = not (ready and not os.read(sys.stdin.fileno(), 1))
        mirror(store, mode, project)


def main(arguments: list[str] | None = None) -> None:
    """Mirror once, or follow a sweep."""
    parser = argparse.ArgumentParser(prog="python -m study.tracking", description=__doc__)
    parser.add_argument("experiment", type=Path, help="an experiment's directory")
    parser.add_argument("--mode", choices=("offline", "online"), default="offline")
    parser.add_argument("--project", default="lora-rl-study")
    parser.add_argument("--follow", action="store_true", help="until standard input closes")
    options = parser.parse_args(arguments)
    store = ExperimentStore(options.experiment)
    with reporting_user_errors():
        if options.follow:
            _follow(store, options.mode, options.project)
        else:
            fresh = mirror(store, options.mode, options.project)
            print(f"mirrored {fresh} run(s) of {store.path} ({options.mode})")


if __name__ == "__main__":
    main()
