"""Which runs of an experiment changed the same weights; ``mask_overlap.json`` beside its plan.

Compared are runs at the learning rate that an arm goes by: its report runs, or else its search runs
at the rate that most of them share. Pairs of one arm are those of its seeds, pairs of two arms have
equal seeds. In the file: ``pairs``, each with ``arms``, ``run_ids``, ``seeds`` and, for ``visible``
and ``largest`` (:mod:`study.probes.weights.between`), ``jaccard`` and ``baseline``; over the
matrices of layers that both runs trained.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from study.probes.settings import Settings
from study.probes.stored import StoredRun
from study.probes.weights.between import KINDS, Mask, masks, pooled_shared, shared
from study.probes.weights.pairs import Bases, trained_pairs
from study.probes.weights.result import is_layer_matrix

SCHEMA_VERSION = 1
FILE = "mask_overlap.json"
Masks = Mapping[str, Mapping[str, Mask]]
"""Masks of a run by matrix, then by kind."""


def compared_runs(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """Of every arm the completed runs at one learning rate, those of the report phase first."""
    arms: dict[str, list[StoredRun]] = {}
    for run in runs:
        if run.record.status == "completed":
            arms.setdefault(run.record.arm, []).append(run)
    return [run for mine in arms.values() for run in _at_one_rate(mine)]


def _at_one_rate(runs: Sequence[StoredRun]) -> list[StoredRun]:
    report = [run for run in runs if run.record.phase == "report"]
    found = report or list(runs)
    rate = Counter(run.record.learning_rate for run in found).most_common(1)[0][0]
    return [run for run in found if run.record.learning_rate == rate]


def run_pairs(runs: Sequence[StoredRun]) -> list[tuple[StoredRun, StoredRun]]:
    """Pairs of seeds inside an arm, and pairs of arms at equal seeds; of one phase."""
    return [
        (a, b)
        for a, b in itertools.combinations(runs, 2)
        if a.record.phase == b.record.phase
        and (a.record.arm == b.record.arm) != (a.record.seed == b.record.seed)
    ]


def measure_overlaps(
    runs: Sequence[StoredRun], bases: Bases, settings: Settings, told: Callable[[str], None]
) -> dict[str, Any]:
    """Compare runs in pairs.

    Args:
        runs: From :func:`compared_runs`.
        bases: Base models.
        settings: Share of weights in the mask of the largest.
        told: Told of every run whose masks are done.

    Returns:
        What belongs into :data:`FILE`.

    Raises:
        ValueError: If stored weights are not those that their record describes.
    """
    known: dict[str, Masks] = {}
    for run in runs:
        known[run.record.run_id] = _masks(run, bases, settings)
        told(run.record.run_id)
    rows = [_row(a, b, known[a.record.run_id], known[b.record.run_id]) for a, b in run_pairs(runs)]
    return {"schema_version": SCHEMA_VERSION, "mask_share": settings.mask_share, "pairs": rows}


def _masks(run: StoredRun, bases: Bases, settings: Settings) -> Masks:
    pairs = (pair for pair in trained_pairs(run, bases.of(run)) if is_layer_matrix(pair))
    return {pair.name: masks(pair, settings) for pair in pairs}


def _row(a: StoredRun, b: StoredRun, first: Masks, second: Masks) -> dict[str, Any]:
    names = [name for name in first if name in second]
    found = {
        kind: pooled_shared(shared(first[name][kind], second[name][kind]) for name in names)
        for kind in KINDS
    }
    return {
        "arms": [a.record.arm, b.record.arm],
        "run_ids": [a.record.run_id, b.record.run_id],
        "seeds": [a.record.seed, b.record.seed],
        "matrices": len(names),
        **{kind: one.as_json() for kind, one in found.items()},
    }


def overlap_rows(found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Means over pairs, a row for each arm and for each pair of arms.

    Returns:
        Arms, number of pairs, then Jaccard index and baseline of either kind; dashes for none.
    """
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in found["pairs"]:
        groups.setdefault(tuple(row["arms"]), []).append(row)
    return [
        (
            f"{a}, seeds" if a == b else f"{a} / {b}",
            str(len(rows)),
            *(_mean(rows, kind, name) for kind in KINDS for name in ("jaccard", "baseline")),
        )
        for (a, b), rows in groups.items()
    ]


def _mean(rows: Sequence[Mapping[str, Any]], kind: str, name: str) -> str:
    values = [row[kind][name] for row in rows if row[kind][name] is not None]
    return f"{fmean(values):.3f}" if values else "-"
