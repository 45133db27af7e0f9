"""The cache of measurements: used while files are the same, by content, and never in the way."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.reading import cache, metrics
from analysis.reading.cache import DIGEST_KEY, FILE, KEY
from analysis.reading.load import load
from analysis.reading.measurements import Parsed, parse
from tests.doubles import Defects, run_id, write_synthetic_experiment

FULL_0 = run_id("full", "search", 2e-4, 0)
R1_0 = run_id("lora-r1", "search", 2e-4, 0)


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    """An experiment that was loaded once."""
    path = write_synthetic_experiment(tmp_path / "q", report_seeds=())
    assert not (path / FILE).exists()
    load(path)
    return path


@pytest.fixture(name="batches")
def _batches(monkeypatch: pytest.MonkeyPatch) -> list[list[bytes]]:
    """Every batch that is parsed from now on."""
    seen: list[list[bytes]] = []

    def counted(contents: Sequence[bytes], names: dict[str, int]) -> list[Parsed]:
        seen.append(list(contents))
        return parse(contents, names)

    monkeypatch.setattr(metrics, "parse", counted)
    return seen


def fresh(path: Path) -> pd.DataFrame:
    """The measurements as they are read without a cache."""
    (path / FILE).unlink()
    return load(path).metrics


def test_nothing_is_parsed_twice(path: Path, batches: list[list[bytes]]) -> None:
    again = load(path).metrics

    assert batches == []
    pd.testing.assert_frame_equal(again, fresh(path))
    assert sum(map(len, batches)) == 45


def test_a_file_of_the_same_size_and_time_is_read_anew(
    path: Path, batches: list[list[bytes]]
) -> None:
    file = path / "full" / FULL_0 / "metrics.jsonl"
    before, content = file.stat(), file.read_text()
    assert content.count('"step": 20, ') == 1
    file.write_text(content.replace('"step": 20, ', '"step": 21, '))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)

    found = load(path).metrics
    assert batches == [[file.read_bytes()]]
    assert 21 in set(found["step"][found["run_id"] == FULL_0])
    pd.testing.assert_frame_equal(found, fresh(path))


def test_a_new_time_alone_changes_nothing(path: Path, batches: list[list[bytes]]) -> None:
    for file in path.glob("*/*/metrics.jsonl"):
        os.utime(file, ns=(1, 1))

    load(path)
    assert batches == []


def test_runs_that_come_and_go(path: Path, batches: list[list[bytes]]) -> None:
    record = path / "full" / FULL_0 / "record.json"
    content = record.read_text()
    record.unlink()
    found = load(path).metrics
    assert batches == [] and FULL_0 not in set(found["run_id"])
    pd.testing.assert_frame_equal(found, fresh(path))

    batches.clear()
    record.write_text(content)
    found = load(path).metrics
    assert len(batches) == 1 and len(batches[0]) == 1
    pd.testing.assert_frame_equal(found, fresh(path))


def test_unreadable_lines_are_listed_from_the_cache_too(
    path: Path, batches: list[list[bytes]]
) -> None:
    with (path / "full" / FULL_0 / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2\n{"ste')
    first, second = load(path), load(path)

    assert len(batches) == 1
    for sweep in (first, second):
        assert list(sweep.excluded["reason"]) == ["2 unreadable lines of metrics.jsonl left out"]
    pd.testing.assert_frame_equal(first.metrics, second.metrics)


def sealed(facts: bytes) -> dict[bytes, bytes]:
    return {KEY: facts, DIGEST_KEY: cache.digest(facts).encode()}


def flip(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :]


@pytest.mark.parametrize("damage", ["empty", "text", "cut", "data", "footer"])
def test_a_damaged_cache_is_written_anew(
    path: Path, damage: str, batches: list[list[bytes]]
) -> None:
    file = path / FILE
    good = file.read_bytes()
    values = good.find(np.float64(0.49).tobytes())
    assert values > 0
    file.write_bytes(
        {"empty": b"", "text": b"not a table", "cut": good[: len(good) // 2],
         "data": flip(good, values), "footer": flip(good, good.find(b"train/loss"))}[damage]
    )  # fmt: skip

    found = load(path).metrics
    assert len(batches) == 1 and len(batches[0]) == 45
    assert file.read_bytes() == good
    pd.testing.assert_frame_equal(found, fresh(path))


@pytest.mark.parametrize(
    "facts",
    [
        None,
        [],
        {"version": 0, "names": [], "runs": []},
        {"version": cache.VERSION},
        {"version": cache.VERSION, "names": [], "runs": [["full/a", "hash"]]},
        {"version": cache.VERSION, "names": ["a"], "runs": [["full/a", "hash", 5, 0]]},
        {"version": cache.VERSION, "names": [], "runs": [["full/a", "hash", 1, 0]]},
    ],
)
def test_a_foreign_table_in_its_place_is_ignored(path: Path, facts: object) -> None:
    table = pa.table(
        {"metric": pa.array([0], pa.int16()), "step": [1], "value": [0.5]}
    ).replace_schema_metadata({} if facts is None else sealed(json.dumps(facts).encode()))
    pq.write_table(table, path / FILE)

    found = load(path).metrics
    assert len(found) > 1
    pd.testing.assert_frame_equal(found, fresh(path))


def test_the_cache_of_another_version_is_written_anew(
    path: Path, batches: list[list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "VERSION", cache.VERSION + 1)
    load(path)
    load(path)
    assert len(batches) == 1 and len(batches[0]) == 45


def test_the_cache_of_another_experiment_does_no_harm(path: Path, tmp_path: Path) -> None:
    other = write_synthetic_experiment(
        tmp_path / "other", report_seeds=(), defects=Defects(diverged=[FULL_0])
    )
    load(other)
    (path / FILE).write_bytes((other / FILE).read_bytes())

    found = load(path).metrics
    assert found["step"][found["run_id"] == FULL_0].max() == 200  # not cut at 100 as over there
    pd.testing.assert_frame_equal(found, fresh(path))


def test_where_nothing_can_be_written_reading_works_without(path: Path) -> None:
    expected = fresh(path)
    (path / FILE).unlink()
    (path / FILE).parent.rmdir()
    (path / FILE).parent.write_text("a file where the directory should be")

    pd.testing.assert_frame_equal(load(path).metrics, expected)
    pd.testing.assert_frame_equal(load(path).metrics, expected)


def test_batches_of_any_size_read_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = load(path).metrics
    monkeypatch.setattr(metrics, "BATCH_BYTES", 3000)
    pd.testing.assert_frame_equal(fresh(path), expected)


def test_categories_are_runs_and_metrics(path: Path) -> None:
    found = load(path)
    categories = {name: list(found.metrics[name].cat.categories) for name in ("run_id", "metric")}

    assert categories["run_id"] == list(found.runs["run_id"])
    assert categories["metric"] == ["eval/accuracy", "eval/greedy_accuracy", "train/loss"]


def test_an_experiment_without_a_record_has_no_measurements(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q")
    for file in path.glob("*/*/record.json"):
        file.unlink()

    for _ in range(2):
        sweep = load(path)
        assert list(sweep.metrics.columns) == ["run_id", "step", "metric", "value"]
        assert sweep.metrics.empty and sweep.runs.empty
