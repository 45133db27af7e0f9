"""Adapters of the lab model that were made by hand, in the files of real runs."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from peft import get_peft_model

from study.adapters.stored import Adapter, find_adapters
from study.config import LoraMethod
from study.records.files import write_json
from study.train.methods import adapter_config
from study.train.models import load_model
from tests.unit.probes.stored_runs import LAB, TARGETS, write_run

OTHER_TARGETS = ["model.layers.0.self_attn.q_proj", "model.layers.1.mlp.up_proj"]


def write_adapter(
    path: Path, seed: int, *, rank: int = 2, scale: float = 0.2, targets: list[str] = TARGETS
) -> Path:
    """A run with a random adapter, B included; ``scale`` is that of B."""
    method = LoraMethod(name="lora", default_learning_rate=1e-3, rank=rank, lora_alpha=4.0)
    torch.manual_seed(seed)
    model = get_peft_model(load_model(LAB), adapter_config(method, targets))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if ".lora_B." in name:
                weight.normal_(std=scale)
    write_run(path, method, model, task="arithmetic-sum3", score_final=0.5)
    record = json.loads((path / "record.json").read_text())
    write_json(path / "record.json", record | {"model": "lab32"})
    return path


def named(**paths: Path) -> list[Adapter]:
    return find_adapters([f"{name}={path}" for name, path in paths.items()])
