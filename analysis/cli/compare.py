"""``python -m analysis compare A B``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from analysis.comparing.as_json import comparison_json
from analysis.comparing.experiments import compare_experiments
from analysis.comparing.tables import print_comparison, terminal
from analysis.reading.load import load

HELP = "compare two experiments: the same arms on another model, task, precision or width"
EXAMPLES = """\
  python -m analysis compare runs/a runs/b           what differs, and what carries over
  python -m analysis compare runs/a runs/b --json    every estimate for another program
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Two experiment directories, and the format."""
    parser.add_argument("a", type=Path, help="experiment directory, ours or imported")
    parser.add_argument("b", type=Path, help="the one that is compared with it")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Namespace) -> None:
    """Print the comparison."""
    found = compare_experiments(load(options.a), load(options.b))
    if options.json:
        print(comparison_json(found))
    else:
        print_comparison(found, terminal())
