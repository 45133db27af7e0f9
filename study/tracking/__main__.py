"""``python -m study.tracking runs/quickstart``: mirror a sweep to Weights & Biases.

Examples::

    python -m study.tracking runs/quickstart                   # files for `wandb leet`, no network
    python -m study.tracking runs/quickstart --mode online     # the same, and upload them
    wandb leet runs/quickstart/wandb                           # look at them in a terminal

``python -m study.tracking.workspace`` makes a W&B workspace and report of them.

Safe to stop and to repeat: a second pass changes nothing, an interrupted one is completed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from study.cli import reporting_user_errors
from study.records.store import ExperimentStore
from study.sweep.schedule import read_state
from study.tracking.runlog import clean_environment
from study.tracking.session import follow, mirror_once
from study.tracking.upload import DEFAULT_URL, check_key


def main(arguments: list[str] | None = None) -> int:
    """Mirror once, or follow a sweep."""
    parser = argparse.ArgumentParser(
        prog="python -m study.tracking",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("experiment", type=Path, help="an experiment's directory")
    parser.add_argument("--mode", choices=("offline", "online"), default="offline")
    parser.add_argument("--project", default="lora-rl-study", help="W&B project")
    parser.add_argument("--prune", action="store_true", help="remove local files of uploaded runs")
    parser.add_argument("--follow", action="store_true", help="until standard input closes")
    options = parser.parse_args(arguments)
    store, online = ExperimentStore(options.experiment), options.mode == "online"
    variables = clean_environment()
    with reporting_user_errors():
        read_state(store)
        if online:
            check_key(variables.get("WANDB_BASE_URL", DEFAULT_URL), variables)
        if options.follow:
            return follow(store, options.project, online, variables)
        return mirror_once(store, options.project, online, variables, options.prune)


if __name__ == "__main__":
    sys.exit(main())
