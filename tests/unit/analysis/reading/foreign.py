"""Foreign sweeps for the tests: files of others, and the directories that imports make of them."""

from __future__ import annotations

from pathlib import Path

from analysis.__main__ import main
from analysis.reading.load import load
from analysis.reading.sweep import Sweep

GRID = """\
method,lora_rank,learning_rate,seed,score_final
full,,1e-5,0,0.50
full,,1e-4,0,0.80
full,,1e-3,0,0.10
lora,8,1e-4,0,0.55
lora,8,1e-3,0,0.75
lora,8,1e-2,0,0.20
"""
"""Two arms of three rates each, one seed, under the record's own names."""


def write_csv(path: Path, text: str) -> str:
    """Write a CSV file; its path as a command line has it."""
    path.write_text(text, encoding="utf-8")
    return str(path)


def imported(tmp_path: Path, text: str, *options: str) -> Sweep:
    """The sweep that the command line makes of CSV text; it must succeed."""
    source, out = write_csv(tmp_path / "sweep.csv", text), tmp_path / "out"
    assert main(["import", source, *options, "--out", str(out)]) == 0
    return load(out)


def reasons(sweep: Sweep) -> dict[str, tuple[str, str]]:
    """Kind and reason of every excluded row, by run id."""
    rows = sweep.excluded
    return {
        str(run_id): (str(kind), str(reason))
        for run_id, kind, reason in zip(rows["run_id"], rows["kind"], rows["reason"], strict=True)
    }
