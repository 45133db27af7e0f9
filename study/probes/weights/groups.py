"""Matrices of one module type or depth summed up, their null draw by draw."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from study.probes.weights.matrix import MatrixResult, Statistics
from study.probes.weights.null import NULLS, null_range
from study.probes.weights.sparsity import pooled

WEIGHED = "unchanged_"
"""Statistics that are shares of weights: means over matrices weigh them by their size."""


def module_type(name: str) -> str:
    """The last part of a tensor's name: ``q_proj`` of ``model.layers.3.self_attn.q_proj.weight``;
    with ``.bias`` for a bias.
    """
    module, _, leaf = name.rpartition(".")
    last = module.rpartition(".")[2]
    return last if leaf == "weight" else f"{last}.{leaf}"


def depth(name: str) -> int | None:
    """The layer that a tensor is in, from 0; None if it is in none."""
    found = re.search(r"\.(\d+)\.", name)
    return int(found.group(1)) if found else None


def by_module(results: Sequence[MatrixResult]) -> dict[str, list[MatrixResult]]:
    """Matrices by module type, in the order in which types first appear."""
    return _grouped(results, lambda result: module_type(result.name))


def by_depth(results: Sequence[MatrixResult]) -> dict[str, list[MatrixResult]]:
    """Matrices by layer, ascending; JSON wants texts as keys."""
    ordered = sorted(results, key=lambda result: depth(result.name) or 0)
    return _grouped(ordered, lambda result: str(depth(result.name)))


def _grouped(
    results: Iterable[MatrixResult], key: Callable[[MatrixResult], str]
) -> dict[str, list[MatrixResult]]:
    groups: dict[str, list[MatrixResult]] = defaultdict(list)
    for result in results:
        groups[key(result)].append(result)
    return dict(groups)


def summarized(results: Sequence[MatrixResult]) -> dict[str, Any]:
    """Sum up matrices as a JSON object.

    A statistic of a group is the mean over its matrices that have one, in the observed update and
    in each draw of the null; the null's range is that of these means.

    Args:
        results: At least one.

    Returns:
        ``matrices`` (how many), ``counts``, ``observed`` and ``null``.
    """
    sizes = [result.unchanged.parameters for result in results]
    draws = {
        kind: [
            averaged(draw, sizes)
            for draw in zip(*(result.null[kind] for result in results), strict=True)
        ]
        for kind in NULLS
    }
    return {
        "matrices": len(results),
        "counts": asdict(pooled(result.unchanged for result in results)),
        "observed": averaged([result.observed for result in results], sizes),
        "null": {kind: _ranges(found) for kind, found in draws.items()},
    }


def averaged(rows: Sequence[Statistics], sizes: Sequence[int]) -> Statistics:
    """Means over matrices, by statistic; None where no matrix has a value.

    Args:
        rows: Statistics of each matrix; all have the same names.
        sizes: Their numbers of weights.
    """
    means: Statistics = {}
    for name in rows[0]:
        pairs = [
            (value, size if name.startswith(WEIGHED) else 1)
            for value, size in ((row[name], n) for row, n in zip(rows, sizes, strict=True))
            if value is not None
        ]
        weight = sum(size for _, size in pairs)
        means[name] = sum(value * size for value, size in pairs) / weight if pairs else None
    return means


def _ranges(draws: Sequence[Statistics]) -> dict[str, dict[str, float] | None]:
    """The null's range of every statistic."""
    found = {name: null_range([draw[name] for draw in draws]) for name in draws[0]}
    return {name: None if known is None else asdict(known) for name, known in found.items()}
