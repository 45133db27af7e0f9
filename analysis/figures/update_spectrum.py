"""Rank and energy of updates by module type and depth, against random updates (C12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from analysis.claims.probed import contrast
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import Estimate
from analysis.figures import marks
from analysis.figures.cast import Cast, cast, natural
from analysis.figures.spec import FigureSpec
from analysis.figures.style import GREY, Look, looks
from analysis.figures.update_sparsity import lacks
from analysis.reading.arms import arms
from analysis.reading.probes import at
from analysis.reading.sweep import Sweep

STATISTICS = {
    "effective_rank_share": "effective rank / full rank",
    "energy_top_1": "energy in one direction",
}
GROUPS = {"by_module": "by module type", "by_depth": "by layer"}
NULL = "gaussian"


@dataclass(frozen=True)
class Series:
    """One arm in one panel."""

    arm: str
    points: tuple[tuple[str, Estimate], ...]
    """By module type or layer."""


@dataclass(frozen=True)
class SpectrumFigure:
    """Two statistics of the updates, by module type and by layer."""

    cast: Cast
    panels: Mapping[tuple[str, str], tuple[Series, ...]]
    """By statistic and grouping."""
    chance: Mapping[tuple[str, str], Mapping[str, float]]
    """Mean of the Gaussian updates by module type or layer, over all runs measured."""

    @property
    def looks(self) -> dict[str, Look]:
        """Look by arm: arms that differ in precision alone must not look alike here."""
        full = [name for name in self.shown if self.cast.by_name[name].arm.is_full]
        return looks(self.shown, full[:1])

    @property
    def shown(self) -> list[str]:
        """Arms with something to show."""
        return list(dict.fromkeys(s.arm for panel in self.panels.values() for s in panel))

    def places(self, panel: tuple[str, str]) -> list[str]:
        """Module types, or layers from 0."""
        names = dict.fromkeys(name for s in self.panels[panel] for name, _ in s.points)
        return sorted(names, key=natural) if panel[1] == "by_depth" else list(names)


def spectrum_figure(sweep: Sweep, search: SearchSummary) -> SpectrumFigure:
    """Means over seeds, of the runs that an arm's score comes from."""
    cells = [(statistic, group) for statistic in STATISTICS for group in GROUPS]
    return SpectrumFigure(
        cast(sweep),
        {cell: _series(sweep, *cell) for cell in cells},
        {cell: _chance(sweep, *cell) for cell in cells},
    )


def _groups(sweep: Sweep, group: str) -> list[str]:
    files = sweep.probes.values()
    return list(dict.fromkeys(name for p in files for name in p.get("weights", {}).get(group, {})))


def _series(sweep: Sweep, statistic: str, group: str) -> tuple[Series, ...]:
    found = []
    for arm in arms(sweep):
        points = []
        for name in _groups(sweep, group):

            def measured(content: Mapping[str, Any], name: str = name) -> float | None:
                return at(content, "weights", group, name, "observed", statistic)

            one = contrast(sweep, arm, measured)
            if one is not None:
                points.append((name, one.estimate()))
        if points:
            found.append(Series(arm.name, tuple(points)))
    return tuple(found)


def _chance(sweep: Sweep, statistic: str, group: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for name in _groups(sweep, group):
        keys = ("weights", group, name, "null", NULL, statistic, "mean")
        values = [v for p in sweep.probes.values() if (v := at(p, *keys)) is not None]
        if values:
            found[name] = sum(values) / len(values)
    return found


def draw_spectrum(data: SpectrumFigure, ax: Axes) -> None:
    """A row for each statistic, a column for each grouping."""
    cells = list(data.panels)
    names = [f"{STATISTICS[statistic]}, {GROUPS[group]}" for statistic, group in cells]
    for panel, cell in zip(marks.panels(ax, names, across=len(GROUPS)), cells, strict=True):
        _draw_panel(data, panel, cell)
    estimates = [e for panel in data.panels.values() for s in panel for _, e in s.points]
    seeds = marks.seeds_text(estimates, "seed", "arm", "")
    marks.title(ax, "Rank and energy of the updates", f"{data.cast.subject}; {seeds}")
    handles = [
        marks.line_handle(name, color=look.colour, marker=look.marker, linestyle="none")
        for name, look in data.looks.items()
    ]
    style = {"color": GREY, "marker": "_", "markersize": 11, "linestyle": "none"}
    handles.append(marks.line_handle("Gaussian update", **style))
    marks.legend(ax, handles)


def _draw_panel(data: SpectrumFigure, ax: Axes, cell: tuple[str, str]) -> None:
    places, chance, series = data.places(cell), data.chance[cell], data.panels[cell]
    for i, one in enumerate(series):
        look = data.looks[one.arm]
        aside = 0.6 * ((i + 0.5) / len(series) - 0.5)
        xs = [places.index(name) + aside for name, _ in one.points]
        estimates = [estimate for _, estimate in one.points]
        marks.draw_intervals(ax, xs, estimates, look.colour)
        ax.plot(xs, [e.point for e in estimates], look.marker, color=look.colour, markersize=4)
    for place, name in enumerate(places):
        if name in chance:
            ends = (place - 0.4, place + 0.4)
            ax.plot(ends, (chance[name], chance[name]), color=GREY, linewidth=1.6, zorder=1)
    ax.set_xticks(range(len(places)), [name.removesuffix("_proj") for name in places])
    ax.set_ylim(0, 1.05)


def _caption(data: SpectrumFigure) -> str:
    return (
        "Means over the matrices of a module type or a layer (from 0). Effective rank: the "
        "exponential of the entropy of the singular values (Roy and Vetterli 2007), over the "
        "smaller side of the matrix. Energy: the largest squared singular value over their sum. "
        "Grey: random updates of equal norm; LoRA's rank is bounded by its setting. Bars are "
        "90 % t intervals over seeds." + data.cast.left_out(data.shown)
    )


def _missing(sweep: Sweep, search: SearchSummary, data: SpectrumFigure) -> str:
    return "" if data.shown else "No run at an arm's learning rate has its weights measured yet."


FIGURE = FigureSpec(
    name="update_spectrum",
    title="Rank and energy of the updates",
    order=111,
    data=spectrum_figure,
    draw=draw_spectrum,
    caption=_caption,
    missing=_missing,
    lacks=lacks,
    height=lambda data: marks.height(data.cast, 1, 4),
)
