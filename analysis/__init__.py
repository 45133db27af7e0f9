"""Sweeps as frames, optima with intervals, claims with verdicts, figures and reports.

The commands are in ``python -m analysis --help``; from a notebook the same verbs are::

    import analysis

    sweep = analysis.load("runs/quickstart")   # or the URL of a sweep's storage
    analysis.verdicts(sweep)          # a frame: one row a verdict
    analysis.arm_table(sweep)         # a frame: one row an arm, every estimate with its interval
    analysis.figure(sweep, "ranks")   # a matplotlib figure
    analysis.report(sweep)            # report/index.html and all that belongs to it
"""

from __future__ import annotations

from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from analysis.reading.sweep import Sweep

# Everything is imported where it is used: `python -m analysis claims` need not wait for matplotlib.


def load(place: str | PathLike[str], experiment: str | None = None) -> Sweep:
    """Read an experiment, finished or not: its directory, ours or imported, or its storage.

    Args:
        place: ``runs/<experiment>``, or ``postgresql://USER@HOST/DATABASE``, ``sqlite:///FILE`` or
            ``journal:FILE``.
        experiment: Its name, where a storage holds several.

    Raises:
        ValueError: if it is missing, empty or not an experiment.
    """
    from analysis.reading.load import load as load_sweep

    return load_sweep(place if isinstance(place, str) else Path(place), experiment)


def verdicts(sweep: Sweep) -> DataFrame:
    """The verdicts that the sweep is due, one a row; the columns are those of a ``Verdict``."""
    from dataclasses import fields

    from pandas import DataFrame

    from analysis.claims import Verdict, check_claims

    columns = [field.name for field in fields(Verdict)]
    return DataFrame([asdict(verdict) for verdict in check_claims(sweep)], columns=columns)


def arm_table(sweep: Sweep) -> DataFrame:
    """One row an arm: score, learning rates and ratios, each with interval and n, and costs."""
    from analysis.estimates.search import search_summary
    from analysis.reporting.table_frames import arms_frame
    from analysis.reporting.tables import arm_rows

    return arms_frame(arm_rows(sweep, search_summary(sweep)))


def figure(sweep: Sweep, name: str) -> Figure:
    """One figure of the report, by its file name.

    Raises:
        ValueError: if there is no figure of that name, or the sweep lacks its data.
    """
    from analysis.figures.report import draw_figure

    return draw_figure(sweep, name)


def report(sweep: Sweep, out: Path | None = None) -> Path:
    """Write a report: ``report/`` in the experiment directory unless ``out`` names another.

    Returns:
        The page.
    """
    from analysis.reporting.report import write_report

    return write_report(sweep, out).index
