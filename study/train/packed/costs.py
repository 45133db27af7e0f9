"""How many lanes go through the model at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from study.train.packed.evaluation import evaluation_rows
from study.train.packed.lane import Lane

CPU_ROWS = 256
"""Completions of a pass on a CPU: enough to hide what a call costs besides arithmetic, few enough
for keys, values and activations to stay in its caches."""
GPU_ROWS = 4096
"""On a GPU the launch of a kernel costs as much as thousands of rows."""
MERGED_BYTES = 256 * 2**20
"""Most memory for the merged weights of the lanes of a pass, beside at least one lane's."""


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
        together = [*chunk, lane]
        merged = sum(member.weights.merged_bytes for member in together)
        if chunk and (sum(map(rows, together)) > most or merged > MERGED_BYTES):
            yield chunk
            together = [lane]
        chunk = together
    if chunk:
        yield chunk
