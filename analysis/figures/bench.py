"""Figures of a measurement of the engines: how much faster, and how that grows with the pack."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from analysis.figures.marks import legend, line_handle, mark_handle, plain, title
from analysis.figures.style import BLACK, GREY, figure
from analysis.reading.bench_file import BenchFigures, ScalingCurve, StepCase

COLOURS = {"LoRA": "#7e03a8", "FullFT": BLACK}
CURVE_COLOURS = ("#7e03a8", "#e16462", "#fca636")


def write_bench_figures(data: BenchFigures, directory: Path, stem: str) -> list[Path]:
    """Draw what was measured as ``STEM_ratios`` and ``STEM_scaling``, each as PNG and PDF.

    Args:
        data: The measurement.
        directory: Where the files go.
        stem: What their names begin with.

    Returns:
        The PNG files.

    Raises:
        ValueError: if neither was measured.
    """
    drawings: list[tuple[str, Callable[[Axes], None], float]] = []
    if data.steps:
        drawings.append(("ratios", partial(draw_ratios, data), 1.6 + 0.32 * len(data.steps)))
    if data.scaling:
        drawings.append(("scaling", partial(draw_scaling, data), 4.4))
    if not drawings:
        raise ValueError("the file holds neither steps nor scaling, so there is nothing to draw")
    for name, draw, height in drawings:
        figure(draw, directory, f"{stem}_{name}", height)
    return [directory / f"{stem}_{name}.png" for name, _, _ in drawings]


def draw_ratios(data: BenchFigures, ax: Axes) -> None:
    """Run-step under TRL over run-step under the packed engine, a row a case."""
    for y, case in enumerate(data.steps):
        _draw_ratio(case, ax, y)
    ax.axvline(1, color=GREY, linestyle="--", linewidth=1.2, zorder=1)
    labels = [plain(f"{case.label}, {case.method}") for case in data.steps]
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.set_xlim(0, 1.12 * max(case.ratio.high for case in data.steps))
    ax.set_xlabel("run-steps of the packed engine in the time of one of TRL's")
    title(ax, "Packed against TRL, on the same runs", data.subject)
    handles = [
        mark_handle(f"{method}, {reward} reward", "o", 6, color=colour, markerfacecolor=face)
        for method, colour in COLOURS.items()
        for reward, face in (("task", colour), ("parity", "white"))
        if any((case.method, case.reward) == (method, reward) for case in data.steps)
    ]
    handles.append(line_handle("smallest to largest", color=GREY, marker="|"))
    handles.append(mark_handle("arithmetic floor / run-step", r"$\%$", 8))
    legend(ax, handles)


def _draw_ratio(case: StepCase, ax: Axes, y: int) -> None:
    colour = COLOURS[case.method]
    ax.plot([case.ratio.low, case.ratio.high], [y, y], color=colour, linewidth=1.4, marker="|")
    face = colour if case.reward == "task" else "white"
    ax.plot([case.ratio.median], [y], "o", color=colour, markerfacecolor=face, zorder=3)
    ax.annotate(
        f"{case.floor_share.median:.0%}",
        (case.ratio.high, y),
        (7, 0),
        textcoords="offset points",
        va="center",
        fontsize=8,
        color=GREY,
    )


def draw_scaling(data: BenchFigures, ax: Axes) -> None:
    """A run-step in milliseconds against the runs of a pack."""
    handles = []
    for curve, colour in zip(data.scaling, CURVE_COLOURS, strict=False):
        _draw_curve(curve, ax, colour)
        handles.append(line_handle(f"packed, {curve.rows} rows", color=colour, marker="o"))
        if curve.trl_step_s is not None:
            label = f"TRL, {curve.rows} rows"
            handles.append(line_handle(label, color=colour, linestyle="--", linewidth=1.2))
    lanes = sorted({number for curve in data.scaling for number in curve.lanes})
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(lanes, [str(number) for number in lanes])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("runs in the pack")
    ax.set_ylabel("time of a run-step, ms")
    title(ax, "Run-step of LoRA runs by the size of their pack", data.subject)
    legend(ax, handles)


def _draw_curve(curve: ScalingCurve, ax: Axes, colour: str) -> None:
    medians = [span.median * 1e3 for span in curve.step_s]
    ax.plot(curve.lanes, medians, color=colour, marker="o", zorder=3)
    for lanes, span in zip(curve.lanes, curve.step_s, strict=True):
        ends = [span.low * 1e3, span.high * 1e3]
        ax.plot([lanes, lanes], ends, color=colour, linewidth=1.4, marker="_", zorder=2)
    if curve.trl_step_s is not None:
        ax.axhline(curve.trl_step_s * 1e3, color=colour, linestyle="--", linewidth=1.2, zorder=1)
