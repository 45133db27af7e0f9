"""Colours and markers: apart for every reader, in print and in grey, the same in all figures."""

from __future__ import annotations

import itertools

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from analysis.figures.cast import cast
from analysis.figures.style import BLACK, STYLE, looks
from tests.unit.analysis.figures.drawn_sweeps import ranks, sweep_of

# Machado, Oliveira and Fernandes 2009, severity 1: linear RGB as seen without one kind of cone.
SIGHT = {
    "normal": np.eye(3),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
}
XYZ = np.array(
    [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
)  # of linear sRGB, IEC 61966-2-1
WHITE = np.array([0.9505, 1.0, 1.089])


def lab(colour: str, sight: str) -> np.ndarray:
    """CIELAB of a colour as it is seen."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    x, y, z = XYZ @ np.clip(SIGHT[sight] @ linear, 0, 1) / WHITE
    f, g, h = (np.cbrt(t) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return np.array([116 * g - 16, 500 * (f - g), 200 * (g - h)])


def test_the_conversion_knows_red() -> None:
    # CIELAB of sRGB red under D65 is (53.2, 80.1, 67.2) in every table.
    assert lab("#ff0000", "normal") == pytest.approx([53.2, 80.1, 67.2], abs=0.2)


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("n", range(1, 10))
def test_colours_stay_apart_however_they_are_seen(n: int, sight: str) -> None:
    names = ["full", *(f"lora-{i}" for i in range(n))]
    colours = [look.colour for look in looks(names, ["full"]).values()]

    apart = [np.linalg.norm(lab(a, sight) - lab(b, sight)) for a, b in
             itertools.combinations(colours, 2)]  # fmt: skip
    assert min(apart) > 10  # a just noticeable difference is 2.3
    assert colours[0] == BLACK


@pytest.mark.parametrize("n", [2, 4, 8, 12, 30, 64])
def test_no_two_arms_look_alike_and_neighbours_differ_in_marker(n: int) -> None:
    names = ["full", *(f"lora-{i}" for i in range(n))]
    found = list(looks(names, ["full"]).values())

    assert len(set(found)) == n + 1
    assert all(a.marker != b.marker for a, b in itertools.pairwise(found))


@pytest.mark.parametrize("n", range(2, 7))
def test_shades_of_few_ranks_grow_lighter_so_that_grey_keeps_their_order(n: int) -> None:
    found = looks([f"lora-{i}" for i in range(n)])
    lightness = [lab(look.colour, "normal")[0] for look in found.values()]

    assert lightness == sorted(lightness)


def test_every_line_is_dark_enough_for_paper() -> None:
    colours = [c for n in range(1, 10) for c in looks([str(i) for i in range(n)]).values()]
    assert max(lab(look.colour, "normal")[0] for look in colours) < 83


def test_an_arm_looks_the_same_in_every_figure() -> None:
    sweep = sweep_of(ranks(1, 2, 4, 8, 16, 32, 64, 128))
    first, second = cast(sweep).looks, cast(sweep).looks

    assert first == second and first["full"].colour == BLACK
    assert len(set(first.values())) == 9


def test_the_style_file_serves_other_plots() -> None:
    with plt.style.context(str(STYLE)):
        assert mpl.rcParams["savefig.dpi"] == 200
        assert mpl.rcParams["axes.spines.top"] is False
