"""A lane as the libraries' own model: where its weights come from, and how they leave."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from peft import get_peft_model
from torch import Tensor

from study.config import LoraMethod
from study.train.engine import RunSpec
from study.train.evaluate import own_draws
from study.train.methods import adapter_config
from study.train.packed.model import PackedModel
from study.train.packed.weights import AdapterWeights, FullWeights, LaneWeights


def initial_weights(spec: RunSpec, model: PackedModel) -> LaneWeights:
    """The weights before step 0: PEFT's own initialisation under the run's seed.

    Args:
        spec: The run.
        model: The packed model.
    """
    method = spec.config.method
    if not isinstance(method, LoraMethod):
        return FullWeights(model)
    with _library_model(spec, model) as peft_model:
        found = {name: p.detach().clone() for name, p in peft_model.named_parameters()}
    adapters = {
        f"{target}.weight": (found[_peft_name(target, "A")], found[_peft_name(target, "B")])
        for target in spec.target_modules
    }
    return AdapterWeights(model, adapters, method.alpha / method.rank)


def trained(weights: LaneWeights) -> Iterator[tuple[str, Tensor]]:
    """What a lane trains, under the names that the library's model gives it."""
    if isinstance(weights, AdapterWeights):
        for name, (a, b) in weights.adapters.items():
            target = name.removesuffix(".weight")
            yield _peft_name(target, "A"), a
            yield _peft_name(target, "B"), b
    else:
        yield from weights.parameters.items()


@contextmanager
def exported(spec: RunSpec, model: PackedModel, weights: LaneWeights) -> Iterator[Any]:
    """A lane as an ordinary model, PEFT's under LoRA, for as long as the block lasts."""
    with _library_model(spec, model) as library_model:
        own = dict(trained(weights))
        with torch.no_grad():
            for name, parameter in library_model.named_parameters():
                if name in own:
                    parameter.copy_(own[name])
        yield library_model


def _peft_name(target: str, matrix: str) -> str:
    return f"base_model.model.{target}.lora_{matrix}.default.weight"


@contextmanager
def _library_model(spec: RunSpec, model: PackedModel) -> Iterator[Any]:
    """The library's model of a run: with a fresh adapter, or with a copy of all parameters."""
    config = adapter_config(spec.config.method, spec.target_modules)
    if config is None:
        yield model.full_copy()
        return
    with own_draws(spec.config.seed):
        peft_model = get_peft_model(model.template, config)
    try:
        yield peft_model
    finally:
        peft_model.unload()
        model.template.requires_grad_(False)
