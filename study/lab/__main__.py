"""Command line of the lab models: `python -m study.lab build <name> [--out DIR]`."""

import argparse
from pathlib import Path
from typing import Any

from study.lab import LAB_MODELS, cache_path
from study.lab.recipe import RECIPES

EXAMPLES = """examples:
  python -m study.lab build lab256              into the user's cache, where it is found
  python -m study.lab build lab64 --out DIR    a shipped model again, for comparison
"""


def main() -> None:
    """Parses the command line and runs the command."""
    arguments = _parser().parse_args()
    run_build(arguments.name, arguments.out or cache_path(arguments.name))


def run_build(name: str, out: Path) -> None:
    """Builds one model with a progress bar and prints its accuracy by family."""
    from tqdm import tqdm

    from study.lab.build import build

    recipe = RECIPES[name]
    steps = sum(stage.steps for stage in recipe.stages)
    print(f"building {name} into {out}: about {recipe.minutes} minutes on one CPU core")
    with tqdm(total=steps, unit="step", mininterval=1.0) as bar:

        def progress(done: int, loss: float) -> None:
            bar.update(done - bar.n)
            bar.set_postfix(loss=f"{loss:.3f}", refresh=False)

        record = build(recipe, out, progress)
    print(accuracy_table(record["accuracy"]))


def accuracy_table(accuracy: dict[str, dict[str, Any]]) -> str:
    """Returns the accuracies as a text table: family, sampled at temperature 1, greedy, n."""
    lines = [f"{'family':<12} {'sampled':>8} {'greedy':>8} {'n':>6}"]
    for family, row in accuracy.items():
        lines.append(f"{family:<12} {row['sampled']:>8.3f} {row['greedy']:>8.3f} {row['n']:>6}")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m study.lab",
        description="Builds the tiny language models of the lab.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)
    build_command = commands.add_parser("build", help="pre-train a model and save it")
    build_command.add_argument("name", choices=LAB_MODELS)
    build_command.add_argument("--out", type=Path, help="directory (default: the user's cache)")
    return parser


if __name__ == "__main__":
    main()
