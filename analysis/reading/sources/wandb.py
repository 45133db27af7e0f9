"""A W&B project, through W&B's own API; a key must be present, nothing is asked for.

The runs that ``python -m study.tracking`` mirrored import without a map.
"""

from __future__ import annotations

import netrc
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import pandas as pd

from analysis.reading.sources.raw import RawSweep, rows_sha256
from study.plan.arms import flatten

OUR_CONFIG = {
    "arm": "arm",
    "phase": "phase",
    "seed": "seed",
    "method": "method.name",
    "lora_rank": "lora_rank",
    "lora_alpha": "lora_alpha",
    "alpha_rule": "alpha_rule",
    "target_modules": "method.target_modules",
    "model": "model.name",
    "model_revision": "model_revision",
    "hidden_size": "hidden_size",
    "dtypes.base": "model.dtype",
    "objective": "objective.name",
    "learning_rate": "objective.learning_rate",
    "prompts_per_step": "objective.prompts_per_step",
    "num_generations": "objective.num_generations",
    "steps_planned": "objective.steps",
    "eval_prompts": "evaluation.eval_prompts",
    "final_window": "evaluation.final_window",
}
OUR_SUMMARY = (
    "score_final",
    "score_best",
    "score_base",
    "score_greedy",
    "status",
    "status_reason",
    "wall_time_s",
    "trainable_params",
    "train_flops",
    "rollout_flops",
)
"""What :mod:`study.tracking` writes to a run's summary, under a record's own names."""


class WandbRun(Protocol):
    """What is read of ``wandb.apis.public.Run``."""

    id: str
    name: str | None
    state: str
    group: str | None

    @property
    def config(self) -> dict[str, Any]:
        """The run's settings."""

    @property
    def summary_metrics(self) -> dict[str, Any]:
        """The last value of everything logged."""

    def scan_history(self) -> Iterable[Mapping[str, Any]]:
        """Every logged row; ``history()`` would be a sample of 500."""


class WandbApi(Protocol):
    """What is read of ``wandb.Api``."""

    def runs(self, path: str, *, lazy: bool) -> Iterable[WandbRun]:
        """The runs of a project, oldest first."""


def read_wandb(project: str, *, history: bool) -> RawSweep:
    """Read the runs of a project.

    Args:
        project: ``ENTITY/PROJECT``.
        history: Read the history of runs that are not ours too; it is a request a run.

    Raises:
        ValueError: if there is no key, the project cannot be read, or it has no run.
    """
    entity, slash, name = project.partition("/")
    if not (entity and slash and name) or "/" in name:
        raise ValueError(f"a W&B source is wandb:ENTITY/PROJECT, got wandb:{project}")
    import wandb  # a second of import

    if not _has_key(wandb.setup().settings.base_url):
        raise ValueError(
            f"no W&B key for wandb:{project}: set WANDB_API_KEY, or log in by `wandb login`"
        )
    try:
        return read_project(wandb.Api(), project, history=history)
    except wandb.errors.Error as error:
        raise ValueError(f"wandb:{project} cannot be read: {error}") from error


def _has_key(base_url: str) -> bool:
    """Whether a key is at hand; without one the API would ask for it on a terminal."""
    if os.environ.get("WANDB_API_KEY"):
        return True
    named = os.environ.get("NETRC")
    files = [Path(named)] if named else [Path.home() / ".netrc", Path.home() / "_netrc"]
    found = next((file for file in files if file.is_file()), None)
    if found is None:
        return False
    try:
        return urlsplit(base_url).netloc in netrc.netrc(found).hosts
    except netrc.NetrcParseError as error:
        raise ValueError(f"{found} cannot be read for a W&B key: {error}") from error


def read_project(api: WandbApi, project: str, *, history: bool) -> RawSweep:
    """Read the runs of a project through an open API.

    Returns:
        Columns ``id``, ``name``, ``state``, ``group``, ``config.NAME`` and ``summary.NAME``.

    Raises:
        ValueError: if the project has no run.
    """
    found = list(api.runs(project, lazy=False))
    if not found:
        raise ValueError(f"wandb:{project} has no run")
    frame = pd.DataFrame([_row(run) for run in found], dtype=object)
    ours = {"summary.score_final", "config.objective.learning_rate"} <= set(frame)
    if ours:
        frame["task"] = [_task(run.config.get("task", {})) for run in found]
    column_map = {"run_id": "id", "status": "state", **(_our_map(frame) if ours else {})}
    rows = _history_rows(found) if ours or history else []
    table = pd.DataFrame(rows, dtype=object)
    return RawSweep(
        origin=f"wandb:{project}",
        runs=frame,
        sha256=rows_sha256(frame, table),
        column_map=column_map,
        history=table if rows else None,
        history_map=_history_map(table, ours),
    )


def _row(run: WandbRun) -> dict[str, Any]:
    return {
        "id": run.id,
        "name": run.name,
        "state": run.state,
        "group": run.group,
        **{f"config.{key}": value for key, value in flatten(run.config).items()},
        **{f"summary.{key}": value for key, value in flatten(run.summary_metrics).items()},
    }


def _task(task: Mapping[str, Any]) -> str:
    """Label of one of our tasks, as records have it: its name, and its family or data set."""
    parts = (task.get(key) for key in ("name", "family", "dataset"))
    return "-".join(str(part) for part in parts if part)


def _our_map(frame: pd.DataFrame) -> dict[str, str]:
    wanted = {target: f"config.{key}" for target, key in OUR_CONFIG.items()}
    wanted |= {name: f"summary.{name}" for name in OUR_SUMMARY}
    return {target: column for target, column in wanted.items() if column in frame}


def _history_rows(found: list[WandbRun]) -> list[dict[str, Any]]:
    return [{**row, "run_id": run.id} for run in found for row in run.scan_history()]


def _history_map(table: pd.DataFrame, ours: bool) -> dict[str, str]:
    """Step and metrics of our own mirror; W&B's own step for others, who name their metrics."""
    if not ours:
        return {"run_id": "run_id", "step": "_step"}
    metrics = [str(column) for column in table.columns if "/" in str(column)]
    return {"run_id": "run_id", "step": "step", **{name: name for name in metrics}}
