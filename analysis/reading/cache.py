"""Measurements that were parsed before: ``<experiment>/.analysis/metrics.parquet``.

What was parsed is used for a run as long as the bytes of its ``metrics.jsonl`` are the same, by
their hash. A lighter scheme (size and times of a file) would spare reading the bytes, and be wrong
where a file is replaced by one of equal size within a tick of the clock, or restored with its old
times. Records are small, and always read.

The cache is a convenience: one that cannot be read, or is of another version, is written anew, and
where none can be written, reading works without.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.reading.measurements import Measurements, Parsed

FILE = Path(".analysis") / "metrics.parquet"
KEY, DIGEST_KEY = b"lora-rl-study measurements", b"lora-rl-study measurements sha256"
VERSION = 1
"""Raised whenever the same bytes are to be read otherwise."""
COLUMNS = ("metric", "step", "value")
UNUSABLE = (OSError, pa.ArrowException, ValueError, KeyError, TypeError)
"""What reading raises where there is no cache, or one that is damaged or not ours."""


def digest(content: bytes) -> str:
    """Hash of a file's content."""
    return hashlib.sha256(content).hexdigest()


class Cache:
    """What was parsed before, by place of a run (``arm/run_id``)."""

    def __init__(self, path: Path) -> None:
        self._file = path / FILE
        self.names: list[str] = []
        """Names of metrics, by index."""
        self._runs: dict[str, tuple[str, Parsed]] = {}
        try:
            self._read()
        except UNUSABLE:
            self.names, self._runs = [], {}

    def _read(self) -> None:
        with pq.ParquetFile(self._file, page_checksum_verification=True) as file:
            metadata = file.metadata.metadata or {}
            if digest(metadata[KEY]).encode() != metadata[DIGEST_KEY]:
                return
            facts = json.loads(metadata[KEY])
            if facts["version"] != VERSION:
                return
            found = Measurements(*(file.read([name])[name].to_numpy() for name in COLUMNS))
        start = 0
        for place, own, count, broken in facts["runs"]:
            self._runs[place] = own, Parsed(found, slice(start, start + count), broken)
            start += count
        self.names = facts["names"]
        if start != len(found) or (start and int(found.metric.max()) >= len(self.names)):
            raise ValueError("the table and what is said of it do not belong together")

    def get(self, place: str, own: str) -> Parsed | None:
        """What was parsed of a run, if its file has this hash still."""
        known, parsed = self._runs.get(place, ("", None))
        return parsed if known == own else None

    def holds(self, digests: Mapping[str, str]) -> bool:
        """Whether it holds exactly these runs, in this order."""
        return list(digests.items()) == [(place, own) for place, (own, _) in self._runs.items()]

    def write(
        self,
        digests: Mapping[str, str],
        parts: list[Parsed],
        names: list[str],
        found: Measurements,
    ) -> None:
        """Keep what was parsed, in the order of ``digests``; in silence if it cannot be written."""
        runs: list[Any] = [
            (place, own, part.count, part.broken)
            for (place, own), part in zip(digests.items(), parts, strict=True)
        ]
        facts = json.dumps({"version": VERSION, "names": names, "runs": runs}).encode()
        table = pa.table({name: getattr(found, name) for name in COLUMNS})
        draft = self._file.with_name(f".{os.getpid()}.parquet")
        try:
            draft.parent.mkdir(exist_ok=True)
            with pq.ParquetWriter(
                draft,
                table.schema,
                compression="none",  # noise does not compress
                use_dictionary=["metric", "step"],
                write_statistics=False,
                write_page_checksum=True,
                store_schema=False,
            ) as writer:
                writer.write_table(table)
                writer.add_key_value_metadata({KEY: facts, DIGEST_KEY: digest(facts).encode()})
            os.replace(draft, self._file)
        except OSError:
            with suppress(OSError):
                draft.unlink()
