"""``metrics.jsonl`` of many runs -> measurements in columns.

Arrow reads the lines of many runs at once, some thirty times faster than line by line. Whatever it
might not read exactly as we would (a line that was cut short, ``NaN``, a value that is a number
here and text there) is read line by line instead, file by file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pa_json
from numpy.typing import NDArray

from analysis.reading.files import is_integer, json_lines

STEP = "step"
BLOCK_BYTES = 16 << 20
"""Arrow's unit of reading; a file with a longer line is read line by line."""


@dataclass(frozen=True)
class Measurements:
    """Measurements in columns of equal length, one run after another."""

    metric: NDArray[np.int16]
    """Index of the metric's name."""
    step: NDArray[np.int64]
    value: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.value)


@dataclass(frozen=True)
class Parsed:
    """What one file holds."""

    source: Measurements
    """Those of a whole batch of files."""
    rows: slice
    """Its own among them: by name of the metric, and by line within a metric."""
    broken: int
    """Lines that are no JSON object."""

    @property
    def count(self) -> int:
        """Number of measurements."""
        return int(self.rows.stop - self.rows.start)


def parse(contents: Sequence[bytes], names: dict[str, int]) -> list[Parsed]:
    """Read the measurements of a batch of files.

    A measurement is a number other than a truth value, on a line with an integer ``step``.

    Args:
        contents: Content of each ``metrics.jsonl``.
        names: Index by name of a metric; new names are added.
    """
    table = _table(contents)
    if table is not None:
        return _from_table(table, [_lines(content) for content in contents], names)
    if len(contents) > 1:
        return [parsed for content in contents for parsed in parse([content], names)]
    rows, broken = json_lines(contents[0])
    found = _from_rows(rows, names)
    return [Parsed(found, slice(0, len(found)), broken)]


def gathered(parts: Sequence[Parsed]) -> Measurements:
    """The measurements of these files, one file after another."""
    first = parts[0].source if parts else NOTHING
    ends = [(part.rows.start, part.rows.stop) for part in parts]
    whole = all(part.source is first for part in parts) and (
        [0, *(stop for _, stop in ends)] == [*(start for start, _ in ends), len(first)]
    )
    if whole:  # nothing has changed since they were kept: no copy of hundreds of megabytes
        return first
    return Measurements(
        np.concatenate([part.source.metric[part.rows] for part in parts]),
        np.concatenate([part.source.step[part.rows] for part in parts]),
        np.concatenate([part.source.value[part.rows] for part in parts]),
    )


NOTHING = Measurements(np.empty(0, np.int16), np.empty(0, np.int64), np.empty(0, np.float64))


def _lines(content: bytes) -> int:
    return content.count(b"\n") + (bool(content) and not content.endswith(b"\n"))


def _table(contents: Iterable[bytes]) -> pa.Table | None:
    """The lines as a table, a row a line; None if Arrow may read them otherwise than we would.

    Arrow is shown nothing but lines that begin and end as an object does: on other text it can
    crash (``null``) or take several lines for one.
    """
    text = b"".join(c if c.endswith(b"\n") or not c else c + b"\n" for c in contents)
    if not text:
        return pa.table({})
    lines = text.count(b"\n")
    opened = text.startswith(b"{") + text.count(b"\n{")
    if opened != lines or text.count(b"}\n") != lines:
        return None
    options = pa_json.ReadOptions(block_size=BLOCK_BYTES)
    try:
        table = pa_json.read_json(pa.BufferReader(text), read_options=options)
        names = table.column_names
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    whole_steps = STEP not in names or pa.types.is_integer(table[STEP].type)
    return table if table.num_rows == lines and whole_steps else None


def _from_table(table: pa.Table, lines: list[int], names: dict[str, int]) -> list[Parsed]:
    if STEP not in table.column_names:
        return [Parsed(NOTHING, slice(0, 0), 0) for _ in lines]
    file_of = np.repeat(np.arange(len(lines), dtype=np.int32), lines)
    step, stepped = _numbers(table[STEP])
    files, metrics, rows, values = [], [], [], []
    for name in sorted(set(table.column_names) - {STEP}):
        if pa.types.is_integer(table[name].type) or pa.types.is_floating(table[name].type):
            value, valid = _numbers(table[name])
            own = np.flatnonzero(valid & stepped)
            files.append(file_of[own])
            metrics.append(np.full(len(own), names.setdefault(name, len(names)), np.int16))
            rows.append(own)
            values.append(value[own].astype(np.float64))
    if not files:
        return [Parsed(NOTHING, slice(0, 0), 0) for _ in lines]
    file = np.concatenate(files)
    order = np.argsort(file, kind="stable")
    found = Measurements(
        np.concatenate(metrics)[order],
        step[np.concatenate(rows)[order]].astype(np.int64),
        np.concatenate(values)[order],
    )
    ends = np.cumsum(np.bincount(file, minlength=len(lines))).tolist()
    return [Parsed(found, slice(a, b), 0) for a, b in zip([0, *ends[:-1]], ends, strict=True)]


def _numbers(column: pa.ChunkedArray) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Values, and where there is one."""
    valid = column.is_valid().to_numpy()
    return column.fill_null(0).to_numpy(), valid


def _from_rows(rows: Sequence[Mapping[str, Any]], names: dict[str, int]) -> Measurements:
    found = [
        (name, row[STEP], float(value))
        for row in rows
        if is_integer(row.get(STEP))
        for name, value in row.items()
        if name != STEP and isinstance(value, int | float) and not isinstance(value, bool)
    ]
    found.sort(key=lambda triple: triple[0])
    return Measurements(
        np.array([names.setdefault(name, len(names)) for name, _, _ in found], np.int16),
        np.array([step for _, step, _ in found], np.int64),
        np.array([value for _, _, value in found], np.float64),
    )
