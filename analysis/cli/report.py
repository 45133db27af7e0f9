"""``python -m analysis report DIRECTORY|URL``."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from analysis.cli.places import add_place, read
from analysis.reporting import wording
from analysis.reporting.json_text import to_json
from analysis.reporting.numbers import plural
from study.records.printable import printable

HELP = "write index.html, report.md, figures, tables and claims.json"
EXAMPLES = """\
  python -m analysis report runs/quickstart          figures, verdicts and tables, as a page
  python -m analysis report runs/quickstart --json   the same, and a summary for another program
  python -m analysis report postgresql://me@host/db  the same from anywhere, in EXPERIMENT-report
"""
SLOW_S = 2.0
"""Seconds of reading after which a line on the terminal says that it goes on."""


def add_arguments(parser: ArgumentParser) -> None:
    """The experiment, where to write, and the format of what is printed."""
    add_place(parser)
    parser.add_argument(
        "--out",
        type=Path,
        help="directory to write; without it DIRECTORY/report, or EXPERIMENT-report of a storage",
    )
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")


def run(options: Namespace) -> None:
    """Write the report and print what it says first."""
    start = time.monotonic()
    (sweep,) = read([options.place], options.experiment)
    if time.monotonic() - start > SLOW_S:
        print(f"{plural(len(sweep.runs), 'run')} read; drawing figures", file=sys.stderr)
    from analysis.reporting.report import write_report  # matplotlib: a second to import

    report = write_report(sweep, options.out)
    if options.json:
        print(to_json(report.summary))
        return
    decides_none = report.findings.opening.decides_none
    verdicts = [decides_none] if decides_none else wording.verdict_lines(report.verdicts)
    for line in (*report.headlines, *verdicts):
        print(printable(line))
    print(f"report: {report.index}")
