"""What a W&B run says: its name, its groups and tags, its configuration, its rows."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

from study.config import LoraMethod
from study.plan.experiment import Plan, PlannedRun
from study.records.location import without_password
from study.records.record import Record

SUMMARY = ("score_final", "score_best", "score_base", "score_greedy", "status", "status_reason",
           "wall_time_s", "trainable_params", "train_flops", "rollout_flops")  # fmt: skip
"""What a run's summary takes from its record."""
PATH = re.compile(r"(/|~|\.\.?[/\\]|[A-Za-z]:[/\\])")


def wandb_id(experiment: str, run_id: str) -> str:
    """The id of a run in its W&B project; the same whenever and wherever it is mirrored."""
    return f"{experiment}-{run_id}"


def labels(plan: Plan, run: PlannedRun) -> dict[str, Any]:
    """How people find the run: arguments of ``wandb.init``."""
    return {
        "id": wandb_id(plan.experiment.name, run.run_id),
        "name": f"{run.arm} lr={run.learning_rate:g} seed={run.seed} {run.phase}",
        "group": plan.experiment.name,
        "job_type": run.arm,
        "tags": tags(plan, run),
        "notes": plan.experiment.hypothesis,
    }


def tags(plan: Plan, run: PlannedRun, record: Record | None = None) -> list[str]:
    """Phase, method, rank, rate and seed; the status once there is one."""
    method = plan.arms[run.arm].config.method
    rank = [f"rank-{method.rank}"] if isinstance(method, LoraMethod) else []
    found = [run.phase, method.name, *rank, f"lr-{run.learning_rate:g}", f"seed-{run.seed}"]
    return [*found, record.status] if record is not None else found


def run_config(plan: Plan, run: PlannedRun) -> dict[str, Any]:
    """The resolved configuration and the facts people group by; no paths, no passwords."""
    arm = plan.arms[run.arm]
    config = asdict(arm.config)
    config["model"].pop("path")
    config["objective"]["learning_rate"] = run.learning_rate
    config["seed"] = run.seed
    method = arm.config.method
    lora = method if isinstance(method, LoraMethod) else None
    facts = {
        "arm": run.arm,
        "phase": run.phase,
        "lora_rank": lora.rank if lora else None,
        "lora_alpha": lora.alpha if lora else None,
        "alpha_rule": lora.alpha_rule if lora else None,
        "model_revision": arm.model.model_revision,
        "hidden_size": arm.model.hidden_size,
        "factors": arm.factors,
    }
    found: dict[str, Any] = scrubbed({**config, **facts})
    return found


def scrubbed(value: Any) -> Any:
    """Paths shortened to their last part, and URLs without their passwords, at any depth."""
    if isinstance(value, dict):
        return {key: scrubbed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [scrubbed(item) for item in value]
    if isinstance(value, str) and "://" in value:
        return without_password(value)
    if isinstance(value, str) and PATH.match(value):
        return PurePath(value.replace("\\", "/")).name
    return value


def row(line: bytes) -> dict[str, Any]:
    """A line of ``metrics.jsonl`` as it is logged: values that were not finite are left out.

    W&B would drop or keep them by their type; the line's own ``health/nonfinite`` counts them.
    """
    values: dict[str, Any] = json.loads(line)
    return {key: value for key, value in values.items() if value is not None}
