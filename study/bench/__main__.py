"""The command; see :mod:`study.bench`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from study.bench.machine import load_average, machine_facts, use_one_thread
from study.bench.memory import measure_memory
from study.bench.steps import Effort, measure_scaling, measure_steps
from study.bench.sweeps import Size, measure_sweeps
from study.bench.tables import print_machine, print_part
from study.cli import reporting_user_errors
from study.records.files import write_json

DESCRIPTION = "Compare the engines trl and packed on the same runs, in turns, with one thread each."
EXAMPLES = """\
parts: steps (both engines, eight shapes), scaling (packs of 1 to 32 runs), memory, and sweep (36
runs from the command line).

examples:
  python -m study.bench --json bench.json       everything: forty minutes
  python -m study.bench --only steps memory     some parts
  python -m study.bench --quick                 does it work? few steps, no sweep
  python -m analysis figure bench bench.json    draw it
"""
PARTS = ("steps", "scaling", "memory", "sweep")
FULL = Effort(rounds=3, steps=8, warm_up=2)
QUICK = Effort(rounds=2, steps=3, warm_up=1, eval_prompts=64)
FULL_SWEEP = Size(seeds=3, steps=150, evaluations=6)  # runs as long as the quickstart's
QUICK_SWEEP = Size(seeds=1, steps=6, evaluations=1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print tables, and write the JSON file after every part."""
    options = parse(arguments)
    use_one_thread()
    console = Console()
    results: dict[str, Any] = {}
    start = end = load_average()
    with reporting_user_errors():
        measure = measurements(options.quick)
        for part in (part for part in PARTS if part in options.only):
            found = measure[part](console)
            end = load_average() if part != "sweep" else end
            results |= {"machine": machine_facts(start, end), part: found}
            print_part(part, found, console)
            if options.json:
                write_json(options.json, results)
    print_machine(results["machine"], console)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line: ``json`` (a path or None), ``quick``, ``only`` (parts)."""
    parser = argparse.ArgumentParser(
        prog="python -m study.bench",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="measure these parts")
    parser.add_argument(
        "--quick", action="store_true", help="few steps, and no sweep unless --only names it"
    )
    options = parser.parse_args(arguments)
    options.only = options.only or (PARTS[:-1] if options.quick else PARTS)
    return options


def measurements(quick: bool) -> dict[str, Callable[[Console], Any]]:
    """What measures each part."""
    effort, size = (QUICK, QUICK_SWEEP) if quick else (FULL, FULL_SWEEP)
    # Packs of 32 evaluated on 512 prompts would take most of the time that scaling has.
    short = replace(effort, steps=effort.steps // 2 or 1, eval_prompts=64)
    return {
        "steps": lambda console: measure_steps(effort, console),
        "scaling": lambda console: measure_scaling(short, console),
        "memory": lambda console: measure_memory(replace(effort, steps=3), console),
        "sweep": lambda console: measure_sweeps(size, console),
    }


if __name__ == "__main__":
    main()
