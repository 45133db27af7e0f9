"""Every figure on every awkward sweep: what stands on the axes, never pixels."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.estimates.search import SearchSummary, search_summary
from analysis.figures.report import figures
from analysis.figures.spec import FigureSpec
from analysis.figures.style import BLACK
from analysis.reading.sweep import Sweep
from tests.unit.analysis.ablated_sweeps import finished, gaussian
from tests.unit.analysis.figures.drawn_sweeps import (
    GRID,
    Drawn,
    batches,
    layer_sets,
    ranks,
    sweep_of,
    widths,
)
from tests.unit.plan.ablations import linear

LOWER = (0.62, 0.55, 0.52, 0.54, 0.9)
RISING = (0.20, 0.30, 0.40, 0.48, 0.50)
HALF = [f"full-search-{rate:g}-{seed}" for rate in GRID[:2] for seed in range(3)]
SWEEPS: dict[str, Callable[[], Sweep]] = {
    "two arms": lambda: sweep_of(ranks(8)),
    "nine arms": lambda: sweep_of(ranks(1, 2, 4, 8, 16, 32, 64, 128)),
    "layer sets": lambda: sweep_of(layer_sets()),
    "batches": lambda: sweep_of(batches()),
    "widths": lambda: sweep_of(widths()),
    "one seed": lambda: sweep_of(ranks(1, 8), seeds=1, reports=0),
    "two seeds": lambda: sweep_of(ranks(1, 8), seeds=2, reports=2),
    "unfinished": lambda: sweep_of(ranks(1, 8), missing=HALF, reports=0),
    "edges": lambda: sweep_of({"full": Drawn(scores=RISING), "lora-r8": Drawn(8)}),
    "diverged": lambda: sweep_of(ranks(1, 8), diverged=[*HALF, "lora-r8-report-0.002-100"]),
    "flat": lambda: sweep_of({n: Drawn(a.rank, scores=(0.18,) * 5) for n, a in ranks(8).items()}),
    "one rate": lambda: sweep_of({n: Drawn(a.rank, scores=(0.4,)) for n, a in ranks(8).items()}),
    "only LoRA": lambda: sweep_of({"lora-r1": Drawn(1), "lora-r8": Drawn(8)}),
    "only FullFT": lambda: sweep_of({"full": Drawn()}),
    "foreign, lower is better": lambda: sweep_of(
        {n: Drawn(a.rank, scores=LOWER) for n, a in ranks(1, 8).items()},
        seeds=1,
        reports=0,
        direction="minimize",
        metric="test_nll",
        base=None,
        kind="imported",
        records=False,
    ),
    "hostile names": lambda: sweep_of(
        {r"_$\frac{": Drawn(model=r"$\alpha{"), "b": Drawn(8, model="_b")}
    ),
    "empty": lambda: sweep_of(ranks(8), missing=[*sweep_of(ranks(8)).runs["run_id"]]),
}


@cache
def case(name: str) -> tuple[Sweep, SearchSummary]:
    """One of the sweeps with its summary."""
    sweep = SWEEPS[name]()
    return sweep, search_summary(sweep)


def drawn(spec: FigureSpec, sweep: Sweep, search: SearchSummary | None = None) -> Figure | None:
    """The figure, or None with the reason checked to be one sentence."""
    search = search or search_summary(sweep)
    lacks = spec.lacks(sweep)
    if lacks:
        assert not lacks.endswith(".") and lacks[:1].strip()
        return None
    data = spec.data(sweep, search)
    missing = spec.missing(sweep, search, data)
    assert spec.caption(data).endswith(".")
    if missing:
        assert missing.endswith(".") and missing[0].isupper()
        return None
    canvas = Figure(figsize=(7.2, spec.height(data)))
    spec.draw(data, canvas.subplots())
    return canvas


def words(canvas: Figure) -> str:
    """Every text of a figure that is no tick label."""
    axes = [text.get_text() for ax in canvas.axes for text in ax.texts]
    titles = [ax.get_title(loc) for ax in canvas.axes for loc in ("left", "center")]
    labels = [label for ax in canvas.axes for label in (ax.get_xlabel(), ax.get_ylabel())]
    over = [canvas.get_suptitle(), canvas.get_supylabel()]
    return "\n".join(filter(None, [*axes, *titles, *labels, *over]))


def entries(canvas: Figure) -> list[str]:
    """What stands in the legend."""
    found = [*canvas.legends, *(ax.get_legend() for ax in canvas.axes)]
    return [text.get_text() for legend in found if legend for text in legend.get_texts()]


OFTEN = ("layer sets", "batches", "widths", "one seed", "foreign, lower is better", "empty")
"""Sweeps that are drawn in every test run; the others by night."""


@pytest.mark.parametrize(
    "name",
    [name if name in OFTEN else pytest.param(name, marks=pytest.mark.nightly) for name in SWEEPS],
)
@pytest.mark.parametrize("spec", figures(), ids=lambda spec: spec.name)
def test_a_figure_is_drawn_in_full_or_says_why_not(spec: FigureSpec, name: str) -> None:
    canvas = drawn(spec, *case(name))
    if canvas is None:
        return
    said = words(canvas)

    assert "arithmetic (sum3)" in said  # model and task
    assert "seed" in said  # n
    assert all(ax.get_xlabel() for ax in lowest(canvas))
    # FullFT has an entry in every legend that names arms, and it is black.
    assert 0 < len(entries(canvas)) <= 32
    assert all(len(entry) < 48 for entry in entries(canvas))
    for ax in canvas.axes:
        if ax.axison:
            low, high = ax.get_ylim()
            assert low != high and ax.get_xlim()[0] != ax.get_xlim()[1]


def lowest(canvas: Figure) -> list[Axes]:
    """The axes, or the last panel of each column."""
    shown = [ax for ax in canvas.axes if ax.axison]
    columns = {ax.get_subplotspec().colspan.start: ax for ax in shown}  # type: ignore[union-attr]
    return list(columns.values())


SCORED = (
    "ablation",
    "learning_rates",
    "ranks",
    "learning_curves",
    "learning_by_flops",
    "batch",
    "layers",
    "pareto",
    "envelope",
)


OF_RATES = [spec for spec in figures() if not spec.name.startswith("update_")]
"""What probes measured of weights has axes of its own: see test_update_figures."""


@pytest.mark.parametrize("spec", OF_RATES, ids=lambda spec: spec.name)
def test_scores_are_labelled_by_their_metric_and_ratios_by_what_they_divide(
    spec: FigureSpec,
) -> None:
    arms = {**layer_sets(), **widths()} if spec.name == "ratio_by_width" else layer_sets()
    if spec.name == "batch":
        arms = batches()
    sweep = finished(linear, gaussian(0.05)) if spec.name == "ablation" else sweep_of(arms)
    canvas = drawn(spec, sweep)

    assert canvas is not None
    if spec.name in SCORED:
        assert "held-out accuracy, sampled" in words(canvas)
    elif spec.name.startswith("ratio"):
        assert "LR*(LoRA) / LR*(FullFT)" in words(canvas)
    else:
        assert "learning rate" in words(canvas)


@pytest.mark.parametrize("spec", figures(), ids=lambda spec: spec.name)
@pytest.mark.parametrize(
    ("seeds", "said"), [(1, "no interval: n = 1"), (2, "no interval: n = 2"), (3, "")]
)
def test_fewer_than_three_seeds_have_no_interval_and_the_subtitle_says_so(
    spec: FigureSpec, seeds: int, said: str
) -> None:
    canvas = drawn(spec, sweep_of(ranks(4, 8), seeds=seeds, reports=seeds))
    if canvas is None or spec.name == "envelope":
        return
    shown = words(canvas)

    assert said in shown
    assert ("no interval" in shown) == (seeds < 3)
    stated = [entry for entry in entries(canvas) if "90 %" in entry]
    assert bool(stated) == (seeds >= 3)


def test_rates_that_are_only_bounds_have_no_interval_and_the_subtitle_says_so() -> None:
    spec = next(spec for spec in figures() if spec.name == "best_learning_rates")
    canvas = drawn(spec, sweep_of({"full": Drawn(scores=RISING)}))

    assert canvas is not None
    assert "no interval: no LR* inside its grid" in " ".join(words(canvas).split())
    labels = [text.get_text() for text in canvas.axes[0].get_yticklabels()]
    assert labels == ["full\n(edge_high)"]


def test_extremes_over_rates_never_have_an_interval() -> None:
    spec = next(spec for spec in figures() if spec.name == "envelope")
    canvas = drawn(spec, sweep_of(ranks(8)))
    assert canvas is not None and "no interval of extremes" in words(canvas)


@pytest.mark.parametrize("spec", figures(), ids=lambda spec: spec.name)
def test_full_is_black_and_nothing_else_is(spec: FigureSpec) -> None:
    canvas = drawn(spec, sweep_of(ranks(4, 8)))
    if canvas is None or "full" not in "".join(entries(canvas)):
        return
    found = [*canvas.legends, *(ax.get_legend() for ax in canvas.axes)]
    for legend in filter(None, found):
        for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True):
            black = getattr(handle, "get_color", lambda: "")() == BLACK
            assert black == text.get_text().startswith("full")


def test_eighteen_models_are_small_multiples_with_a_short_legend() -> None:
    arms = {
        f"m{i}-r{r}": Drawn(r, model=f"vendor/M{i}", scores=LOWER)
        for i in range(18)
        for r in (1, 4, 16, 64)
    }
    sweep = sweep_of(arms, seeds=1, reports=0, direction="minimize", metric="nll", base=None)
    spec = next(spec for spec in figures() if spec.name == "learning_rates")
    canvas = drawn(spec, sweep)

    assert canvas is not None
    panels = [ax for ax in canvas.axes if ax.axison]
    assert len(panels) == 18
    assert [ax.get_title() for ax in panels][:2] == ["M0", "M1"]
    assert [e for e in entries(canvas) if e.startswith("LoRA")] == [
        f"LoRA r={r}" for r in (1, 4, 16, 64)
    ]
    assert "nll (lower is better)" in words(canvas).lower()
