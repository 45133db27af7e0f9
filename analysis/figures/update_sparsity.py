"""How many weights training left unchanged, by four counts (C11)."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes

from analysis.claims.c11_sparsity import BAND
from analysis.claims.probed import NEEDED, contrast, exact, share
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import Estimate
from analysis.figures import marks
from analysis.figures.cast import Cast, cast
from analysis.figures.spec import FigureSpec
from analysis.figures.style import GREY
from analysis.reading.arms import arms
from analysis.reading.sweep import Sweep

COUNTS = {
    "fp32": ("same float32 weight", "#000000", "o"),
    "bf16": ("same after rounding to bf16", "#aa4499", "s"),
    "absolute": ("within 1e-5, in bf16", "#44aa99", "D"),
    "relative": ("within 1e-3 of the weight, in bf16", "#cc6677", "^"),
}
"""Legend, colour and marker of each count."""
PRECISIONS = {"float32": "fp32", "bfloat16": "bf16"}
ROW, FRAME = 0.5, 1.6
"""Inches: of an arm's row, and of what is around the rows."""


@dataclass(frozen=True)
class Row:
    """One arm."""

    name: str
    dtype: str
    """Precision of the weights that were trained."""
    counts: tuple[tuple[str, Estimate], ...]
    """Unchanged share over seeds by count; an arm trained in bf16 has no float32 count."""


@dataclass(frozen=True)
class SparsityFigure:
    """Unchanged shares by arm."""

    cast: Cast
    rows: tuple[Row, ...]


def sparsity_figure(sweep: Sweep, search: SearchSummary) -> SparsityFigure:
    """The four counts of every arm, of the runs that its score comes from."""
    dtypes = _dtypes(sweep)
    rows = []
    for arm in arms(sweep):
        found = {count: contrast(sweep, arm, share(count)) for count in COUNTS}
        counts = tuple((name, exact(one)) for name, one in found.items() if one is not None)
        if counts:
            rows.append(Row(arm.name, dtypes.get(arm.name, ""), counts))
    return SparsityFigure(cast(sweep), tuple(rows))


def _dtypes(sweep: Sweep) -> dict[str, str]:
    """Precision of the weights that an arm trains, from its measured runs."""
    found = {}
    for arm, run_id in zip(sweep.runs["arm"], sweep.runs["run_id"], strict=True):
        weights = sweep.probes.get(str(run_id), {}).get("weights", {})
        if weights.get("dtype"):
            found[str(arm)] = str(weights["dtype"])
    return found


def draw_sparsity(data: SparsityFigure, ax: Axes) -> None:
    """A row for every arm, a mark for every count."""
    ax.axvspan(*BAND, color=GREY, alpha=0.15, linewidth=0)
    for place, row in enumerate(data.rows):
        for i, (count, estimate) in enumerate(row.counts):
            _, colour, marker = COUNTS[count]
            y = place + 0.15 * (i - (len(row.counts) - 1) / 2)
            if estimate.interval:
                ax.plot(estimate.interval, (y, y), color=colour, linewidth=1.4, zorder=2)
            ax.plot([estimate.point], [y], marker, color=colour, markersize=5, zorder=3)
    names = [f"{row.name} ({PRECISIONS.get(row.dtype, '?')})" for row in data.rows]
    ax.set_yticks(range(len(names)), [marks.shortened(name, 32) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlim(-0.02, 1.02)
    ax.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.0f} %")
    marks.label(ax, "trained weights that are unchanged", "")
    estimates = [estimate for row in data.rows for _, estimate in row.counts]
    seeds = marks.seeds_text(estimates, "seed", "arm", "")
    marks.title(ax, "What training left unchanged", f"{data.cast.subject}; {seeds}")
    _legend(data, ax)


def _legend(data: SparsityFigure, ax: Axes) -> None:
    used = dict.fromkeys(count for row in data.rows for count, _ in row.counts)
    handles = [
        marks.line_handle(words, color=colour, marker=marker, linestyle="none")
        for count, (words, colour, marker) in COUNTS.items()
        if count in used
    ]
    handles.append(marks.line_handle("claimed: 70 to 95 %", color="#dddddd", linewidth=7))
    marks.legend(ax, handles)


def _caption(data: SparsityFigure) -> str:
    return (
        "Of the weights that were trained: under LoRA the adapted ones with (alpha / r) B A added. "
        "In brackets the precision in which they were trained. Only the first count is of those "
        "weights themselves, the others are of a copy in bf16, which hides small changes: where "
        "they differ, sparsity is made by rounding. Bars are 90 % t intervals over seeds."
    )


def _missing(sweep: Sweep, search: SearchSummary, data: SparsityFigure) -> str:
    return "" if data.rows else "No run at an arm's learning rate has its weights measured yet."


def lacks(sweep: Sweep) -> str:
    """What a figure about weights would need."""
    measured = any("trained" in p.get("weights", {}) for p in sweep.probes.values())
    return "" if measured else NEEDED


FIGURE = FigureSpec(
    name="update_sparsity",
    title="What training left unchanged",
    order=110,
    data=sparsity_figure,
    draw=draw_sparsity,
    caption=_caption,
    missing=_missing,
    lacks=lacks,
    height=lambda data: max(3.2, FRAME + ROW * len(data.rows)),
)
