"""A lane as the libraries' own model: where its weights come from, and how they leave."""

from __future__ import annotations

import copy
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

Adapters = dict[str, tuple[Tensor, Tensor]]
"""A and B by the name of the weight that they adapt."""


class HfModels:
    """The libraries' models of a pack's runs.

    PEFT takes longer to build a model than a run of a small one takes for a few steps. So there is
    one for each kind of adapter, around the base's parameters, and runs of equal seed and shape
    share one initialisation.
    """

    def __init__(self, model: PackedModel) -> None:
        """Builds nothing yet."""
        self._model = model
        self._adapted: dict[tuple[object, ...], Any] = {}
        self._initial: dict[tuple[object, ...], Adapters] = {}

    def initial_weights(self, spec: RunSpec) -> LaneWeights:
        """The weights before step 0: PEFT's own initialisation under the run's seed."""
        method = spec.config.method
        if not isinstance(method, LoraMethod):
            return FullWeights(self._model)
        key = (spec.config.seed, method.rank, *spec.target_modules)
        if key not in self._initial:
            self._initial[key] = self._fresh_adapters(spec)
        return AdapterWeights(self._model, self._initial[key], method.alpha / method.rank)

    @contextmanager
    def exported(self, spec: RunSpec, weights: LaneWeights) -> Iterator[Any]:
        """A lane as an ordinary model, PEFT's under LoRA, for as long as the block lasts."""
        hf_model = self._hf_model(spec)
        own = dict(trained(weights))
        with torch.no_grad():
            for name, parameter in hf_model.named_parameters():
                if name in own:
                    parameter.copy_(own[name])
        yield hf_model

    def _fresh_adapters(self, spec: RunSpec) -> Adapters:
        built = self._build(spec)
        found = {name: p.detach().clone() for name, p in built.named_parameters()}
        return {
            f"{target}.weight": (found[_peft_name(target, "A")], found[_peft_name(target, "B")])
            for target in spec.target_modules
        }

    def _hf_model(self, spec: RunSpec) -> Any:
        if not isinstance(spec.config.method, LoraMethod):
            return self._model.full_copy()
        key = _adapter_key(spec)
        if key not in self._adapted:
            self._adapted[key] = self._build(spec)
        return self._adapted[key]

    def _build(self, spec: RunSpec) -> Any:
        """A PEFT model with a fresh adapter, around the base's parameters."""
        template = self._model.template
        shared = copy.deepcopy(template, {id(p): p for p in template.parameters()})
        with own_draws(spec.config.seed):
            return get_peft_model(shared, adapter_config(spec.config.method, spec.target_modules))


def _adapter_key(spec: RunSpec) -> tuple[object, ...]:
    """Equal for runs whose adapters differ in nothing but their weights."""
    method = spec.config.method
    assert isinstance(method, LoraMethod)
    return (method.rank, method.alpha, *spec.target_modules)


def trained(weights: LaneWeights) -> Iterator[tuple[str, Tensor]]:
    """What a lane trains, under the names that the library's model gives it."""
    if isinstance(weights, AdapterWeights):
        for name, (a, b) in weights.adapters.items():
            target = name.removesuffix(".weight")
            yield _peft_name(target, "A"), a
            yield _peft_name(target, "B"), b
    else:
        yield from weights.parameters.items()


def _peft_name(target: str, matrix: str) -> str:
    return f"base_model.model.{target}.lora_{matrix}.default.weight"
