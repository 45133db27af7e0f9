"""The command; see :mod:`study.adapters`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from study.adapters.stored import Adapter, find_adapters, shared_base
from study.cli import reporting_user_errors
from study.records.files import write_json
from study.records.printable import printable

DESCRIPTION = """\
What can be done with trained adapters: measure many on many tasks on one frozen base, add them up,
merge one into the base, or make a directory for PEFT or vLLM. An adapter is given by the directory
of its run, or of its experiment for all of them; NAME=DIR gives one a name.
"""
EXAMPLES = """\
examples:
  python -m study.adapters list runs/quickstart
  python -m study.adapters eval sums=RUN sort=RUN --tasks sum3 sorting gcd --out adapters.json
  python -m study.adapters combine sums=RUN sort=RUN --weights 1 0.5 --out both/
  python -m study.adapters merge RUN --out merged/
  python -m study.adapters export RUN --format vllm --base Qwen/Qwen3-0.6B --out served/
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m study.adapters",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, add in COMMANDS.items():
        add(commands.add_parser(name, help=HELP[name], description=HELP[name]))
    options = parser.parse_args(arguments)
    with reporting_user_errors():
        options.run(options, Console())


HELP = {
    "list": "rank, targets, size, base and score of each adapter",
    "eval": "accuracy of no adapter, of each, and of their sum, on every task, in packed passes",
    "combine": "write one adapter that is a weighted sum of others",
    "merge": "write the base with a weighted sum of adapters in its weights",
    "export": "write an adapter for PEFT or vLLM",
}


def _add_list(parser: argparse.ArgumentParser) -> None:
    _add_adapters(parser)
    parser.set_defaults(run=_list)


def _add_eval(parser: argparse.ArgumentParser) -> None:
    _add_adapters(parser)
    families = "arithmetic families; by default the tasks that the adapters were trained on"
    parser.add_argument("--tasks", nargs="+", metavar="FAMILY", default=[], help=families)
    sums = "sums to measure too, such as sums+sort (default: the sum of all)"
    parser.add_argument("--combine", nargs="*", metavar="A+B", help=sums)
    parser.add_argument("--prompts", type=int, default=512, help="of each task (default: 512)")
    parser.add_argument("--out", type=Path, help="a JSON file, for python -m analysis figure")
    parser.set_defaults(run=_eval)


def _add_combine(parser: argparse.ArgumentParser) -> None:
    _add_adapters(parser)
    _add_weights(parser)
    how = "cat: updates add up, and so do ranks; linear: factors are averaged, the rank stays"
    parser.add_argument("--how", choices=["cat", "linear"], default="cat", help=how)
    _add_out(parser)
    parser.set_defaults(run=_combine)


def _add_merge(parser: argparse.ArgumentParser) -> None:
    _add_adapters(parser)
    _add_weights(parser)
    _add_out(parser)
    parser.set_defaults(run=_merge)


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("adapter", metavar="DIR", help="the directory of a run")
    parser.add_argument("--format", choices=["peft", "vllm"], default="peft")
    parser.add_argument("--base", help="name of the base where it will be loaded")
    _add_out(parser)
    parser.set_defaults(run=_export)


COMMANDS = {
    "list": _add_list,
    "eval": _add_eval,
    "combine": _add_combine,
    "merge": _add_merge,
    "export": _add_export,
}


def _add_adapters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("adapters", nargs="+", metavar="[NAME=]DIR")


def _add_weights(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--weights", type=float, nargs="+", help="one an adapter (default: 1)")


def _add_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, help="a directory that does not exist")


def _list(options: argparse.Namespace, console: Console) -> None:
    table = Table("adapter", "rank", "scaling", "kB", "base", "task", "score")
    for own in find_adapters(options.adapters):
        score = own.record.score_final
        table.add_row(
            printable(own.name, keep=""),
            str(own.rank),
            f"{own.scaling:g}",
            f"{own.bytes / 1000:.0f}",
            own.record.model,
            own.record.task,
            "-" if score is None else f"{score:.3f}",
        )
    console.print(table)


def _eval(options: argparse.Namespace, console: Console) -> None:
    adapters = find_adapters(options.adapters)
    run = shared_base(adapters)
    if options.prompts < 1:
        raise ValueError(f"--prompts must be at least 1, got {options.prompts}")
    from study.adapters.matrix import NONE, Row, evaluate, task_of  # torch: seconds

    rows = [Row(NONE), *(Row(own.name, ((1.0, own),)) for own in adapters)]
    rows += [
        Row(name, tuple((1.0, own) for own in parts)) for name, parts in _sums(options, adapters)
    ]
    own_tasks = {own.config.task.label: own.config.task for own in adapters}
    tasks = [task_of(name, run.task) for name in options.tasks] or list(own_tasks.values())
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("completions", total=2 * len(rows) * len(tasks) * options.prompts)
        found = evaluate(rows, tasks, options.prompts, lambda n: progress.advance(bar, n))
    console.print(_matrix(found))
    console.print(
        f"accuracy sampled at temperature {run.objective.temperature:g}, {found['level']:.0%} "
        f"intervals over {options.prompts} prompts of each adapter alone (not over seeds); the "
        f"base is bit-identical before and after: {found['base_hash']}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    if options.out:
        write_json(options.out, found)
        console.print(
            f"figure: python -m analysis figure adapters {options.out}",
            markup=False,
            soft_wrap=True,
        )


def _sums(
    options: argparse.Namespace, adapters: Sequence[Adapter]
) -> list[tuple[str, list[Adapter]]]:
    """Sums of adapters, by what they are called."""
    known = {own.name: own for own in adapters}
    asked = options.combine
    if asked is None:
        asked = ["+".join(known)] if len(known) > 1 else []
    found = []
    for name in asked:
        missing = [part for part in name.split("+") if part not in known]
        if missing:
            raise ValueError(f"--combine {name} must name adapters, which are {', '.join(known)}")
        found.append((name, [known[part] for part in name.split("+")]))
    return found


def _matrix(found: dict[str, Any]) -> Table:
    cells = {(cell["adapter"], cell["task"]): cell for cell in found["cells"]}
    table = Table("adapter", *found["tasks"])
    for row in found["rows"]:
        shown = [_cell(cells[row, task]) for task in found["tasks"]]
        table.add_row(printable(row, keep=""), *shown)
    return table


def _cell(cell: dict[str, Any]) -> str:
    sampled = f"{cell['accuracy']:.2f} \\[{cell['low']:.2f}, {cell['high']:.2f}]"
    return f"{sampled}\ngreedy {cell['greedy_accuracy']:.2f}"


def _weighted(options: argparse.Namespace) -> list[tuple[float, Adapter]]:
    adapters = find_adapters(options.adapters)
    weights = options.weights or [1.0] * len(adapters)
    if len(weights) != len(adapters):
        raise ValueError(
            f"--weights must be one an adapter, got {len(weights)} for {len(adapters)} adapters"
        )
    return list(zip(weights, adapters, strict=True))


def _combine(options: argparse.Namespace, console: Console) -> None:
    from study.adapters.change import combine  # torch: seconds

    gap = combine(_weighted(options), options.how, options.out)
    console.print(
        f"{options.out}: its update is within {gap:.1e} (relative) of the weighted sum of updates",
        markup=False,
        soft_wrap=True,
    )


def _merge(options: argparse.Namespace, console: Console) -> None:
    from study.adapters.change import merge  # torch: seconds

    done = merge(_weighted(options), options.out)
    console.print(
        f"{options.out}: logits within {done.logits_gap:.1e} of base and adapter side by side "
        f"(they span {done.logits_range:.1f}); {done.kept:.1%} of the update's norm is in the "
        "weights",
        markup=False,
        soft_wrap=True,
    )


def _export(options: argparse.Namespace, console: Console) -> None:
    (adapter, *others) = find_adapters([options.adapter])
    if others:
        raise ValueError(f"export takes one adapter, {options.adapter} has {1 + len(others)}")
    from study.adapters.change import export  # torch: seconds

    base = options.base or adapter.record.model
    for line in export(adapter, options.format, options.out, base):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
