"""Stored runs of the lab model whose weights were changed by hand, in the files of real ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from peft import get_peft_model

from study.compose import to_yaml
from study.config import LoraMethod, MethodConfig, ModelConfig, RunConfig
from study.lab import lab_model_path
from study.probes.stored import StoredRun, find_runs
from study.records.files import write_json
from study.records.record import Record
from study.train.methods import adapter_config
from study.train.models import load_model, model_revision
from tests import plans

LAB = ModelConfig(name="lab32", source="lab")
TARGETS = ["model.layers.0.self_attn.q_proj", "model.layers.1.mlp.down_proj"]
LAB_REVISION = model_revision(lab_model_path("lab32"))


def adapted_model(method: LoraMethod, scale: float = 0.05, model: ModelConfig = LAB) -> Any:
    """PEFT's model of the base with an adapter whose B is random, as after training."""
    torch.manual_seed(0)
    found = get_peft_model(load_model(model), adapter_config(method, TARGETS))
    with torch.no_grad():
        for name, weight in found.named_parameters():
            if ".lora_B." in name:
                weight.normal_(std=scale)
    return found


def changed_model(change: Callable[[str, torch.Tensor], torch.Tensor]) -> Any:
    """The base with every parameter replaced by ``change(name, parameter)``."""
    found = load_model(LAB)
    with torch.no_grad():
        for name, weight in found.named_parameters():
            weight.copy_(change(name, weight))
    return found


def write_run(
    path: Path,
    method: MethodConfig,
    weights: Any = None,
    *,
    save: str = "last",
    model: ModelConfig = LAB,
    **facts: Any,
) -> Path:
    """Write what a finished run leaves that probes read: record, configuration, weights."""
    adapted = isinstance(method, LoraMethod)
    path.mkdir(parents=True)
    if weights is not None:
        weights.save_pretrained(
            str(path / ("adapter" if adapted else "model")),
            **({"save_embedding_layers": False} if adapted else {}),
        )
    config = plans.run_config(method, model=model, save=save)
    (path / "config.yaml").write_text(to_yaml(config))
    write_json(path / "record.json", dataclasses.asdict(_record(path, config, facts)))
    return path


def read_run(path: Path) -> StoredRun:
    """The run as the command sees it."""
    (run,), skipped = find_runs([path])
    assert skipped == []
    return run


def _record(path: Path, config: RunConfig, facts: dict[str, Any]) -> Record:
    known: dict[str, Any] = {f.name: None for f in dataclasses.fields(Record)}
    known |= {"schema_version": 1, "run_id": path.name, "arm": path.parent.name}
    known |= {"model_revision": LAB_REVISION, "status": "completed"}
    known |= {"dtypes": {"base": config.model.dtype}, "target_modules": []}
    if isinstance(config.method, LoraMethod):
        known["dtypes"] |= {"adapter": "float32"}
        known |= {"lora_rank": config.method.rank, "lora_alpha": config.method.alpha}
        known |= {"target_modules": TARGETS}
    return Record(**{**known, **facts})
