"""``python -m analysis COMMAND``: the commands are the modules of :mod:`analysis.cli`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from study.records.location import without_passwords
from study.records.printable import printable

COMMANDS = ("report", "claims", "figure", "import_", "export", "compare", "recommend", "simulate")
"""Modules; the underscore of a module whose command is a Python keyword is no part of its name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: Of the command line, without the program's name.

    Returns:
        The exit code: 0, 2 for input that cannot be used, 130 if it was interrupted.
    """
    try:
        options = _parser().parse_args(arguments)
        options.run(options)
        sys.stdout.flush()
    except ValueError as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # `... | head` has read enough; nothing may be written any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: run the command again", file=sys.stderr)
        return 130
    return 0


class _Parser(argparse.ArgumentParser):
    """Its errors quote arguments, of which one may be a URL with a password."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(without_passwords(message)))


def _parser() -> argparse.ArgumentParser:
    modules = {
        name.rstrip("_"): importlib.import_module(f"analysis.cli.{name}") for name in COMMANDS
    }
    parser = _Parser(
        prog="python -m analysis",
        description="Read what `python -m study -m` or another command of `study` wrote.",
        epilog="examples:\n" + "".join(module.EXAMPLES for module in modules.values()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in modules.items():
        command = commands.add_parser(
            name,
            help=module.HELP,
            description=module.HELP[0].upper() + module.HELP[1:] + ".",
            epilog="examples:\n" + module.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
