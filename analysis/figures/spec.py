"""What a figure is: its numbers, its drawing, its caption, and why a sweep may lack it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from analysis.estimates.search import SearchSummary
from analysis.figures.style import HEIGHT
from analysis.reading.sweep import Sweep


def always(sweep: Sweep) -> str:
    """Of a figure that every sweep may have."""
    return ""


def usual(data: Any) -> float:
    """Height of a figure without panels."""
    return HEIGHT


@dataclass(frozen=True)
class FigureSpec:
    """One figure; a module of :mod:`analysis.figures` exports it as ``FIGURE``."""

    name: str
    """File name without suffix."""
    title: str
    order: int
    """Place on the page."""
    data: Callable[[Sweep, SearchSummary], Any]
    """The numbers, as a frozen dataclass."""
    draw: Callable[[Any, Axes], None]
    """Numbers to axes; computes nothing else."""
    caption: Callable[[Any], str]
    missing: Callable[[Sweep, SearchSummary, Any], str]
    """Why the sweep has no such figure yet, a sentence; empty if it has."""
    lacks: Callable[[Sweep], str] = always
    """What arms the sweep would need for it, a clause; then it is no question of this sweep."""
    height: Callable[[Any], float] = usual
    """In inches."""
