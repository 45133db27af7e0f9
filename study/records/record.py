"""The record of a finished run: the row that analysis reads."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from study.records.files import read_text

SCHEMA_VERSION = 1
RESULT_STATUSES = ("completed", "diverged", "no_signal", "pruned")
SCORED_STATUSES = ("completed", "diverged")
"""Results with a score: a diverged run has the declared worst value."""


@dataclass(kw_only=True)
class Record:
    """One finished run. Published once, last; it exists only for results."""

    schema_version: int = SCHEMA_VERSION
    run_id: str
    experiment: str
    arm: str
    phase: str
    """``search`` or ``report``."""
    factors: dict[str, Any]
    """The arm's value of each factor of the experiment."""
    method: str
    lora_rank: int | None
    lora_alpha: float | None
    alpha_rule: str | None
    target_modules: list[str]
    """Full names of the adapted modules, sorted; empty under full fine-tuning."""
    learning_rate: float
    prompts_per_step: int
    num_generations: int | None
    """Completions a prompt; None where none are drawn (supervised fine-tuning)."""
    objective: str
    task: str
    model: str
    model_revision: str
    """Content hash of the weights."""
    hidden_size: int
    seed: int
    engine: str
    dtypes: dict[str, str]
    """Precision of ``base``, ``adapter`` and ``optimizer`` state."""
    status: str
    """``completed``, ``diverged``, ``no_signal`` or ``pruned``."""
    status_reason: str
    flags: list[str] = field(default_factory=list)
    score_metric: str
    direction: str
    """``maximize`` or ``minimize``."""
    score_final: float | None
    """Mean of the last ``final_window`` evaluations; worst value if diverged; None if no score."""
    score_best: float | None
    """Best single evaluation: optimistic, never silently used."""
    score_base: float | None
    """The untrained model on the same prompts (evaluation at step 0)."""
    score_greedy: float | None
    """Mean greedy accuracy over the same window."""
    final_window: int
    eval_prompts: int
    steps_planned: int
    steps_done: int
    episodes: int
    """Completions the run trained on."""
    trainable_params: int
    total_params: int
    train_tokens: int
    """Prompt and completion tokens that went through a training pass."""
    generated_tokens: int
    """Completion tokens sampled for training."""
    train_flops: float
    """Of the training passes: FLOPs of their matrix products, see :mod:`study.plan.flops`."""
    rollout_flops: float
    """Of sampling for training, counted alike. Held-out evaluation is no part of either: its
    FLOPs are the probe ``evaluation_flops``."""
    wall_time_s: float
    """Seconds; in a pack, the run's own part of the time, by its rows."""
    peak_memory_bytes: int
    """Of the process, the other runs of a pack included."""
    probes: dict[str, Any] = field(default_factory=dict)
    git_commit: str


def read_record(path: Path) -> Record | None:
    """The record in a file; None if there is none.

    Raises:
        ValueError: one sentence if the file is damaged or of another schema.
    """
    text = read_text(path)
    if text is None:
        return None
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:  # records are synced: a disk lost it, or a hand
        raise ValueError(
            f"{path} cannot be read as a record ({error}); move it away, and its run is trained "
            "again"
        ) from error
    if data.get("schema_version") != SCHEMA_VERSION:
        raise ValueError(
            f"{path} has schema_version {data.get('schema_version')!r}, this program reads "
            f"{SCHEMA_VERSION}"
        )
    return Record(**data)
