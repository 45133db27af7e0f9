"""What all figures share: style sheet, colours, markers, titles, legends, and the files written."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from analysis.reading.arms import Arm, rate_text

STYLE = Path(__file__).with_name("style.mplstyle")
BLACK, GREY = "#000000", "#6b6b6b"
MARKERS = "osD^vPXh"
SUFFIXES = ("png", "pdf")


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
        canvas = Figure()
        canvas.set_figheight(height)
        draw(canvas.subplots())
        canvas.draw_without_rendering()
        canvas.set_layout_engine("none")  # laid out once, not again for every format
        canvas.savefig(directory / f"{name}.png")
        # Without dates the same numbers give the same file.
        canvas.savefig(directory / f"{name}.pdf", metadata={"CreationDate": None})
        buffer = io.BytesIO()
        canvas.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


@dataclass(frozen=True)
class Look:
    """How an arm is drawn, in every figure."""

    colour: str
    marker: str


def looks(arms: Sequence[Arm]) -> dict[str, Look]:
    """Look by arm name: FullFT black, the others from purple to orange by rank.

    The order of the shades is the order of the ranks; they stay apart for colour-blind readers
    and, with the markers, in grey.
    """
    others = [arm.name for arm in arms if not arm.is_full]
    palette = mpl.colormaps["plasma"]
    found = {}
    for i, arm in enumerate(arms):
        share = others.index(arm.name) / max(1, len(others) - 1) if not arm.is_full else 0.0
        colour = BLACK if arm.is_full else to_hex(palette(0.25 + 0.5 * share))
        found[arm.name] = Look(colour, MARKERS[i % len(MARKERS)])
    return found


def title(ax: Axes, text: str, subtitle: str) -> None:
    """A title, and below it what the figure is about: model, task, n."""
    ax.set_title(text, pad=22)
    ax.annotate(
        plain(subtitle),
        (0, 1),
        (0, 7),
        xycoords="axes fraction",
        textcoords="offset points",
        color="#444444",
        fontsize=9,
    )


def plain(text: str) -> str:
    """Text that came from a config, kept from being read as mathematics or as "no legend"."""
    escaped = text.replace("$", r"\$")
    return f" {escaped}" if escaped.startswith("_") else escaped


def line_handle(label: str, **style: Any) -> Line2D:
    """A legend entry drawn as a line."""
    return Line2D([], [], label=plain(label), **style)


def mark_handle(label: str, marker: str, size: float, **style: Any) -> Line2D:
    """A legend entry drawn as a marker."""
    style = {"color": GREY, **style}
    return line_handle(label, marker=marker, markersize=size, linestyle="none", **style)


def legend(ax: Axes, handles: list[Line2D]) -> None:
    """A legend to the right of the axes, where it hides nothing."""
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0))


def rate_axis(ax: Axes, label: str) -> None:
    """A log axis for learning rates, labelled at 1 and 3 of every decade."""
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: rate_text(x)))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel(label)
