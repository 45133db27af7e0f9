"""What an import says at its end: what was read, and how each doubtful thing was resolved."""

from __future__ import annotations

from collections import Counter

import pandas as pd

from analysis.reading.arms import count_text, rate_text
from analysis.reading.importing.tables import CELL

SHOWN = 6
"""Names or cells that a line lists; more are counted."""


def arms_line(runs: pd.DataFrame) -> str:
    """``49 runs in 3 arms (full, lora-r1, lora-r16), 1 seed``."""
    names = list(dict.fromkeys(runs["arm"]))
    runs_text, arms_text = count_text([len(runs)], "run"), count_text([len(names)], "arm")
    seeds_text = count_text([runs["seed"].nunique()], "seed")
    return f"{runs_text} in {arms_text} ({_some(names)}), {seeds_text}"


def left_lines(excluded: pd.DataFrame, unfilled: pd.DataFrame) -> list[str]:
    """How many rows are no results, by kind, and which cells stay empty."""
    counts = Counter(str(kind) for kind in excluded["kind"])
    lines = []
    if counts:
        text = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        lines.append(f"left out: {text}; excluded.csv says why")
    if len(unfilled):
        places = zip(unfilled["arm"], unfilled["learning_rate"], strict=True)
        cells = [f"{arm} at {rate_text(rate)}" for arm, rate in places]
        lines.append(
            f"{count_text([len(cells)], 'cell')} without a result ({_some(cells)}): the sweep "
            "counts as unfinished; rows that are taken out of the source leave no hole"
        )
    return lines


def repeated_line(runs: pd.DataFrame) -> str:
    """Cells that hold several runs of one seed, with the spread of their scores; "" if none."""
    scored = runs[runs["score_final"].notna()]
    cells = [rows for _, rows in scored.groupby(CELL, sort=False) if len(rows) > 1]
    if not cells:
        return ""
    spreads = [float(rows["score_final"].max() - rows["score_final"].min()) for rows in cells]
    shown = [_repeated(rows) for rows in cells]
    return (
        f"{count_text([len(cells)], 'cell')} ran more than once with one seed, averaged as one; "
        f"scores of a cell differ by up to {max(spreads):.3g}: {_some(shown)}"
    )


def _repeated(rows: pd.DataFrame) -> str:
    arm, rate = str(rows["arm"].iloc[0]), float(rows["learning_rate"].iloc[0])
    scores = ", ".join(f"{score:g}" for score in rows["score_final"])
    return f"{arm} at {rate_text(rate)} ({scores})"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
