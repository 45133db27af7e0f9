"""Looks that all figures share: style sheet, colours, markers, and the files written."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from study.records.printable import printable

STYLE = Path(__file__).with_name("style.mplstyle")
BLACK, GREY = "#000000", "#6b6b6b"
MARKERS = "osD^vPXh"
SUFFIXES = ("png", "pdf")
HEIGHT = 4.4
"""Of a figure without panels, in inches."""
FEW = 6
"""Series up to which shades of one scale stay apart; the order of the shades is that of the ranks.
"""
SCALE = (0.2, 0.84)
"""Part of the scale ``plasma`` that is neither near black nor near white."""
MUTED = (
    "#332288",
    "#882255",
    "#117733",
    "#aa4499",
    "#cc6677",
    "#44aa99",
    "#999933",
    "#88ccee",
    "#ddcc77",
)
"""Paul Tol's muted scheme, safe for colour-blind readers, here from dark to light."""


def figure(draw: Callable[[Axes], None], directory: Path, name: str, height: float = 4.4) -> bytes:
    """Draw one figure and write ``name.png`` and ``name.pdf``.

    Args:
        draw: Draws on the axes it is given.
        directory: Where the files go.
        name: File name without suffix.
        height: Of the figure, in inches.

    Returns:
        The figure as SVG, for the page.
    """
    with mpl.rc_context(fname=STYLE):
        canvas = laid_out(draw, height)
        # Each format is drawn once, by its own backend: Figure.savefig draws everything twice.
        canvas.set_dpi(mpl.rcParams["savefig.dpi"])
        png, pdf = (str(directory / f"{name}.{suffix}") for suffix in SUFFIXES)
        FigureCanvasAgg(canvas).print_png(png)  # type: ignore[no-untyped-call]
        # Without dates the same numbers give the same file.
        dateless = {"CreationDate": None}
        FigureCanvasPdf(canvas).print_pdf(pdf, metadata=dateless)  # type: ignore[no-untyped-call]
        buffer = io.BytesIO()
        svg = FigureCanvasSVG(canvas)
        svg.print_svg(buffer, metadata={"Date": None})  # type: ignore[no-untyped-call]
    return buffer.getvalue()


def laid_out(draw: Callable[[Axes], None], height: float) -> Figure:
    """A figure in the current style, laid out once and for all formats."""
    canvas = Figure()
    canvas.set_figheight(height)
    draw(canvas.subplots())
    for text in canvas.findobj(Text):
        shown = printable(text.get_text())
        if shown != text.get_text():  # a control character would end the SVG
            text.set_text(shown)
    engine = canvas.get_layout_engine()
    if engine is not None:
        engine.execute(canvas)
    canvas.set_layout_engine("none")
    return canvas


@dataclass(frozen=True)
class Look:
    """How an arm is drawn, in every figure."""

    colour: str
    marker: str


def looks(series: Sequence[str], full: Sequence[str] = ()) -> dict[str, Look]:
    """Look by series: full fine-tuning black, the others apart in colour and in marker.

    Args:
        series: Names in the order of the page.
        full: Those of full fine-tuning.

    Returns:
        Up to nine series besides FullFT differ in colour for readers with normal, red-blind and
        green-blind sight, up to 72 in the pair of colour and marker.
    """
    others = [name for name in series if name not in full]
    colours = _palette(len(others))
    found = {}
    for i, name in enumerate(series):
        # Eight markers and nine colours: where one comes round again, the other has not.
        colour = BLACK if name in full else colours[others.index(name)]
        found[name] = Look(colour, MARKERS[i % len(MARKERS)])
    return found


def _palette(n: int) -> list[str]:
    if n > FEW:
        return [MUTED[i % len(MUTED)] for i in range(n)]
    if n == 1:
        return [to_hex(mpl.colormaps["plasma"](SCALE[0] + 0.1))]
    return [to_hex(mpl.colormaps["plasma"](x)) for x in np.linspace(*SCALE, n)]
