"""``python -m analysis compare A B``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from analysis.cli.places import HELP as PLACE_HELP
from analysis.cli.places import METAVAR, add_experiment, read
from analysis.comparing.as_json import comparison_json
from analysis.comparing.experiments import compare_experiments
from analysis.comparing.tables import print_comparison, terminal

HELP = "compare two experiments: the same arms on another model, task, precision or width"
EXAMPLES = """\
  python -m analysis compare runs/a runs/b           what differs, and what carries over
  python -m analysis compare runs/a runs/b --json    every estimate for another program
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Two experiments, and the format."""
    parser.add_argument("a", metavar=METAVAR, help=PLACE_HELP)
    parser.add_argument("b", metavar=METAVAR, help="the one that is compared with it")
    add_experiment(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Namespace) -> None:
    """Print the comparison."""
    found = compare_experiments(*read([options.a, options.b], options.experiment))
    if options.json:
        print(comparison_json(found))
    else:
        print_comparison(found, terminal())
