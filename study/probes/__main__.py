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
from study.probes.behaviour.settings import BehaviourSettings
from study.probes.settings import Settings
from study.probes.stored import StoredRun, find_runs, skipped_sentence
from study.probes.table import behaviour_table, overlap_table, probe_table
from study.records.files import write_json
from study.records.printable import printable

DESCRIPTION = """\
Measure what training did to the weights of stored runs: four counts of unchanged weights, rank of
the update, rotation and spectral shift, overlap with principal weights, intruder dimensions; by
module type and depth, against random updates of equal norm. Writes probes.json into each run.
Of an experiment, also which runs changed the same weights: mask_overlap.json beside its plan.
"""
EXAMPLES = """\
Runs keep their weights if they are launched with save=last or save=best.

examples:
  python -m study.probes runs/quickstart                          every run that kept its weights
  python -m study.probes runs/quickstart/lora-r8/046267a239d0     one run, by module type
  python -m study.probes runs/quickstart/full/* --draws 99        98 % ranges instead of 90 %
  python -m study.probes runs/quickstart --behaviour              sample base and tuned model too
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
    parser.add_argument(
        "--behaviour",
        action="store_true",
        help="sample base and tuned model too: pass@k, diversity, divergence from the base, "
        "accuracy on other arithmetic families",
    )
    options = parser.parse_args(arguments)
    asked = BehaviourSettings() if options.behaviour else None
    with reporting_user_errors():
        run_probes(options.places, Settings(draws=options.draws), Console(), asked)


def run_probes(
    places: Sequence[Path],
    settings: Settings,
    console: Console,
    behaviour: BehaviourSettings | None = None,
) -> None:
    """Measure the runs in some places.

    Raises:
        ValueError: If none can be measured, or something stored cannot be read.
    """
    runs, skipped = find_runs(places)
    sentence = skipped_sentence(skipped, len(runs) + len(skipped))
    if not runs:
        raise ValueError(f"no run to measure: {sentence}; launch with save=last or save=best")
    found = measure(runs, settings, console, behaviour)
    weights = [data["weights"] for data in found]
    if len(runs) == 1:
        rows = [*weights[0]["by_module"].items(), ("all", weights[0]["overall"])]
    else:
        rows = [(label(r), data["overall"]) for r, data in zip(runs, weights, strict=True)]
    console.print(probe_table("module" if len(runs) == 1 else "run", rows, settings.draws))
    if behaviour is not None:
        pairs = [(label(r), data["behaviour"]) for r, data in zip(runs, found, strict=True)]
        console.print(behaviour_table(pairs, behaviour.samples))
    for place in places:
        if (place / "plan.json").exists():
            compare(place, runs, settings, console)
    if sentence:
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)


def measure(
    runs: Sequence[StoredRun],
    settings: Settings,
    console: Console,
    behaviour: BehaviourSettings | None,
) -> list[dict[str, Any]]:
    """Measure runs in turn and write each one's file as soon as it is done.

    Returns:
        The contents of the files.
    """
    from study.probes.result import Prober  # torch and the model libraries: some seconds

    prober, found = Prober(behaviour), list[dict[str, Any]]()
    with _progress(console) as progress:
        task = progress.add_task("", total=sum(map(prober.steps, runs)))
        for run in runs:
            show = partial(_show, progress, task, label(run))
            found.append(prober.probe(run, settings, show))
    return found


def compare(place: Path, runs: Sequence[StoredRun], settings: Settings, console: Console) -> None:
    """Say which runs of an experiment changed the same weights, and write it beside its plan."""
    from study.probes.overlaps import FILE, compared_runs, measure_overlaps, overlap_rows
    from study.probes.weights.pairs import Bases

    mine = compared_runs([run for run in runs if run.path.is_relative_to(place.absolute())])
    with _progress(console) as progress:
        task = progress.add_task("masks", total=len(mine))
        found = measure_overlaps(mine, Bases(), settings, lambda run: progress.advance(task))
    write_json(place / FILE, found)
    if found["pairs"]:
        console.print(overlap_table(overlap_rows(found), settings.mask_share))


def label(run: StoredRun) -> str:
    """How a run is called in tables: its arm and its id."""
    return f"{run.record.arm}/{run.record.run_id}"


def _progress(console: Console) -> Progress:
    text = TextColumn("{task.description}", markup=False)
    columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), text
    return Progress(*columns, console=console, transient=True)


def _show(progress: Progress, task: TaskID, run: str, tensor: str, done: bool) -> None:
    progress.update(task, advance=int(done), description=printable(f"{run} {tensor}", keep=""))


if __name__ == "__main__":
    main()
