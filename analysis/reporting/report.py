"""One experiment -> ``report/``: a page that needs nothing else, figures, tables, verdicts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pandas import DataFrame

from analysis.claims.verdict import Verdict
from analysis.figures.report import FigureFile, write_figures
from analysis.reading.csv_file import write_csv
from analysis.reading.sweep import Sweep
from analysis.reporting.findings import Findings, find
from analysis.reporting.json_text import claims_json
from analysis.reporting.pages import html_page, markdown_page
from analysis.reporting.summary_json import summary_of
from analysis.reporting.table_frames import (
    arms_frame,
    cells_frame,
    ranks_frame,
    repeats_frame,
    statuses_frame,
    tasks_frame,
)
from analysis.reporting.weights import weights_frame


@dataclass(frozen=True)
class Report:
    """What was written and what it says."""

    index: Path
    findings: Findings
    figures: list[FigureFile]

    @property
    def headlines(self) -> list[str]:
        """The page's first lines: its subject, what is unfinished, answers, scores and rates."""
        return self.findings.headlines

    @property
    def verdicts(self) -> list[Verdict]:
        """Every verdict of the sweep."""
        return self.findings.verdicts

    @property
    def summary(self) -> dict[str, Any]:
        """The report as plain data, for another program; paths are relative to ``report/``."""
        return summary_of(self.findings, self.figures)


def write_report(sweep: Sweep, out: Path | None = None) -> Report:
    """Write the report of an experiment, finished or not.

    ``index.html``, ``report.md``, ``claims.json``, ``excluded.csv``, ``figures/*.png|pdf``,
    ``tables/*.csv``.

    Args:
        sweep: The experiment.
        out: The directory to write; None: ``report/`` in the experiment directory, or
            ``<experiment>-report/`` here for one that was rebuilt from a storage.

    Raises:
        ValueError: if the directory cannot be made.
    """
    out = sweep.beside("report") if out is None else out
    try:
        (out / "tables").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"cannot write to {out}: {error.strerror}") from error
    found = find(sweep)
    figures = write_figures(sweep, found.search, out / "figures")
    for name, frame in _tables(found).items():
        write_csv(frame, out / "tables" / f"{name}.csv")
    write_csv(sweep.excluded, out / "excluded.csv")
    _publish(out / "claims.json", claims_json(found.verdicts) + "\n")
    _publish(out / "report.md", markdown_page(found, figures))
    _publish(out / "index.html", html_page(found, figures))
    return Report(out / "index.html", found, figures)


def _tables(found: Findings) -> dict[str, DataFrame]:
    tables = {
        "arms": arms_frame(found.arms),
        "learning_rates": cells_frame(found.cells),
        "rank_ratios": ranks_frame(found.ranks),
        "repeats": repeats_frame(found.repeats),
        "statuses": statuses_frame(found.statuses),
        "runs": found.sweep.runs,
        "failed_attempts": found.sweep.attempts,
    }
    tables |= {"weights": weights_frame(found.weights)} if found.weights else {}
    return tables | ({"tasks": tasks_frame(found.tasks)} if found.tasks else {})


def _publish(path: Path, text: str) -> None:
    """Write, then rename: a reader never sees half a page."""
    draft = path.with_suffix(f"{path.suffix}.tmp")
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, path)
