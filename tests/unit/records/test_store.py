from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from study.records.files import write_json
from study.records.provenance import git_state, provenance
from study.records.record import Record
from study.records.store import ExperimentStore
from study.records.writer import SAMPLES_PER_EVALUATION, RunWriter


def record(**changes: Any) -> Record:
    facts: dict[str, Any] = {f.name: None for f in dataclasses.fields(Record)}
    return Record(
        **{
            **facts,
            "schema_version": 1,
            "run_id": "abc",
            "arm": "full",
            "score_final": 0.5,
            **changes,
        }
    )


def attempt(store: ExperimentStore, text: str) -> Path:
    path = store.new_attempt("full", "abc")
    (path / "metrics.jsonl").write_text(text)
    (path / "adapter").mkdir()
    (path / "adapter" / "weights").write_text(text)
    return path


def test_publishing_moves_the_attempt_up_and_writes_the_record_last(tmp_path: Path) -> None:
    store = ExperimentStore(tmp_path)
    assert store.record("full", "abc") is None
    assert store.publish(record(), attempt(store, "one"))
    run_dir = store.run_dir("full", "abc")
    assert store.record("full", "abc") == record()
    assert (run_dir / "metrics.jsonl").read_text() == "one"
    assert (run_dir / "adapter" / "weights").read_text() == "one"
    assert list((run_dir / "attempts").iterdir()) == []


def test_the_second_writer_of_a_record_fails_and_changes_nothing(tmp_path: Path) -> None:
    store = ExperimentStore(tmp_path)
    first, second = attempt(store, "one"), attempt(store, "two")
    assert store.publish(record(score_final=0.5), first)
    assert not store.publish(record(score_final=0.9), second)
    assert store.record("full", "abc") == record(score_final=0.5)
    assert (store.run_dir("full", "abc") / "metrics.jsonl").read_text() == "one"


def test_files_of_a_publication_that_was_interrupted_are_replaced(tmp_path: Path) -> None:
    store = ExperimentStore(tmp_path)
    run_dir = store.run_dir("full", "abc")
    (run_dir / "adapter").mkdir(parents=True)
    (run_dir / "adapter" / "stale").write_text("half")
    (run_dir / "metrics.jsonl").write_text("half")
    assert store.publish(record(), attempt(store, "whole"))
    assert (run_dir / "metrics.jsonl").read_text() == "whole"
    assert not (run_dir / "adapter" / "stale").exists()


def test_a_record_of_another_schema_is_named(tmp_path: Path) -> None:
    store = ExperimentStore(tmp_path)
    write_json(store.run_dir("full", "abc") / "record.json", {"schema_version": 7})
    with pytest.raises(ValueError, match="schema_version 7"):
        store.record("full", "abc")


def test_attempts_of_dead_workers_are_noted_and_cost_no_retry(tmp_path: Path) -> None:
    store = ExperimentStore(tmp_path)
    store.new_attempt("full", "abc")  # its worker dies
    second = store.new_attempt("full", "abc")
    assert second.name == "2"
    store.append_attempt("full", "abc", 2, "failed", "boom")
    lines = store.attempts("full", "abc")
    assert [(a["attempt"], a["status"], a["spent"]) for a in lines] == [
        (1, "killed", False),
        (2, "failed", True),
    ]
    store.reopen("full", "abc")
    assert store.attempts("full", "abc") == []
    assert store.new_attempt("full", "abc").name == "3"


def test_an_attempt_is_noted_once_by_whoever_is_first(tmp_path: Path) -> None:
    store = ExperimentStore(tmp_path)
    store.new_attempt("full", "abc")  # its worker sleeps
    store.new_attempt("full", "abc")
    store.append_attempt("full", "abc", 1, "failed", "it woke up")
    (line,) = store.attempts("full", "abc")
    assert (line["attempt"], line["reason"], line["spent"]) == (1, "its worker died", False)
    store.reopen("full", "abc")
    store.append_attempt("full", "abc", 2, "failed", "boom")
    store.reopen("full", "abc")
    assert store.attempts("full", "abc") == []


def test_a_selection_is_written_once(tmp_path: Path) -> None:
    store = ExperimentStore(tmp_path)
    store.write_selection("full", {"learning_rate": 1e-4})
    store.write_selection("full", {"learning_rate": 9e-4})
    assert store.read_selections() == {"full": {"learning_rate": 1e-4}}


def test_json_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "plan.json"
    write_json(target, {"a": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(target, {"a": math.nan})
    assert json.loads(target.read_text()) == {"a": 1}


def test_streams_of_an_attempt(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.metrics(1, {"train/loss": math.nan, "train/reward": 0.5})
    ids = [f"p{i}" for i in range(20)]
    for step in (0, 5):
        right = [i < step for i in range(20)]
        writer.evaluation(step, ids, ["<b>"] * 20, right, right, [3] * 20)
    writer.close()
    line = json.loads((tmp_path / "metrics.jsonl").read_text())
    assert line == {"step": 1, "train/loss": None, "train/reward": 0.5, "health/nonfinite": 1}
    table = pq.read_table(tmp_path / "evaluations.parquet").to_pandas()
    assert len(table) == 40
    assert table.groupby("step").correct.sum().to_dict() == {0: 0, 5: 5}
    samples = (tmp_path / "samples.jsonl").read_text().splitlines()
    assert len(samples) == 2 * SAMPLES_PER_EVALUATION


def test_provenance_names_versions_and_commit() -> None:
    facts = provenance()
    assert facts["packages"]["numpy"]
    assert set(git_state()) == {"git_commit", "git_dirty"}
    json.dumps(facts, allow_nan=False)
