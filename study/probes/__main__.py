"""The command; see :mod:`study.probes`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from study.cli import reporting_user_errors
from study.probes.settings import Settings
from study.probes.stored import StoredRun, find_runs, skipped_sentence
from study.probes.table import probe_table
from study.records.files import write_json
from study.records.printable import printable

DESCRIPTION = """\
Measure what training did to the weights of stored runs: four counts of unchanged weights, rank of
the update, rotation and spectral shift, overlap with principal weights, intruder dimensions; by
module type and depth, against random updates of equal norm. Writes probes.json into each run.
"""
EXAMPLES = """\
Runs keep their weights if they are launched with save=last or save=best.

examples:
  python -m study.probes runs/quickstart                          every run that kept its weights
  python -m study.probes runs/quickstart/lora-r8/046267a239d0     one run, by module type
  python -m study.probes runs/quickstart/full/* --draws 99        98 % ranges instead of 90 %
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the runs, print a table, and say which runs were skipped."""
    parser = argparse.ArgumentParser(
        prog="python -m study.probes",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "places", nargs="+", type=Path, metavar="DIR", help="a run's or an experiment's directory"
    )
    parser.add_argument(
        "--draws",
        type=int,
        default=Settings().draws,
        help="random updates of each kind, at least 2 (default: %(default)s, about a minute "
        "for a matrix of 1,024 x 1,024 on one core, eight at twice the width)",
    )
    options = parser.parse_args(arguments)
    with reporting_user_errors():
        run_probes(options.places, Settings(draws=options.draws), Console())


def run_probes(places: Sequence[Path], settings: Settings, console: Console) -> None:
    """Measure the runs in some places.

    Raises:
        ValueError: If none can be measured, or something stored cannot be read.
    """
    runs, skipped = find_runs(places)
    sentence = skipped_sentence(skipped, len(runs) + len(skipped))
    if not runs:
        raise ValueError(f"no run to measure: {sentence}; launch with save=last or save=best")
    found = measure(runs, settings, console)
    if len(runs) == 1:
        rows = [*found[0]["by_module"].items(), ("all", found[0]["overall"])]
    else:
        rows = [(label(r), data["overall"]) for r, data in zip(runs, found, strict=True)]
    console.print(probe_table("module" if len(runs) == 1 else "run", rows, settings.draws))
    if sentence:
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)


def measure(
    runs: Sequence[StoredRun], settings: Settings, console: Console
) -> list[dict[str, Any]]:
    """Measure runs in turn and write each one's file as soon as it is done.

    Returns:
        The contents of the files.
    """
    from study.probes.result import FILE, probe_run  # torch and the model libraries: some seconds
    from study.probes.weights import Bases, tensor_count

    bases, found = Bases(), list[dict[str, Any]]()
    with _progress(console) as progress:
        task = progress.add_task("", total=sum(tensor_count(run) for run in runs))
        for run in runs:
            show = partial(_show, progress, task, label(run))
            found.append(probe_run(run, bases.of(run), settings, show))
            write_json(run.path / FILE, found[-1])
    return found


def label(run: StoredRun) -> str:
    """How a run is called in tables: its arm and its id."""
    return f"{run.record.arm}/{run.record.run_id}"


def _progress(console: Console) -> Progress:
    text = TextColumn("{task.description}", markup=False)
    columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), text
    return Progress(*columns, console=console, transient=True)


def _show(progress: Progress, task: TaskID, run: str, tensor: str) -> None:
    progress.update(task, advance=1, description=printable(f"{run} {tensor}", keep=""))


if __name__ == "__main__":
    main()
