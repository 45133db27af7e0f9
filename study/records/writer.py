"""Streams of a running attempt: metrics, evaluations, a few completions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from study.records.files import append_line

SAMPLES_PER_EVALUATION = 8

EVALUATIONS = pa.schema(
    [
        ("step", pa.int32()),
        ("prompt_id", pa.string()),
        ("sample", pa.string()),
        ("correct", pa.bool_()),
        ("greedy_correct", pa.bool_()),
        ("tokens", pa.int32()),
    ]
)


class RunWriter:
    """Writes one attempt's files; ``close`` completes ``evaluations.parquet``."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._parquet = pq.ParquetWriter(directory / "evaluations.parquet", EVALUATIONS)

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Append a line to ``metrics.jsonl``.

        JSON has no NaN or infinity: such values become null and are counted in
        ``health/nonfinite``.
        """
        finite = {k: v if math.isfinite(v) else None for k, v in values.items()}
        line: dict[str, float | int | None] = {"step": step, **finite}
        nonfinite = sum(v is None for v in finite.values())
        if nonfinite:
            line["health/nonfinite"] = nonfinite
        append_line(self.directory / "metrics.jsonl", line)

    def evaluation(
        self,
        step: int,
        prompt_ids: Sequence[str],
        samples: Sequence[str],
        correct: Sequence[bool],
        greedy_correct: Sequence[bool],
        tokens: Sequence[int],
    ) -> None:
        """Append one evaluation: a row per prompt, and the first few completions as JSON lines."""
        columns = {
            "step": [step] * len(prompt_ids),
            "prompt_id": list(prompt_ids),
            "sample": list(samples),
            "correct": list(correct),
            "greedy_correct": list(greedy_correct),
            "tokens": list(tokens),
        }
        self._parquet.write_table(pa.table(columns, schema=EVALUATIONS))
        rows = zip(prompt_ids, samples, correct, strict=True)
        for prompt_id, sample, right in list(rows)[:SAMPLES_PER_EVALUATION]:
            row = {"step": step, "prompt_id": prompt_id, "completion": sample, "correct": right}
            append_line(self.directory / "samples.jsonl", row)

    def close(self) -> None:
        """Finish the Parquet file."""
        self._parquet.close()
