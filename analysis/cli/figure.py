"""``python -m analysis figure KIND FILE``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from analysis.reading.bench_file import read_bench

HELP = "draw a JSON file of figures, beside it"
EXAMPLES = """\
  python -m analysis figure bench bench.json         what python -m study.bench measured
"""


def add_arguments(parser: ArgumentParser) -> None:
    """What wrote the file, and the file."""
    parser.add_argument("kind", choices=["bench"], help="what wrote it: python -m study.KIND")
    parser.add_argument("file", type=Path, help="for example bench.json")


def run(options: Namespace) -> None:
    """Draw the file and print the paths of the figures."""
    from analysis.figures.bench import write_bench_figures  # matplotlib: a second to import

    for path in write_bench_figures(
        read_bench(options.file), options.file.parent, options.file.stem
    ):
        print(path)
