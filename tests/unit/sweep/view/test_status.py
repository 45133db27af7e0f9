"""``python -m study.status``: it reads and writes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from study.records.store import ExperimentStore
from study.status import main as status
from tests.unit.sweep.view.sweeps import show


def test_status_reads_and_writes_nothing(
    finished: ExperimentStore, capsys: pytest.CaptureFixture[str]
) -> None:
    show(finished, [], host="elsewhere", expires=0.0)  # a dead worker's badge stays
    before = {p: p.stat().st_mtime_ns for p in finished.path.rglob("*")}
    status([str(finished.path)])
    status([str(finished.path), "--watch"])
    assert {p: p.stat().st_mtime_ns for p in finished.path.rglob("*")} == before
    text = capsys.readouterr().out
    assert text.count("toy: 16 of 16 runs done") == 2
    assert "0.700 at 0.0002, best of 3, n=2" in text


def test_status_of_another_directory_is_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        status([str(tmp_path)])
    assert left.value.code == 2
    assert capsys.readouterr().err == (
        f"error: {tmp_path} is not an experiment: it has no plan.json\n"
    )
