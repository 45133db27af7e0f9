"""``python -m analysis export DIRECTORY|URL``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from analysis.cli.places import add_place, read
from analysis.reading.export import FORMATS, export

HELP = "write runs, metrics and excluded runs as tables for other programs"
EXAMPLES = """\
  python -m analysis export runs/quickstart --format csv     tables in runs/quickstart/export
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The experiment, the format, and where to write."""
    add_place(parser)
    parser.add_argument("--format", choices=FORMATS, default="parquet")
    parser.add_argument(
        "--out",
        type=Path,
        help="directory to write; without it DIRECTORY/export, or EXPERIMENT-export of a storage",
    )


def run(options: Namespace) -> None:
    """Write the tables and print their paths."""
    (sweep,) = read([options.place], options.experiment)
    for path in export(sweep, options.out or sweep.beside("export"), options.format):
        print(path)
