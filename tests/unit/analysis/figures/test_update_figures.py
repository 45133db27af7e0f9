"""Unchanged weights by arm, rank and energy by module type and layer."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from analysis.estimates.search import search_summary
from analysis.figures import update_sparsity, update_spectrum
from analysis.figures.style import figure
from analysis.figures.update_sparsity import sparsity_figure
from analysis.figures.update_spectrum import spectrum_figure
from analysis.reading.sweep import Sweep
from tests.unit.analysis.probed_sweeps import HALF, measured, probed_sweep


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    arms = {
        "full": [measured(n, 500, {"energy_top_1": 0.3}) for n in (100, 110, 120)],
        "full-bf16": [measured(None, 800)] * 3,
        "lora-r1": [None] * 3,
    }
    return probed_sweep(tmp_path, arms, configs={"full-bf16": HALF})


def test_an_arm_has_the_counts_that_it_can_have(sweep: Sweep) -> None:
    rows = sparsity_figure(sweep, search_summary(sweep)).rows
    assert [(row.name, row.dtype) for row in rows] == [
        ("full", "float32"),
        ("full-bf16", "bfloat16"),
    ]
    full, half = (dict(row.counts) for row in rows)
    assert full["fp32"].point == pytest.approx(0.11)
    assert full["bf16"].interval == (0.5, 0.5)
    assert set(half) == {"bf16", "absolute", "relative"}


def test_layers_ascend_and_chance_is_beside_them(sweep: Sweep) -> None:
    data = spectrum_figure(sweep, search_summary(sweep))
    cell = ("energy_top_1", "by_depth")
    assert data.places(cell) == ["0", "2", "10"]
    assert data.shown == ["full", "full-bf16"]
    assert data.chance[cell] == pytest.approx({"0": 0.1, "10": 0.1, "2": 0.1})
    assert dict(data.panels[cell][0].points)["10"].point == pytest.approx(0.3)
    assert data.looks["full"] != data.looks["full-bf16"]


def test_they_are_drawn_where_weights_were_measured(sweep: Sweep, tmp_path: Path) -> None:
    search = search_summary(sweep)
    for spec in (update_sparsity.FIGURE, update_spectrum.FIGURE):
        data = spec.data(sweep, search)
        assert spec.lacks(sweep) == spec.missing(sweep, search, data) == ""
        figure(partial(spec.draw, data), tmp_path, spec.name, spec.height(data))
        assert (tmp_path / f"{spec.name}.png").stat().st_size > 10_000


def test_elsewhere_they_are_no_question(tmp_path: Path) -> None:
    bare = probed_sweep(tmp_path, {"full": [None] * 3})
    for spec in (update_sparsity.FIGURE, update_spectrum.FIGURE):
        assert "probes=default" in spec.lacks(bare)
