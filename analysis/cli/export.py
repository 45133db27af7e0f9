"""``python -m analysis export DIRECTORY``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from analysis.reading.export import FORMATS, export
from analysis.reading.load import load

HELP = "write runs, metrics and excluded runs as tables for other programs"
EXAMPLES = """\
  python -m analysis export runs/quickstart --format csv     tables in runs/quickstart/export
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The experiment directory, the format, and where to write."""
    parser.add_argument(
        "directory", type=Path, help="experiment directory, for example runs/quickstart"
    )
    parser.add_argument("--format", choices=FORMATS, default="parquet")
    parser.add_argument("--out", type=Path, help="directory to write; DIRECTORY/export without it")


def run(options: Namespace) -> None:
    """Write the tables and print their paths."""
    sweep = load(options.directory)
    for path in export(sweep, options.out or sweep.path / "export", options.format):
        print(path)
