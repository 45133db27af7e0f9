"""``python -m study.status runs/quickstart``: how far a sweep is, from any shell."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from study.cli import reporting_user_errors
from study.records.store import ExperimentStore
from study.sweep.badge import badges, describe_badge
from study.sweep.progress import print_summary
from study.sweep.schedule import read_state


def main(arguments: list[str] | None = None) -> None:
    """Print statuses by arm and what each worker on this machine is doing."""
    parser = argparse.ArgumentParser(prog="python -m study.status", description=__doc__)
    parser.add_argument("experiment", type=Path, help="an experiment's directory")
    options = parser.parse_args(arguments)
    console = Console()
    with reporting_user_errors():
        store = ExperimentStore(options.experiment)
        print_summary(console, read_state(store), store.path)
    for badge in badges(store):
        console.print(f"worker {badge['pid']}: {describe_badge(badge)}", soft_wrap=True)


if __name__ == "__main__":
    main()
