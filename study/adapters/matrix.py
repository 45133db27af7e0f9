"""Many adapters on many tasks, on one frozen base, in packed passes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from scipy.stats import binomtest

from study.adapters.stored import Adapter, shared_base
from study.adapters.updates import Matrices, concatenated, matrices
from study.config import ArithmeticTaskConfig, TaskConfig
from study.tasks.base import Problem
from study.tasks.loading import load_task
from study.train.evaluate import evaluation_seed
from study.train.models import (
    check_revision,
    end_token_ids,
    hash_parameters,
    load_model,
    load_tokenizer,
)
from study.train.packed.model import PackedModel
from study.train.packed.rollout import Choice, Request, complete
from study.train.packed.support import refusal
from study.train.packed.weights import AdapterWeights, LaneWeights
from study.train.quiet import quiet_libraries
from study.train.rewards import Scorer

LEVEL = 0.9
"""Of intervals."""
ROWS = 512
"""Completions of a pass."""
NONE = "none"
"""The row of the base without any adapter."""


@dataclass(frozen=True)
class Row:
    """One row of the matrix: a weighted sum of adapters, the empty one being the base."""

    name: str
    parts: tuple[tuple[float, Adapter], ...] = ()


@dataclass(frozen=True)
class Column:
    """One column: a task and the prompts of it that every row completes."""

    config: TaskConfig
    problems: list[Problem]
    prompt_ids: list[list[int]]


def evaluate(
    rows: Sequence[Row],
    tasks: Sequence[TaskConfig],
    prompts: int,
    told: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure every row on every task, sampled at training temperature and greedy.

    Prompts are of the role ``report``, which no run trains on. Draws of a cell depend on its task
    alone, so that rows differ by their weights.

    Args:
        rows: Sums of adapters that share a base.
        tasks: Tasks.
        prompts: Prompts of each task.
        told: Told how many completions a pass has brought.

    Returns:
        JSON-able: ``model``, ``model_revision``, ``base_hash`` (of every tensor of the base, the
        same before and after), ``prompts``, ``level`` and ``cells``: ``adapter task accuracy low
        high greedy_accuracy``, the interval being Wilson's over prompts, of this one adapter.

    Raises:
        ValueError: If adapters have different bases, the base has changed, or its architecture is
            none that packed passes compute.
        RuntimeError: If the base is not what it was at the end.
    """
    adapters = [adapter for row in rows for _, adapter in row.parts]
    run = shared_base(adapters)
    with quiet_libraries():
        bench = _Bench(adapters[0], tasks, prompts)
        cells = bench.measure(rows, told)
    return {
        "model": run.model.name,
        "model_revision": adapters[0].record.model_revision,
        "base_hash": bench.base_hash,
        "prompts": prompts,
        "level": LEVEL,
        "rows": [row.name for row in rows],
        "tasks": [task.label for task in tasks],
        "cells": cells,
    }


def task_of(name: str, like: TaskConfig) -> TaskConfig:
    """The arithmetic task of a family, other settings as in ``like``.

    Raises:
        ValueError: If ``like`` is no arithmetic task, or there is no such family.
    """
    if not isinstance(like, ArithmeticTaskConfig):
        raise ValueError(f"tasks are named by arithmetic families, got {name} beside {like.label}")
    config = dataclasses.replace(like, family=name)
    load_task(config)
    return config


class _Bench:
    """One base, with every task's prompts tokenized."""

    def __init__(self, adapter: Adapter, tasks: Sequence[TaskConfig], prompts: int) -> None:
        run, self._any = adapter.config, adapter
        check_revision(run.model, adapter.record.model_revision)
        model = load_model(run.model)
        self._tokenizer = load_tokenizer(run.model)
        self._columns = [self._column(task, prompts) for task in tasks]
        self._length = max(task.max_completion_length for task in tasks)
        longest = max(len(ids) for column in self._columns for ids in column.prompt_ids)
        if reason := refusal(model, longest + self._length):
            raise ValueError(f"adapters are evaluated in packed passes, but {reason}")
        self._end = end_token_ids(model, self._tokenizer)
        self._model = PackedModel(model, frozenset())
        self._temperature = run.objective.temperature
        self.base_hash = hash_parameters(self._model.base.items())

    def _column(self, config: TaskConfig, prompts: int) -> Column:
        problems = load_task(config).problems("report", prompts)
        ids = self._tokenizer([problem.prompt for problem in problems])["input_ids"]
        return Column(config, problems, ids)

    def measure(self, rows: Sequence[Row], told: Callable[[int], None]) -> list[dict[str, Any]]:
        """Every cell, row by row; several cells share a pass."""
        pairs = [(self._weights(row), row, c) for row in rows for c in self._columns]
        size = max(1, ROWS // (2 * len(self._columns[0].problems)))
        cells = []
        for start in range(0, len(pairs), size):
            chunk = pairs[start : start + size]
            found = complete(
                self._model, [self._request(w, c) for w, _, c in chunk], self._end, self._length
            )
            for (_, row, column), completions in zip(chunk, found, strict=True):
                cells.append(self._judged(row, column, completions.ids))
                told(len(completions.ids))
        if hash_parameters(self._model.base.items()) != self.base_hash:
            raise RuntimeError("the base must be bit-identical after every adapter, and is not")
        return cells

    def _weights(self, row: Row) -> LaneWeights:
        summands = row.parts or ((0.0, self._any),)  # the base is a sum with weight nought
        parts = [(weight, own.scaling, matrices(own)) for weight, own in summands]
        adapters: Matrices = concatenated(parts)
        named = {f"{target}.weight": pair for target, pair in adapters.items()}
        return AdapterWeights(self._model, named, 1.0)

    def _request(self, weights: LaneWeights, column: Column) -> Request:
        device = self._model.template.device
        draws = torch.Generator(device).manual_seed(evaluation_seed(0, len(column.problems)))
        return Request(
            weights=weights,
            prompts=column.prompt_ids,
            choices=[Choice(1, draws), Choice(1, None)],
            temperature=self._temperature,
            entropy=False,
        )

    def _judged(self, row: Row, column: Column, ids: Sequence[list[int]]) -> dict[str, Any]:
        limit, count = column.config.max_completion_length, len(column.problems)
        texts = self._tokenizer.batch_decode([i[:limit] for i in ids], skip_special_tokens=True)
        score = Scorer(load_task(column.config))
        sampled, greedy = (
            sum(s.correct for s in score(column.problems, half))
            for half in (texts[:count], texts[count:])
        )
        interval = binomtest(sampled, count).proportion_ci(LEVEL, method="wilson")
        return {
            "adapter": row.name,
            "task": column.config.label,
            "accuracy": sampled / count,
            "low": float(interval.low),
            "high": float(interval.high),
            "greedy_accuracy": greedy / count,
        }
