"""The figures of a report: which there are, what they say under them, and why one is missing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from matplotlib.axes import Axes

from analysis.estimates.search import SearchSummary
from analysis.figures.data import learning_figure, optimum_figure, rank_figure, rate_figure
from analysis.figures.draw import draw_learning, draw_optima, draw_ranks, draw_rates
from analysis.figures.style import SUFFIXES, figure
from analysis.reading.sweep import Sweep

Draw = Callable[[Axes], None]


@dataclass(frozen=True)
class FigureFile:
    """A figure as the page shows it."""

    name: str
    title: str
    caption: str
    svg: bytes | None
    missing: str
    """Why there is no figure; empty if there is one."""


def write_figures(sweep: Sweep, search: SearchSummary, directory: Path) -> list[FigureFile]:
    """Draw every figure that the sweep has data for, as PNG and PDF; the page gets SVG.

    Args:
        sweep: The experiment.
        search: Of the same sweep.
        directory: Made if need be; figures of an earlier report that no longer exist go.

    Returns:
        All figures in the order of the page, the missing ones with the reason.
    """
    directory.mkdir(parents=True, exist_ok=True)
    figures = (
        _rates(sweep, search, directory),
        _ranks(sweep, directory),
        _learning(sweep, directory),
        _optima(sweep, search, directory),
    )
    return list(figures)


def _rates(sweep: Sweep, search: SearchSummary, directory: Path) -> FigureFile:
    data = rate_figure(sweep, search.optima)
    missing = "" if data.curves else "No run of the search phase has a score yet."
    if sweep.stops_early:
        missing = (
            "Poor learning rates were stopped early, so there is no curve; the table of every "
            "learning rate counts the stopped runs."
        )
    caption = (
        "Each line is an arm's mean over its search seeds, each dot one run. Arms stand a little "
        "aside of each other so that none hides another; diverged runs stay in at the worst "
        "score. Bars below zero: the plateau of each arm and, thick, the 90 % interval of its "
        "best learning rate (LR*)."
    )
    draw = partial(draw_rates, data)
    return _file(directory, "learning_rates", "Score against learning rate", caption, draw, missing)


def _ranks(sweep: Sweep, directory: Path) -> FigureFile:
    data = rank_figure(sweep)
    missing = ""
    if not data.full and not data.lora:
        missing = (
            "No run of the report phase has a score yet: an arm's report runs start when all its "
            "search runs have a record."
            if sweep.is_experiment
            else "There is no report phase, so no score on fresh seeds."
        )
    caption = (
        "Fresh report seeds at the learning rate that the search seeds selected. The score axis "
        "does not start at zero."
    )
    draw = partial(draw_ranks, data)
    return _file(directory, "ranks", "Score against rank", caption, draw, missing)


def _learning(sweep: Sweep, directory: Path) -> FigureFile:
    data = learning_figure(sweep)
    missing = "" if data.curves else "No held-out evaluation of a scored run is stored."
    caption = (
        "Thick: mean over seeds, in which a diverged run counts with the worst score from its end "
        "on. Thin: single runs."
    )
    if data.phase == "search":
        caption += (
            " These are search seeds at the rate of best mean, the same seeds that chose it: an "
            "optimistic view."
        )
    draw = partial(draw_learning, data)
    return _file(directory, "learning_curves", "Learning curves", caption, draw, missing)


def _optima(sweep: Sweep, search: SearchSummary, directory: Path) -> FigureFile:
    data = optimum_figure(sweep, search.optima)
    missing = ""
    if sweep.stops_early:
        missing = "Poor learning rates were stopped early, so no best learning rate is estimated."
    elif not search.optima:
        missing = "No arm has a score for every search run, so no best learning rate is estimated."
    elif not any(found and math.isfinite(found.lr.point) for _, found in data.rows):
        missing = "No arm's score rises far enough above the untrained model to have a best rate."
    caption = (
        "LR* is the middle of an arm's plateau, on the log axis. An arrow instead of a bar at an "
        "end: the plateau reaches the end of the grid, LR* is only a bound."
    )
    height = 1.9 + 0.5 * len(data.rows)
    draw = partial(draw_optima, data)
    return _file(
        directory, "best_learning_rates", "Best learning rates", caption, draw, missing, height
    )


def _file(
    directory: Path,
    name: str,
    title: str,
    caption: str,
    draw: Draw,
    missing: str,
    height: float = 4.4,
) -> FigureFile:
    if missing:
        for suffix in SUFFIXES:
            (directory / f"{name}.{suffix}").unlink(missing_ok=True)
        return FigureFile(name, title, caption, None, missing)
    svg = figure(draw, directory, name, height)
    return FigureFile(name, title, caption, svg, "")
