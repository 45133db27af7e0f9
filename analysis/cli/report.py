"""``python -m analysis report DIRECTORY``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from analysis.reading.load import load
from analysis.reporting import wording

HELP = "write report/index.html, figures, tables and claims.json"
EXAMPLES = """\
  python -m analysis report runs/quickstart          figures, verdicts and tables, as a page
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The experiment directory."""
    parser.add_argument(
        "directory", type=Path, help="experiment directory, for example runs/quickstart"
    )


def run(options: Namespace) -> None:
    """Write the report and print what it says first."""
    from analysis.reporting.report import write_report  # matplotlib: a second to import

    report = write_report(load(options.directory))
    for line in (*report.headlines, *map(wording.verdict_line, report.verdicts)):
        print(line)
    print(f"report: {report.index}")
