"""Rows of a foreign sweep -> arms: what a run is apart from its learning rate and its seed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from study.plan.arms import flatten


@dataclass(frozen=True)
class Trait:
    """A column in which arms may differ besides method and rank."""

    column: str
    key: str
    """Its key in the config of a run."""
    suffix: Callable[[Any], str]
    """The value as it ends an arm's name."""


def slug(value: object) -> str:
    """``qwen3-8b`` for ``Qwen/Qwen3-8B``: a value as part of a name."""
    text = ",".join(value) if isinstance(value, list) else str(value)
    text = text.rstrip("/").rpartition("/")[2].lower()
    return re.sub(r"[^a-z0-9.]+", "-", text).strip("-.")[:40] or "other"


def _after(letter: str) -> Callable[[Any], str]:
    return lambda value: f"{letter}{value:g}"


TRAITS = (
    Trait("model", "model.name", slug),
    Trait("task", "task.name", slug),
    Trait("objective", "objective.name", slug),
    Trait("dtypes.base", "model.dtype", slug),
    Trait("dtypes.adapter", "model.adapter_dtype", slug),
    Trait("dtypes.optimizer", "model.optimizer_dtype", slug),
    Trait("target_modules", "method.target_modules", slug),
    Trait("lora_alpha", "method.lora_alpha", _after("a")),
    Trait("alpha_rule", "method.alpha_rule", slug),
    Trait("prompts_per_step", "objective.prompts_per_step", _after("b")),
    Trait("num_generations", "objective.num_generations", _after("g")),
    Trait("steps_planned", "objective.steps", _after("s")),
    Trait("model_revision", "model.revision", slug),
    Trait("hidden_size", "model.hidden_size", _after("h")),
    Trait("eval_prompts", "evaluation.eval_prompts", _after("n")),
    Trait("final_window", "evaluation.final_window", _after("w")),
)
ALWAYS_NAMED = ("model", "task", "objective")
"""Traits that name an arm wherever they vary, though rank or another trait may imply them."""


@dataclass(frozen=True)
class Arms:
    """The arms of a foreign sweep."""

    names: list[str]
    """Arm of each row."""
    configs: dict[str, dict[str, Any]]
    """What is known of the config of its runs, by arm."""
    factors: list[str]
    """Config keys in which arms differ by design; what the method alone implies (a precision that
    only full fine-tuning has) is none, so that it stays visible as a confound."""

    def factor_values(self, arm: str) -> dict[str, Any]:
        """The arm's value of each factor that it has."""
        values = flatten(self.configs[arm])
        inside = tuple(f"{factor}." for factor in self.factors)
        return {k: v for k, v in values.items() if k in self.factors or k.startswith(inside)}


def group(rows: pd.DataFrame) -> Arms:
    """Gather rows into arms; they are named after method and rank, then whatever else varies.

    Args:
        rows: Resolved rows: ``method``, ``lora_rank``, and whichever traits are mapped. A column
            ``arm`` names the arms instead.

    Raises:
        ValueError: if the rows of one named arm differ in what makes an arm.
    """
    traits = [*TRAITS, *_own_factors(rows)]
    traits = [trait for trait in traits if trait.column in rows]
    cells = [{t.column: _value(row[t.column]) for t in traits} for row in rows.to_dict("records")]
    bases = [_base(row) for row in rows.to_dict("records")]
    named = _naming(traits, cells, bases)
    keys = [
        (base, *(_text(cell[t.column]) for t in named))
        for base, cell in zip(bases, cells, strict=True)
    ]
    if "arm" in rows:
        names = [str(arm) for arm in rows["arm"]]
    else:
        names = _names(keys, [_name(b, c, named) for b, c in zip(bases, cells, strict=True)])
    configs: dict[str, dict[str, Any]] = {}
    for name, row, cell in zip(names, rows.to_dict("records"), cells, strict=True):
        config = _config(row, cell, traits)
        if configs.setdefault(name, config) != config:
            _refuse(name, configs[name], config)
    return Arms(names, configs, _factors(configs, named))


def _own_factors(rows: pd.DataFrame) -> list[Trait]:
    columns = [str(c) for c in rows.columns if str(c).startswith("factors.")]
    return [Trait(column, column, slug) for column in columns]


def _value(value: Any) -> Any:
    return None if not isinstance(value, list) and pd.isna(value) else value


def _text(value: Any) -> str:
    return json.dumps(value)


def _base(row: dict[Any, Any]) -> str:
    rank = _value(row["lora_rank"])
    return f"{row['method']}-r{rank:g}" if rank is not None else str(row["method"])


def _naming(traits: list[Trait], cells: list[dict[str, Any]], bases: list[str]) -> list[Trait]:
    """The traits that vary and that method, rank and the traits before them do not imply."""
    named: list[Trait] = []
    for trait in traits:
        values = [_text(cell[trait.column]) for cell in cells]
        known = [
            (base, *(_text(cell[t.column]) for t in named))
            for base, cell in zip(bases, cells, strict=True)
        ]
        implied = len(set(zip(known, values, strict=True))) == len(set(known))
        varies = len(set(values)) > 1
        if varies and (not implied or trait.column in ALWAYS_NAMED):
            named.append(trait)
    return named


def _name(base: str, cell: dict[str, Any], named: list[Trait]) -> str:
    parts = [t.suffix(cell[t.column]) for t in named if cell[t.column] is not None]
    return "-".join([base, *parts])


def _names(keys: list[tuple[str, ...]], wished: list[str]) -> list[str]:
    """The wished names, made distinct where two keys wish for one."""
    taken: dict[str, tuple[str, ...]] = {}
    names: list[str] = []
    for key, wish in zip(keys, wished, strict=True):
        name, count = wish, 1
        while taken.setdefault(name, key) != key:
            count += 1
            name = f"{wish}-{count}"
        names.append(name)
    return names


def _config(row: dict[Any, Any], cell: dict[str, Any], traits: list[Trait]) -> dict[str, Any]:
    """What is known of a run's config; a fact that its source lacks is left out."""
    config: dict[str, Any] = {"method": {"name": row["method"]}}
    if _value(row["lora_rank"]) is not None:
        config["method"]["rank"] = int(row["lora_rank"])
    for trait in traits:
        value = cell[trait.column]
        section, _, key = trait.key.partition(".")
        if value is not None:
            config.setdefault(section, {})[key] = value
    return config


def _factors(configs: dict[str, dict[str, Any]], named: list[Trait]) -> list[str]:
    flat = [flatten(config) for config in configs.values()]
    varying = {
        key
        for values in flat
        for key in values
        if len({_text(other.get(key)) for other in flat}) > 1
    }
    if "method.name" in varying:
        method = ["method"]
    else:
        method = sorted(key for key in varying if key.startswith("method."))
    others = [t.key for t in named if t.key in varying and not t.key.startswith("method.")]
    return [*method, *others]


def _refuse(name: str, one: dict[str, Any], other: dict[str, Any]) -> None:
    flat, again = flatten(one), flatten(other)
    key = next(k for k in {**flat, **again} if flat.get(k) != again.get(k))
    raise ValueError(
        f"runs of one arm differ in learning rate and seed alone: {name} has {key}="
        f"{flat.get(key)!r} and {again.get(key)!r}"
    )
