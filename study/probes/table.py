"""Probes of stored runs as a table for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from study.probes.settings import range_coverage
from study.records.printable import printable

Rows = Sequence[tuple[str, Mapping[str, Any]]]
"""Name of a run, module type or layer, and its summary from :mod:`.weights.groups`."""
NULL, NULL_NAME = "turned", "with the singular values of the real one"
"""Updates of equal rank: what is judged is where an update points, not how many directions it has.
"""
NO_VALUE = "-"
HEADINGS = ("bf16", "fp32", "norm", "rank", "top 1", "angle", "shift", "princ.", "new")
EXPLANATION = (
    "bf16, fp32: weights left unchanged in that precision. norm: of the update over that of the "
    "matrix. rank: effective rank out of the full one. top 1: energy in the largest direction. "
    "angle: mean turn of the leading left subspace in degrees. shift: of the singular values. "
    "princ.: largest entries of the update on principal weights, 1 is independence. new: intruder "
    "dimensions per matrix. < and >: below or above all of {draws} random updates {null}, which "
    "one more random update is in {chance:.0%} of cases."
)


OVERLAP_HEADINGS = ("pairs", "visible", "chance", "largest", "chance")
OVERLAP_EXPLANATION = (
    "Jaccard index of the weights that two runs changed: of those changed in either, the share "
    "changed in both; chance: of independent changes of equal density. visible: changed in bf16, "
    "whose rounding picks small weights by itself. largest: the {share:.0%} largest entries of "
    "each update. Means over pairs, which are not independent: they share runs."
)


def overlap_table(rows: Sequence[tuple[str, ...]], share: float) -> RenderableType:
    """Which runs changed the same weights, and below it what the numbers mean.

    Args:
        rows: From :func:`study.probes.overlaps.overlap_rows`.
        share: Of weights among the largest.
    """
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
    table.add_column("arms", overflow="fold")
    for heading in OVERLAP_HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, *numbers in rows:
        table.add_row(Text(printable(name, keep="")), *numbers)
    return Group(table, Text(OVERLAP_EXPLANATION.format(share=share), "dim"))


def probe_table(first: str, rows: Rows, draws: int) -> RenderableType:
    """The most telling numbers, a row each, and below them what they mean.

    Args:
        first: Heading of the names.
        rows: What is shown.
        draws: Random updates of each kind.
    """
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    table.add_column(first, overflow="fold")
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, summary in rows:
        table.add_row(Text(printable(name, keep="")), *map(Text, cells(summary)))
    explanation = EXPLANATION.format(draws=draws, null=NULL_NAME, chance=1 - range_coverage(draws))
    return Group(table, Text(explanation, "dim"))


def cells(summary: Mapping[str, Any]) -> list[str]:
    """The numbers of a row, in the order of :data:`HEADINGS`."""
    observed = summary["observed"]
    return [
        _shown(observed["unchanged_bf16"], ".1%"),
        _shown(observed["unchanged_fp32"], ".1%"),
        _shown(observed["relative_norm"], ".2g"),
        _shown(observed["effective_rank_share"], ".0%"),
        _shown(observed["energy_top_1"], ".0%"),
        _judged(summary, "angle_left_mean_deg", ".2g"),
        _judged(summary, "spectral_shift", ".2g"),
        _judged(summary, "largest_on_principal", ".2f"),
        _judged(summary, "intruders", ".2g"),
    ]


def _shown(value: float | None, digits: str) -> str:
    return NO_VALUE if value is None else f"{value:{digits}}"


def _judged(summary: Mapping[str, Any], name: str, digits: str) -> str:
    """A number, marked where it lies outside of the null's range."""
    value, null = summary["observed"][name], summary["null"][NULL][name]
    mark = " "
    if value is not None and null is not None:
        mark = "<" if value < null["low"] else ">" if value > null["high"] else " "
    return f"{_shown(value, digits)}{mark}"


def behaviour_table(runs: Sequence[tuple[str, Mapping[str, Any]]], samples: int) -> Table:
    """What runs do otherwise than their base: a row a run, base -> tuned.

    Args:
        runs: Names and objects ``behaviour``.
        samples: Of each prompt.
    """
    table = Table(title="behaviour, base -> tuned")
    columns = ("run", "pass@1", f"pass@{samples}", "distinct answers", "crossover", "KL/token")
    for name in columns:
        table.add_column(name, justify="left" if name == "run" else "right")
    for name, found in runs:
        base, tuned = found["base"], found["tuned"]
        ends = [
            f"{base['pass_at_k'][k]:.3f} -> {tuned['pass_at_k'][k]:.3f}"
            for k in ("1", str(samples))
        ]
        answers = " -> ".join(f"{fmean(part['distinct']):.1f}" for part in (base, tuned))
        crossover = found["crossover"]
        kl = f"{found['forward_kl']['per_token']:.3f}"
        name = printable(name, keep="")
        table.add_row(name, *ends, answers, "none" if crossover is None else str(crossover), kl)
    return table
