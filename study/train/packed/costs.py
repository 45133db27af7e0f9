"""How many lanes go through the model at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from study.train.packed.evaluation import evaluation_rows
from study.train.packed.lane import Lane

CPU_ROWS = 512
"""Completions of a pass on a CPU: enough to hide what a call costs besides arithmetic, few enough
for keys, values and activations to stay near its caches."""
GPU_ROWS = 4096
"""On a GPU the launch of a kernel costs as much as thousands of rows."""


def step_chunks(lanes: Sequence[Lane]) -> Iterator[list[Lane]]:
    """Lanes in the groups that take their steps together."""
    return _chunks(lanes, lambda lane: lane.rows)


def evaluation_chunks(lanes: Sequence[Lane]) -> Iterator[list[Lane]]:
    """Lanes in the groups that are evaluated together."""
    return _chunks(lanes, evaluation_rows)


def _chunks(lanes: Sequence[Lane], rows: Callable[[Lane], int]) -> Iterator[list[Lane]]:
    most = GPU_ROWS if torch.cuda.is_available() else CPU_ROWS
    chunk: list[Lane] = []
    for lane in lanes:
        if chunk and sum(map(rows, [*chunk, lane])) > most:
            yield chunk
            chunk = []
        chunk.append(lane)
    if chunk:
        yield chunk
