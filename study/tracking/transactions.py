"""Reads the file that W&B writes for a run: LevelDB's log format after a header of seven bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HEADER, BLOCK, CHUNK_HEADER = 7, 32768, 7
WHOLE, LAST = 1, 4
"""Kinds of chunks that complete a record."""


def records(file: Path) -> Iterator[Any]:
    """The complete records of a ``.wandb`` file, as W&B's own messages; an open file has fewer."""
    from wandb.proto import wandb_internal_pb2

    data, position, parts = file.read_bytes(), HEADER, b""
    while position + CHUNK_HEADER <= len(data):
        room = BLOCK - position % BLOCK
        if room < CHUNK_HEADER:
            position += room
            continue
        _, length, kind = struct.unpack("<IHB", data[position : position + CHUNK_HEADER])
        position += CHUNK_HEADER
        if position + length > len(data):
            return
        parts += data[position : position + length]
        position += length
        if kind in (WHOLE, LAST):
            message = wandb_internal_pb2.Record()
            message.ParseFromString(parts)
            yield message
            parts = b""


def rows_of_ended(file: Path) -> int | None:
    """Number of history rows in a file that is complete; None while its end is not written."""
    rows, ended = 0, False
    for record in records(file):
        kind = record.WhichOneof("record_type")
        rows += kind == "history"
        ended = ended or kind == "exit"
    return rows if ended else None
