"""``python -m study.status runs/quickstart``: how far a sweep is, from any shell.

It only reads, so it works while the sweep runs here or elsewhere, and when it is over.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from rich.console import Console

from study.cli import reporting_user_errors
from study.records.store import ExperimentStore
from study.sweep.schedule import read_state
from study.sweep.view.outlook import Watch
from study.sweep.view.progress import draw_live, print_summary
from study.sweep.view.table import outlook_table


def main(arguments: list[str] | None = None) -> None:
    """Print progress and statuses by arm, and what each worker is doing; once, or on and on."""
    parser = argparse.ArgumentParser(prog="python -m study.status", description=__doc__)
    parser.add_argument("experiment", type=Path, help="an experiment's directory")
    parser.add_argument("--watch", action="store_true", help="keep drawing until no run is left")
    options = parser.parse_args(arguments)
    console = Console()
    with reporting_user_errors():
        store = ExperimentStore(options.experiment)
        watch = Watch(store)
        if options.watch:
            _keep_drawing(console, watch)
        else:
            console.print(outlook_table(watch.look(), console.width))
        print_summary(console, read_state(store), store.path)


def _keep_drawing(console: Console, watch: Watch) -> None:
    def wait(seconds: float) -> bool:
        try:
            time.sleep(seconds)
        except KeyboardInterrupt:
            return True
        return False

    draw_live(console, watch, wait, ended=lambda outlook: outlook.over)


if __name__ == "__main__":
    main()
