"""The commands of ``analysis``: ``python -m analysis report|claims DIRECTORY``, ``figure``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis import wording
from analysis.claims import check_claims
from analysis.load import load

EXAMPLES = """\
examples:
  python -m analysis report runs/quickstart          figures, verdicts and tables, as a page
  python -m analysis claims runs/quickstart          the verdicts, one a line
  python -m analysis claims runs/quickstart --json   the verdicts for another program
  python -m analysis figure bench bench.json         what python -m study.bench measured
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: Of the command line, without the program's name.

    Returns:
        The exit code: 0, or 2 for input that cannot be read.
    """
    options = _parser().parse_args(arguments)
    try:
        if options.command == "report":
            _report(options.directory)
        elif options.command == "figure":
            _figure(options.file)
        else:
            _claims(options.directory, as_json=options.json)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m analysis",
        description="Read what `python -m study -m` or another command of `study` wrote.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in (
        ("report", "write report/index.html, figures, tables and claims.json"),
        ("claims", "print the verdicts"),
    ):
        _add_command(commands, name, text).add_argument(
            "directory", type=Path, help="experiment directory, for example runs/quickstart"
        )
    commands.choices["claims"].add_argument("--json", action="store_true", help="print JSON")
    drawing = _add_command(commands, "figure", "draw a JSON file of figures, beside it")
    drawing.add_argument("kind", choices=["bench"], help="what wrote it: python -m study.KIND")
    drawing.add_argument("file", type=Path, help="for example bench.json")
    return parser


def _add_command(commands: Any, name: str, text: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return command


def _report(directory: Path) -> None:
    from analysis.report import write_report  # matplotlib takes a second that claims need not wait

    report = write_report(load(directory))
    for line in (*report.headlines, *map(wording.verdict_line, report.verdicts)):
        print(line)
    print(f"report: {report.index}")


def _figure(file: Path) -> None:
    from analysis.bench_file import read_bench
    from analysis.figures_bench import write_bench_figures

    for path in write_bench_figures(read_bench(file), file.parent, file.stem):
        print(path)


def _claims(directory: Path, *, as_json: bool) -> None:
    sweep = load(directory)
    found = check_claims(sweep)
    if as_json:
        print(wording.claims_json(found))
        return
    lines = (wording.first_line(sweep), wording.banner(sweep), *map(wording.verdict_line, found))
    for line in filter(None, lines):
        print(line)


if __name__ == "__main__":
    sys.exit(main())
