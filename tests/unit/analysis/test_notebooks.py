"""The notebooks, executed from top to bottom as a reader would."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from analysis.simulate.store import rank_arms, write_experiment
from tests.published import published

NOTEBOOKS = Path(__file__).resolve().parents[3] / "notebooks"
ALLOWED = {"analysis", "os", "pathlib", "tempfile"}

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module", name="experiment")
def _experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "e02_rank"
    return write_experiment(path, rank_arms((1, 4, 8)), search_seeds=3, report_seeds=5)


def executed(name: str) -> Any:
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    NotebookClient(notebook, timeout=150, resources={"metadata": {"path": NOTEBOOKS}}).execute()
    return notebook


def shown(notebook: Any, kind: str) -> Iterator[str]:
    """Every output of one MIME type, and what was printed as text."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if kind in output.get("data", {}):
                yield output["data"][kind]
            elif kind == "text/plain" and output.get("name") == "stdout":
                yield output["text"]


def test_the_rank_notebook_shows_curve_scores_and_verdicts(
    experiment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPERIMENT", str(experiment))
    notebook = executed("01_rank_vs_reward")
    assert len(list(shown(notebook, "image/png"))) == 2
    tables = " ".join(shown(notebook, "text/html"))
    assert all(word in tables for word in ("lora-r1", "lora-r8", "C2", "supported"))


def test_the_ten_times_notebook_finds_the_simulated_ratio(
    experiment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPERIMENT", str(experiment))
    notebook = executed("02_ten_times_rule")
    assert len(list(shown(notebook, "image/png"))) == 2
    assert "lies inside [5, 20]" in " ".join(shown(notebook, "text/plain"))


def test_the_notebook_of_public_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    published("qwen3_1p7b_math_history.csv")
    monkeypatch.setenv("PUBLIC_SWEEPS", str(published("tulu3_sft_rank_lr.csv").parent))
    notebook = executed("03_public_sweeps")
    assert len(list(shown(notebook, "image/png"))) == 2
    said = " ".join(shown(notebook, "text/plain"))
    assert "one seed cannot carry an interval" in said
    assert "49 runs in 3 arms" in said


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_are_thin_and_without_outputs(path: Path) -> None:
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in cells)
    source = "\n".join(cell.source for cell in cells).replace("%matplotlib inline\n", "")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            assert {alias.name.split(".")[0] for alias in node.names} <= ALLOWED
        elif isinstance(node, ast.ImportFrom):
            assert str(node.module).split(".")[0] in ALLOWED
