"""The weights of a stored run before and after training, tensor by tensor.

Files in the safetensors format are all that is read: no model is built, so no code that a model
directory may bring is run, and no more than one tensor at a time is in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from study.config import LoraMethod, ModelConfig
from study.probes.stored import StoredRun
from study.probes.weights.matrix import Pair
from study.records.record import Record
from study.train.models import model_directory, model_revision, weight_files

ADAPTER, ADAPTER_CONFIG = "adapter_model.safetensors", "adapter_config.json"
PEFT_PREFIX = "base_model.model."
PLAIN = {
    "peft_type": "LORA",
    "use_rslora": False,
    "use_dora": False,
    "fan_in_fan_out": False,
    "lora_bias": False,
    "bias": "none",
    "rank_pattern": {},
    "alpha_pattern": {},
    "modules_to_save": None,
}
"""What an adapter must be for W' = W + (alpha / r) B A to be all that it does."""


class Tensors:
    """Named tensors in the safetensors files of one directory."""

    def __init__(self, path: Path, files: list[Path]) -> None:
        """Reads the names.

        Raises:
            ValueError: If a file is missing or damaged.
        """
        self.path = path
        self._file_of: dict[str, Path] = {}
        for file in files:
            with _opened(file) as stored:
                self._file_of |= dict.fromkeys(stored.keys(), file)

    @property
    def names(self) -> list[str]:
        """Every tensor's name, sorted."""
        return sorted(self._file_of)

    def __contains__(self, name: str) -> bool:
        """Whether there is a tensor of this name."""
        return name in self._file_of

    def __getitem__(self, name: str) -> Tensor:
        """The tensor, as it is stored.

        Raises:
            ValueError: If there is none, or it holds NaN or infinity.
        """
        if name not in self._file_of:
            raise ValueError(f"{self.path} holds no tensor {name}")
        with _opened(self._file_of[name]) as stored:
            tensor: Tensor = stored.get_tensor(name)
        if not bool(torch.isfinite(tensor).all()):
            raise ValueError(f"{name} in {self.path} holds numbers that are not finite")
        return tensor


class Bases:
    """Base models by their configuration, each opened and checked once."""

    def __init__(self) -> None:
        """Opens nothing yet."""
        self._open: dict[tuple[str, str | None], tuple[Tensors, str]] = {}

    def of(self, run: StoredRun) -> Tensors:
        """The tensors that a run started from.

        Raises:
            ValueError: If the model directory is not usable or has changed since.
        """
        model = run.config.model
        key = model.name, model.path
        if key not in self._open:
            path = model_directory(model)
            self._open[key] = Tensors(path, weight_files(path)), model_revision(path)
        tensors, revision = self._open[key]
        if revision != run.record.model_revision:
            raise ValueError(
                f"{run.path} was trained from revision {run.record.model_revision} of {model.name},"
                f" but {tensors.path} is now {revision}"
            )
        return tensors


def trained_pairs(run: StoredRun, base: Tensors) -> Iterator[Pair]:
    """Yield every tensor that a run trained, before and after, by name.

    Under LoRA these are the adapted weights W and (alpha / r) B A, in fp64; under full fine-tuning
    all parameters, tied ones once. What training started from is the base in the run's precision.

    Raises:
        ValueError: If the stored weights are not complete, or not those that the record describes.
    """
    fp32 = masters(run.record) == "float32"
    updates = _adapter_updates if isinstance(run.config.method, LoraMethod) else _model_updates
    for name, before, update in updates(run, base):
        yield Pair(name=name, before=before, update=update, fp32_masters=fp32)


def masters(record: Record) -> str:
    """Precision of the weights that a run trained: of its adapter, or of the whole model."""
    return record.dtypes.get("adapter", record.dtypes["base"])


def tensor_count(run: StoredRun) -> int:
    """How many pairs :func:`trained_pairs` yields.

    Raises:
        ValueError: If the stored weights cannot be read.
    """
    if isinstance(run.config.method, LoraMethod):
        return len(run.record.target_modules)
    return len(_trained_model(run).names)


def _trained_model(run: StoredRun) -> Tensors:
    return Tensors(run.weights, weight_files(run.weights))


def _model_updates(run: StoredRun, base: Tensors) -> Iterator[tuple[str, Tensor, Tensor]]:
    trained = _trained_model(run)
    for name in trained.names:
        before, after = _started(base[name], run.config.model), trained[name].double()
        if before.shape != after.shape:
            raise ValueError(
                f"{name} has the shape {tuple(after.shape)} in {trained.path} but "
                f"{tuple(before.shape)} in {base.path}"
            )
        yield name, before, after - before


def _adapter_updates(run: StoredRun, base: Tensors) -> Iterator[tuple[str, Tensor, Tensor]]:
    scaling = _scaling(run)
    adapter = Tensors(run.weights, [run.weights / ADAPTER])
    parts = {f"{PEFT_PREFIX}{t}.lora_{x}.weight" for t in run.record.target_modules for x in "AB"}
    if set(adapter.names) != parts:
        odd = sorted(parts.symmetric_difference(adapter.names))[0]
        raise ValueError(
            f"{run.weights} must hold A and B of every target in the record and nothing else, "
            f"they differ in {odd}"
        )
    for target in run.record.target_modules:
        a, b = (adapter[f"{PEFT_PREFIX}{target}.lora_{x}.weight"].double() for x in "AB")
        name = f"{target}.weight"
        yield name, _started(base[name], run.config.model), scaling * (b @ a)


def _started(stored: Tensor, model: ModelConfig) -> Tensor:
    """A base tensor as training loads it, in the run's precision, then as fp64 without loss."""
    return stored.to(getattr(torch, model.dtype)).double()


def _scaling(run: StoredRun) -> float:
    """The recorded alpha / r.

    Raises:
        ValueError: If the adapter's own configuration says otherwise.
    """
    path = run.weights / ADAPTER_CONFIG
    alpha, rank = run.record.lora_alpha, run.record.lora_rank
    assert alpha is not None and rank is not None, "a LoRA run's record has both"
    stored = _read_object(path)
    for key, value in {**PLAIN, "r": rank, "lora_alpha": alpha}.items():
        if stored.get(key, value) != value:
            raise ValueError(f"{path}: {key} must be {value!r}, got {stored[key]!r}")
    return alpha / rank


def _read_object(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"{path} cannot be read as an adapter's configuration: {error}") from error


def _opened(file: Path) -> Any:
    try:
        return safe_open(file, framework="pt")
    except (OSError, SafetensorError) as error:
        raise ValueError(f"{file} cannot be read as safetensors weights: {error}") from error
