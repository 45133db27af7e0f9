"""Cells of the arms' tables as text: comparisons, or why there are none; notes; costs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from analysis.estimates.located import Optimum
from analysis.reading.arms import rate_text
from analysis.reporting.costs import Cost
from analysis.reporting.glossary import meaning
from analysis.reporting.numbers import (
    difference_text,
    quantity_text,
    rate_estimate_text,
    ratio_text,
    seconds_text,
)
from analysis.reporting.tables import ArmRow


def difference_cell(row: ArmRow) -> str:
    """An arm's difference to FullFT, or why there is none."""
    shown = difference_text(row.difference) if row.difference else "none: no shared report seeds"
    return _compared(row, row.difference_obstacle) or shown


def ratio_cell(row: ArmRow) -> str:
    """An arm's ratio of best learning rates to FullFT's, or why there is none."""
    centre = row.ratio.centre if row.ratio else None
    return _compared(row, row.ratio_obstacle) or ratio_text(centre)


def _compared(row: ArmRow, obstacle: str) -> str:
    """What stands in the place of a comparison that is not made; empty if it is."""
    if row.arm.is_full:
        return "baseline"
    return f"not compared: {meaning(obstacle)}" if obstacle else ""


def best_rate_cell(found: Optimum | None) -> str:
    """An arm's LR*; at an end of the grid it is a bound, and says so."""
    if found is None or not math.isfinite(found.lr.point):
        return "none"
    ends = [flag for flag in ("edge_low", "edge_high") if flag in found.flags]
    if not ends:
        return rate_estimate_text(found.lr)
    if len(ends) == 2:
        return "not bracketed by the grid"
    side = "at most" if ends == ["edge_low"] else "at least"
    return f"{side} {rate_text(found.lr.point)} (a bound)"


def notes(row: ArmRow) -> str:
    """What a reader of an arm's learning rates must know: edges in words, flags by name."""
    said = [f"{meaning(row.choice.edge)}"] if row.choice and row.choice.edge else []
    if row.optimum is None:
        said.append("not every search run has a score, so there is no LR*")
    else:
        said += row.optimum.flags
    said += [f"{count} x {flag}" for flag, count in row.flags]
    return "; ".join(said)


def cost_columns(costs: Sequence[Cost]) -> dict[str, tuple[str, ...]]:
    """Costs as text, column by column; what no run recorded besides has no column."""
    beside = {
        "Evaluation FLOPs": tuple(quantity_text(cost.evaluation_flops) for cost in costs),
        "Weights on disk": tuple(_size(cost.weights_bytes) for cost in costs),
    }
    return {
        "Trained parameters": tuple(quantity_text(cost.trainable_params) for cost in costs),
        "of": tuple(quantity_text(cost.total_params) for cost in costs),
        "Training FLOPs": tuple(quantity_text(cost.train_flops) for cost in costs),
        "Sampling FLOPs": tuple(quantity_text(cost.rollout_flops) for cost in costs),
        "Wall time, median": tuple(seconds_text(cost.wall_time_s) for cost in costs),
        "Range": tuple(_range(cost.wall_time_range_s) for cost in costs),
        "Peak memory": tuple(_gigabytes(cost.peak_memory_bytes) for cost in costs),
        **{name: cells for name, cells in beside.items() if set(cells) != {"-"}},
        "Completed runs": tuple(str(cost.runs) for cost in costs),
    }


def _range(seconds: tuple[float, float] | None) -> str:
    return "-" if seconds is None else f"{seconds_text(seconds[0])} to {seconds_text(seconds[1])}"


def _size(value: int | None) -> str:
    return "-" if not value else f"{value / 1e6:,.2f} MB"


def _gigabytes(value: int | None) -> str:
    return "-" if not value else f"{value / 1e9:.2f} GB"
