"""The tables of a report as text, for the page and the Markdown; columns that say nothing go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pandas import DataFrame

from analysis.estimates.stats import Estimate
from analysis.reading.arms import rate_text
from analysis.reporting.cell_text import (
    best_rate_cell,
    cost_columns,
    difference_cell,
    notes,
    ratio_cell,
)
from analysis.reporting.cells import Counts
from analysis.reporting.findings import Findings
from analysis.reporting.numbers import (
    difference_text,
    percent_text,
    quotient_text,
    rate_estimate_text,
    ratio_text,
    score_text,
)
from analysis.reporting.tables import ArmRow

FOLD, MAX_ROWS = 60, 400
"""Rows above which a table is folded, and rows that a folded one shows; its CSV has all."""
NOTHING = frozenset({"", "none", "-"})


WEIGHTS: dict[str, tuple[str, Callable[[Estimate | None], str]]] = {
    "unchanged_fp32": ("Unchanged, float32", percent_text),
    "unchanged_bf16": ("Unchanged, bf16", percent_text),
    "relative_norm": ("Norm of the update", quotient_text),
    "effective_rank_share": ("Effective rank of the full one", percent_text),
    "energy_top_1": ("Energy in one direction", percent_text),
    "angle_left_mean_deg": ("Turn of the leading directions (degrees)", quotient_text),
    "principal_over_random": ("On principal weights, over random", quotient_text),
    "spectral_shift_over_random": ("Spectral shift, over random", quotient_text),
    "intruders": ("Intruder dimensions per matrix", quotient_text),
}
"""Title and cell of each statistic of the weights."""


@dataclass(frozen=True)
class Column:
    """One column."""

    title: str
    cells: tuple[str, ...]
    numeric: bool = True
    kept: bool = False
    """Whether it stays though every cell says nothing."""

    @property
    def says_something(self) -> bool:
        """Whether any cell does."""
        return self.kept or not NOTHING.issuperset(self.cells)


@dataclass(frozen=True)
class Table:
    """A table whose first column heads the rows."""

    title: str
    columns: tuple[Column, ...]
    total: int
    """Rows there are; the columns may hold fewer."""
    csv: str
    """Where all rows are, relative to ``report/``."""
    marked: frozenset[int]
    """Rows that stand out."""
    fold: int
    """Rows above which the page shows it closed."""

    @property
    def folded(self) -> bool:
        """Whether the page shows it closed."""
        return self.total > self.fold

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """Cells row by row."""
        return list(zip(*(column.cells for column in self.columns), strict=True))


def _table(
    title: str,
    columns: Sequence[Column],
    total: int,
    csv: str,
    marked: frozenset[int] = frozenset(),
    fold: int | None = None,
) -> Table:
    kept = tuple(column for column in columns if column.says_something)
    return Table(title, kept, total, csv, marked, FOLD if fold is None else fold)


def scores_table(found: Findings) -> Table:
    """Scores by arm, with the noise floor beside the gaps."""
    rows = found.arms[:MAX_ROWS]
    floor = found.search.floor
    gap = "Minus FullFT" + (f" (noise floor {floor.sd:.3f})" if floor else "")
    compared = any(not row.arm.is_full and row.difference for row in rows)
    columns = [
        _names(rows),
        Column("Score", tuple(score_text(row.score) for row in rows), kept=True),
        Column("n", tuple(str(row.score.n if row.score else 0) for row in rows)),
        Column("From", tuple(row.score_from for row in rows), numeric=False),
        Column("Untrained", tuple(score_text(row.base) for row in rows)),
        Column("Gain", tuple(difference_text(row.gain) for row in rows)),
    ]
    if any(row.difference or row.difference_obstacle for row in rows):
        columns.append(Column(gap, tuple(difference_cell(row) for row in rows)))
    if compared:
        n = (str(row.difference.n if row.difference else 0) for row in rows)
        columns.append(Column("n of the difference", tuple(n)))
    columns.append(Column("Greedy", tuple(score_text(row.greedy) for row in rows)))
    return _table("Scores of the arms", columns, len(found.arms), "tables/arms.csv")


def _names(rows: Sequence[ArmRow]) -> Column:
    return Column("Arm", tuple(row.arm.name for row in rows), numeric=False)


def rates_table(found: Findings) -> Table:
    """Best learning rates by arm."""
    rows = found.arms[:MAX_ROWS]
    optima = [row.optimum for row in rows]
    columns = [
        _names(rows),
        Column("Selected", tuple(_selected(row) for row in rows)),
        Column("Best (LR*)", tuple(best_rate_cell(o) for o in optima)),
        Column("Plateau from", tuple(rate_estimate_text(o.ramp if o else None) for o in optima)),
        Column("Plateau to", tuple(rate_estimate_text(o.cliff if o else None) for o in optima)),
    ]
    if any(row.arm.is_full for row in rows):
        columns.append(Column("Ratio to FullFT", tuple(ratio_cell(row) for row in rows)))
    columns += [
        Column("n", tuple(str(o.lr.n if o else 0) for o in optima)),
        Column("Notes", tuple(notes(row) for row in rows), numeric=False),
    ]
    return _table("Best learning rates of the arms", columns, len(found.arms), "tables/arms.csv")


def _selected(row: ArmRow) -> str:
    if row.choice is None:
        return "none"
    return rate_text(row.choice.learning_rate) + (" (so far)" if row.choice.so_far else "")


def ranks_table(found: Findings) -> Table:
    """Ratios between arms that differ in rank alone."""
    rows = found.ranks[:MAX_ROWS]
    ratios = [row.ratio.centre if row.ratio else None for row in rows]
    columns = [
        Column("Arm", tuple(row.arm.name for row in rows), numeric=False),
        Column("Over", tuple(row.reference.name for row in rows), numeric=False),
        Column("Group", tuple(row.group for row in rows), numeric=False),
        Column("Ratio", tuple(map(ratio_text, ratios)), kept=True),
        Column("n", tuple(str(ratio.n if ratio else 0) for ratio in ratios)),
        Column("No interval because", tuple(row.obstacle for row in rows), numeric=False),
    ]
    title = "Best learning rate over that of the lowest rank from 4 up"
    return _table(title, columns, len(found.ranks), "tables/rank_ratios.csv")


def tasks_table(found: Findings) -> Table:
    """Methods over three or more tasks."""
    rows = found.tasks[:MAX_ROWS]
    columns = [
        Column("Arms", tuple(row.name for row in rows), numeric=False),
        Column("Tasks", tuple(str(row.tasks) for row in rows)),
        Column("Interquartile mean", tuple(score_text(row.mean) for row in rows)),
        Column("Beats FullFT with probability", tuple(score_text(row.improvement) for row in rows)),
        Column("n", tuple(str(row.mean.n) for row in rows)),
    ]
    return _table("Methods over all tasks", columns, len(found.tasks), "tables/tasks.csv")


def costs_table(found: Findings) -> Table:
    """What a run costs, by arm."""
    rows = found.arms[:MAX_ROWS]
    cells = cost_columns([row.cost for row in rows])
    columns = [_names(rows), *(Column(title, texts) for title, texts in cells.items())]
    return _table("Cost of a run", columns, len(found.arms), "tables/arms.csv")


def weights_table(found: Findings) -> Table:
    """What training did to the weights, by arm."""
    rows = found.weights[:MAX_ROWS]
    columns = [Column("Arm", tuple(row.arm.name for row in rows), numeric=False)]
    for name, (title, show) in WEIGHTS.items():
        columns.append(Column(title, tuple(show(row.values[name]) for row in rows)))
    counts = (max(v.n for v in row.values.values() if v) for row in rows)
    columns.append(Column("n", tuple(map(str, counts))))
    return _table(
        "What training did to the weights", columns, len(found.weights), "tables/weights.csv"
    )


def cells_table(found: Findings) -> Table:
    """Every learning rate of every arm."""
    rows = found.cells[:MAX_ROWS]
    rates = (("★ " if row.chosen else "") + rate_text(row.learning_rate) for row in rows)
    columns = [
        Column("Arm", tuple(row.arm.name for row in rows), numeric=False),
        Column("Learning rate", tuple(rates)),
        Column("Mean score", tuple(score_text(row.score) for row in rows), kept=True),
        Column("n", tuple(str(row.score.n if row.score else 0) for row in rows)),
        *_statuses([row.statuses for row in rows]),
    ]
    chosen = frozenset(i for i, row in enumerate(rows) if row.chosen)
    total, csv = len(found.cells), "tables/learning_rates.csv"
    return _table("Mean score at every learning rate", columns, total, csv, chosen)


def statuses_table(found: Findings) -> Table:
    """Runs by arm, phase and status."""
    rows = found.statuses[:MAX_ROWS]
    columns = [
        Column("Arm", tuple(row.arm.name for row in rows), numeric=False),
        Column("Phase", tuple(row.phase for row in rows), numeric=False),
        *_statuses([row.statuses for row in rows]),
    ]
    return _table("Runs by status", columns, len(found.statuses), "tables/statuses.csv")


def _statuses(rows: Sequence[Counts]) -> list[Column]:
    """A column for every status that occurs."""
    names = [name for name, _ in rows[0]] if rows else []
    counts = {name: [dict(row)[name] for row in rows] for name in names}
    return [Column(name, tuple(map(str, ns))) for name, ns in counts.items() if any(ns)]


def repeats_table(found: Findings) -> Table:
    """Cells that were run more than once."""
    rows = found.repeats[:MAX_ROWS]
    columns = [
        Column("Arm", tuple(row.arm for row in rows), numeric=False),
        Column("Learning rate", tuple(rate_text(row.learning_rate) for row in rows)),
        Column("Seed", tuple(str(row.seed) for row in rows)),
        Column("Runs", tuple(str(len(row.scores)) for row in rows)),
        Column("Lowest", tuple(f"{row.scores[0]:.4f}" for row in rows)),
        Column("Highest", tuple(f"{row.scores[-1]:.4f}" for row in rows)),
        Column("Spread", tuple(f"{row.spread:.4f}" for row in rows)),
    ]
    total = len(found.repeats)
    return _table(
        "Cells that were run more than once", columns, total, "tables/repeats.csv", fold=12
    )


def excluded_table(frame: DataFrame) -> Table:
    """What was left out, with the reason."""
    names = {"run_id": "Run", "arm": "Arm", "kind": "Kind", "reason": "Reason"}
    return _of_frame("Left out, with the reason", frame, names, "excluded.csv")


def attempts_table(frame: DataFrame) -> Table:
    """Failed attempts of planned runs."""
    names = {"run_id": "Run", "arm": "Arm", "attempt": "Attempt", "status": "Status"}
    names |= {"reason": "Reason", "time": "Time"}
    return _of_frame("Failed attempts", frame, names, "tables/failed_attempts.csv")


def _of_frame(title: str, frame: DataFrame, names: dict[str, str], csv: str) -> Table:
    shown: dict[str, Any] = {name: frame[name].head(MAX_ROWS) for name in names}
    columns = [
        Column(names[name], tuple(map(str, values)), numeric=False)
        for name, values in shown.items()
    ]
    return _table(title, columns, len(frame), csv, fold=12)
