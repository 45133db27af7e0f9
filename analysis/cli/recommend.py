"""``python -m analysis recommend [RUNS ...] --method lora``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from analysis.advising.advice import METHODS, recommend
from analysis.advising.as_json import advice_json
from analysis.advising.printing import lines
from analysis.cli.places import HELP as PLACE_HELP
from analysis.cli.places import METAVAR, add_experiment, read
from study.records.printable import printable

HELP = "a starting learning-rate grid and rank, from published rules and your own sweeps"
EXAMPLES = """\
  python -m analysis recommend --method lora --model-family qwen3 --hidden-size 2560
                                                     from what is published
  python -m analysis recommend runs/quickstart --method lora --rank 8
                                                     from your own sweep, beside that
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Own sweeps, the method, the model, and the format."""
    parser.add_argument("runs", nargs="*", metavar=METAVAR, help=f"of your own: {PLACE_HELP}")
    add_experiment(parser)
    parser.add_argument("--method", required=True, choices=METHODS)
    parser.add_argument("--rank", type=int, help="of LoRA; left out: advised")
    parser.add_argument("--model-family", help="qwen3 or llama: those with a published rule")
    parser.add_argument("--hidden-size", type=int, help="width of the model")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Namespace) -> None:
    """Print the advice."""
    found = recommend(
        read(options.runs, options.experiment),
        options.method,
        options.rank,
        options.model_family,
        options.hidden_size,
    )
    if options.json:
        print(advice_json(found))
        return
    for line in lines(found):
        print(printable(line))
