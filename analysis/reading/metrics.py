"""The frame of measurements of an experiment: what was parsed before, and what is new."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.reading.cache import Cache, digest
from analysis.reading.files import content_of
from analysis.reading.measurements import Measurements, Parsed, gathered, parse

BATCH_BYTES = 32 << 20
"""So much text is parsed at a time."""


def read_metrics(path: Path, runs: Sequence[dict[str, Any]]) -> tuple[pd.DataFrame, dict[str, int]]:
    """The measurements of an experiment.

    Args:
        path: The experiment directory.
        runs: ``arm`` and ``run_id`` of the runs wanted, each run id once.

    Returns:
        ``run_id, step, metric, value``, in the order of ``runs``, by metric and line within a run;
        run_id and metric are categories. And the unreadable lines by run id, where there are any.
    """
    cache = Cache(path)
    reading = _Reading(path, cache)
    for run in runs:
        reading.add(f"{run['arm']}/{run['run_id']}")
    parts = reading.finish()
    found, names = gathered(parts), list(reading.names)
    if not cache.holds(reading.digests):
        cache.write(reading.digests, parts, names, found)
    ids = [str(run["run_id"]) for run in runs]
    broken = {run_id: p.broken for run_id, p in zip(ids, parts, strict=True) if p.broken}
    return _frame(found, names, ids, [part.count for part in parts]), broken


class _Reading:
    """Goes through the runs of an experiment, and keeps what is parsed rather than what is read."""

    def __init__(self, path: Path, cache: Cache) -> None:
        self._path = path
        self._cache = cache
        self.names = {name: index for index, name in enumerate(cache.names)}
        self.digests: dict[str, str] = {}
        """Hash of each run's file, by its place."""
        self._parts: dict[str, Parsed] = {}
        self._waiting: dict[str, bytes] = {}
        self._waiting_bytes = 0

    def add(self, place: str) -> None:
        """Read the file of the next run."""
        content = content_of(f"{self._path}/{place}/metrics.jsonl")
        self.digests[place] = digest(content)
        known = self._cache.get(place, self.digests[place])
        if known is not None:
            self._parts[place] = known
            return
        self._waiting[place] = content
        self._waiting_bytes += len(content)
        if self._waiting_bytes > BATCH_BYTES:
            self._parse()

    def _parse(self) -> None:
        parsed = parse(list(self._waiting.values()), self.names)
        self._parts |= zip(self._waiting, parsed, strict=True)
        self._waiting, self._waiting_bytes = {}, 0

    def finish(self) -> list[Parsed]:
        """What was found, run by run."""
        if self._waiting:
            self._parse()
        return [self._parts.pop(place) for place in self.digests]


def _frame(
    found: Measurements, names: list[str], ids: list[str], counts: list[int]
) -> pd.DataFrame:
    """Categories in place of text: ten thousand runs hold twenty million measurements."""
    in_order = sorted(names)
    place = np.array([in_order.index(name) for name in names], np.int16)
    code = np.int16 if len(ids) <= np.iinfo(np.int16).max else np.int32
    runs = np.repeat(np.arange(len(ids)).astype(code), counts)
    return pd.DataFrame(
        {
            "run_id": pd.Categorical.from_codes(runs, pd.Index(ids, dtype=object)),
            "step": found.step,
            "metric": pd.Categorical.from_codes(
                place[found.metric], pd.Index(in_order, dtype=object)
            ),
            "value": found.value,
        },
        copy=False,
    )
