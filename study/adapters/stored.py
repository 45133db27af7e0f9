"""Adapters on disk: LoRA in PEFT's format, and the base that each belongs to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from study.config import LoraMethod, RunConfig
from study.probes.stored import StoredRun, find_runs
from study.records.record import Record

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
PLAIN: Mapping[str, Any] = {
    "bias": "none",
    "use_dora": False,
    "use_rslora": False,
    "fan_in_fan_out": False,
    "rank_pattern": {},
    "alpha_pattern": {},
    "modules_to_save": None,
}
"""Settings of PEFT under which W' = W + (lora_alpha / r) B A and nothing else is changed."""


@dataclass(frozen=True)
class Adapter:
    """One trained adapter."""

    name: str
    """How it is called in tables: ``arm/run_id``, or what the user said."""
    run: StoredRun

    @property
    def path(self) -> Path:
        """The directory in PEFT's format."""
        return self.run.weights

    @property
    def record(self) -> Record:
        """Of the run that trained it."""
        return self.run.record

    @property
    def config(self) -> RunConfig:
        """Of the run that trained it."""
        return self.run.config

    @cached_property
    def settings(self) -> dict[str, Any]:
        """PEFT's configuration.

        Raises:
            ValueError: If it changes more than W + (lora_alpha / r) B A.
        """
        found: dict[str, Any] = json.loads((self.path / CONFIG).read_text())
        for key, plain in PLAIN.items():
            if found.get(key, plain) != plain:
                raise ValueError(
                    f"adapter {self.name} must be W + (lora_alpha / r) B A and nothing else, but "
                    f"sets {key}={found[key]!r}"
                )
        return found

    @property
    def rank(self) -> int:
        """Rank of its matrices."""
        return int(self.settings["r"])

    @property
    def scaling(self) -> float:
        """lora_alpha / r."""
        return float(self.settings["lora_alpha"]) / self.rank

    @property
    def bytes(self) -> int:
        """Size on disk, configuration included."""
        return sum((self.path / name).stat().st_size for name in (CONFIG, WEIGHTS))


def find_adapters(places: Iterable[str]) -> list[Adapter]:
    """The adapters in some places, each once.

    Args:
        places: Directories of runs, or of experiments for all their runs; ``NAME=DIR`` gives the
            adapter of a run a name.

    Raises:
        ValueError: If a place has no adapter, or a name stands for several.
    """
    found: dict[Path, Adapter] = {}
    for place in places:
        name, _, directory = place.rpartition("=")
        adapters = _adapters(Path(directory))
        if name and len(adapters) > 1:
            raise ValueError(f"{name}=... must name one run, {directory} has {len(adapters)}")
        for adapter in adapters:
            named = Adapter(name, adapter.run) if name else adapter
            found.setdefault(adapter.path, named)
    names = [adapter.name for adapter in found.values()]
    if len(set(names)) < len(names):
        raise ValueError(f"adapters must differ in their names, got {', '.join(sorted(names))}")
    return list(found.values())


def _adapters(place: Path) -> list[Adapter]:
    runs, skipped = find_runs([place])
    kept = [run for run in runs if (run.weights / WEIGHTS).is_file()]
    lora = [run for run in kept if isinstance(run.config.method, LoraMethod)]
    if not lora:
        reasons = {skip.reason for skip in skipped} or {"full fine-tuning has no adapter"}
        raise ValueError(f"{place} holds no adapter: {', '.join(sorted(reasons))}")
    return [Adapter(f"{run.record.arm}/{run.record.run_id}", run) for run in lora]


def shared_base(adapters: Iterable[Adapter]) -> RunConfig:
    """The configuration of a run whose base all adapters share.

    Raises:
        ValueError: If they were trained on different bases.
    """
    first, *others = adapters
    for other in others:
        if other.record.model_revision != first.record.model_revision:
            raise ValueError(
                "adapters must share one base, but "
                f"{first.name} was trained on {first.record.model} ({first.record.model_revision}) "
                f"and {other.name} on {other.record.model} ({other.record.model_revision})"
            )
    return first.config
