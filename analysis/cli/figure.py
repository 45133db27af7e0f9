"""``python -m analysis figure KIND FILE``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from analysis.reading.adapters_file import read_adapters
from analysis.reading.bench_file import read_bench

HELP = "draw a JSON file of figures, beside it"
EXAMPLES = """\
  python -m analysis figure bench bench.json         what python -m study.bench measured
  python -m analysis figure adapters adapters.json   what python -m study.adapters eval measured
"""
KINDS = ("bench", "adapters")


def add_arguments(parser: ArgumentParser) -> None:
    """What wrote the file, and the file."""
    parser.add_argument("kind", choices=KINDS, help="what wrote it: python -m study.KIND")
    parser.add_argument("file", type=Path, help="for example bench.json")


def run(options: Namespace) -> None:
    """Draw the file and print the paths of the figures."""
    for path in _draw(options.kind, options.file):
        print(path)


def _draw(kind: str, file: Path) -> list[Path]:
    if kind == "bench":
        from analysis.figures.bench import write_bench_figures  # matplotlib: a second to import

        return write_bench_figures(read_bench(file), file.parent, file.stem)
    from analysis.figures.adapters import write_adapter_figure

    return [write_adapter_figure(read_adapters(file), file.parent, file.stem)]
