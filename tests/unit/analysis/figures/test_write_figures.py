"""The files of a report: which figures there are, and what is said in place of one."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.estimates.search import search_summary
from analysis.figures import report
from analysis.figures.report import FigureFile, draw_figure, figures, write_figures
from analysis.figures.style import figure
from analysis.reading.sweep import Sweep
from tests.unit.analysis.figures.drawn_sweeps import Drawn, ranks, sweep_of

NAMES = [
    "ablation",
    "learning_rates",
    "ranks",
    "learning_curves",
    "learning_by_flops",
    "envelope",
    "best_learning_rates",
    "rate_by_rank",
    "ratio_by_length",
    "ratio_by_width",
    "layers",
    "batch",
    "pareto",
    "update_sparsity",
    "update_spectrum",
]


@pytest.fixture
def no_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files without drawing: each figure would cost half a second."""

    def stub(draw: object, directory: Path, name: str, height: float) -> bytes:
        for suffix in ("png", "pdf"):
            (directory / f"{name}.{suffix}").write_bytes(b"")
        return b"<svg/>"

    monkeypatch.setattr(report, "figure", stub)


def written(sweep: Sweep, path: Path) -> dict[str, FigureFile]:
    return {file.name: file for file in write_figures(sweep, search_summary(sweep), path)}


def test_every_module_with_a_figure_is_found_in_order() -> None:
    assert [spec.name for spec in figures()] == NAMES
    assert len({spec.order for spec in figures()}) == len(NAMES)


def test_files_lie_where_the_page_says_and_others_say_why_not(tmp_path: Path) -> None:
    files = written(sweep_of(ranks(8)), tmp_path)

    assert list(files) == NAMES
    for name, file in files.items():
        there = [(tmp_path / f"{name}.{suffix}").exists() for suffix in ("png", "pdf")]
        assert there == [file.svg is not None] * 2
        assert bool(file.svg) != bool(file.missing)
    assert files["ranks"].svg and files["ranks"].svg.startswith(b"<?xml")
    assert (tmp_path / "ranks.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("no_pixels")
def test_what_is_no_question_of_a_sweep_is_told_from_what_is_missing(tmp_path: Path) -> None:
    sweep = sweep_of(ranks(8), missing=["full-search-2e-05-0"])
    files = written(sweep, tmp_path)

    layers, ratio = files["layers"], files["ratio_by_length"]
    assert layers.lacks == "LoRA arms that differ in method.target_modules"
    assert layers.missing == f"No question of this sweep: it would take {layers.lacks}."
    assert ratio.lacks == ""
    assert ratio.missing.startswith("No LoRA arm and its FullFT arm both have a score")


@pytest.mark.usefixtures("no_pixels")
def test_a_figure_that_no_longer_exists_goes(tmp_path: Path) -> None:
    written(sweep_of(ranks(8)), tmp_path)
    gone = [run for run in sweep_of(ranks(8)).runs["run_id"] if "report" in run]
    files = written(sweep_of(ranks(8), missing=gone), tmp_path)

    assert files["ranks"].missing.startswith("No run of the report phase has a score yet")
    assert not list(tmp_path.glob("ranks.*"))
    assert (tmp_path / "learning_rates.png").exists()


def test_the_same_numbers_give_the_same_files(tmp_path: Path) -> None:
    spec = next(spec for spec in figures() if spec.name == "ranks")
    sweep = sweep_of(ranks(1, 8))
    data = spec.data(sweep, search_summary(sweep))
    first = figure(lambda ax: spec.draw(data, ax), tmp_path, "a")
    second = figure(lambda ax: spec.draw(data, ax), tmp_path, "b")

    assert first == second
    for suffix in ("png", "pdf"):
        a, b = (tmp_path / f"{name}.{suffix}" for name in "ab")
        assert a.read_bytes() == b.read_bytes()


def test_text_from_configs_is_never_mathematics(tmp_path: Path) -> None:
    arms = {"full": Drawn(model=r"$\frac{"), "lora-r8": Drawn(8, model=r"$\alpha{")}

    spec = next(spec for spec in figures() if spec.name == "learning_rates")
    data = spec.data(sweep_of(arms), search_summary(sweep_of(arms)))
    assert figure(lambda ax: spec.draw(data, ax), tmp_path, "x").startswith(b"<?xml")


def test_ten_thousand_runs_are_an_image_inside_the_vector_files(tmp_path: Path) -> None:
    spec = next(spec for spec in figures() if spec.name == "learning_rates")
    sweep = sweep_of(ranks(8))
    data = spec.data(sweep, search_summary(sweep))
    point = data.curves[0].points[0]
    curve = type(data.curves[0])(data.curves[0].arm, (point,) * 10_000, (), None, None)
    crowded = type(data)(data.cast, (curve,), ())

    svg = figure(lambda ax: spec.draw(crowded, ax), tmp_path, "x")
    assert b"<image" in svg and len(svg) < 500_000


def test_a_notebook_gets_one_figure_or_one_sentence() -> None:
    sweep = sweep_of(ranks(8))
    assert draw_figure(sweep, "ranks").axes[0].get_xlabel() == "LoRA rank (log scale)"
    with pytest.raises(ValueError, match=r"a figure is one of ablation, .*; got 'rank'"):
        draw_figure(sweep, "rank")
    with pytest.raises(ValueError, match="drawn has no figure batch: it would take arms"):
        draw_figure(sweep, "batch")
    gone = [run for run in sweep.runs["run_id"] if "report" in run]
    with pytest.raises(ValueError, match="no figure ranks: No run of the report phase"):
        draw_figure(sweep_of(ranks(8), missing=gone), "ranks")
