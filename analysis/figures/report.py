"""The figures of a report: which there are, what they say under them, and why one is missing."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

import analysis.figures
from analysis.estimates.search import SearchSummary, search_summary
from analysis.figures.spec import FigureSpec
from analysis.figures.style import STYLE, SUFFIXES, figure, laid_out
from analysis.reading.sweep import Sweep


@dataclass(frozen=True)
class FigureFile:
    """A figure as the page shows it."""

    name: str
    title: str
    caption: str
    svg: bytes | None
    missing: str
    """Why there is no figure, a sentence; empty if there is one."""
    lacks: str = ""
    """What arms it would need, a clause, if it is no question of this sweep; else empty."""


@cache
def figures() -> tuple[FigureSpec, ...]:
    """Every figure there is, in the order of the page: one module of this package each."""
    names = [module.name for module in pkgutil.iter_modules(analysis.figures.__path__)]
    modules = (import_module(f"analysis.figures.{name}") for name in names)
    found = [module.FIGURE for module in modules if hasattr(module, "FIGURE")]
    return tuple(sorted(found, key=lambda spec: spec.order))


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
    return [_write(spec, sweep, search, directory) for spec in figures()]


def draw_figure(sweep: Sweep, name: str, search: SearchSummary | None = None) -> Figure:
    """One figure, for a notebook: drawn and laid out, nothing written.

    Args:
        sweep: The experiment.
        name: Of one of :func:`figures`.
        search: Of the same sweep, where the caller has it already.

    Raises:
        ValueError: if there is no figure of that name, or the sweep has no data for it.
    """
    specs = {spec.name: spec for spec in figures()}
    if name not in specs:
        raise ValueError(f"a figure is one of {', '.join(specs)}; got {name!r}")
    spec, search = specs[name], search or search_summary(sweep)
    lacks = spec.lacks(sweep)
    if lacks:
        raise ValueError(f"{sweep.name} has no figure {name}: it would take {lacks}")
    data = spec.data(sweep, search)
    missing = spec.missing(sweep, search, data)
    if missing:
        raise ValueError(f"{sweep.name} has no figure {name}: {missing}")
    with rc_context(fname=STYLE):
        return laid_out(partial(spec.draw, data), spec.height(data))


def _write(spec: FigureSpec, sweep: Sweep, search: SearchSummary, directory: Path) -> FigureFile:
    lacks = spec.lacks(sweep)
    if lacks:
        _remove(spec, directory)
        sentence = f"No question of this sweep: it would take {lacks}."
        return FigureFile(spec.name, spec.title, "", None, sentence, lacks)
    data = spec.data(sweep, search)
    missing = spec.missing(sweep, search, data)
    caption = spec.caption(data)
    if missing:
        _remove(spec, directory)
        return FigureFile(spec.name, spec.title, caption, None, missing)
    svg = figure(partial(spec.draw, data), directory, spec.name, spec.height(data))
    return FigureFile(spec.name, spec.title, caption, svg, "")


def _remove(spec: FigureSpec, directory: Path) -> None:
    for suffix in SUFFIXES:
        (directory / f"{spec.name}.{suffix}").unlink(missing_ok=True)
