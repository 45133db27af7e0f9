"""``python -m analysis import SOURCE --map column=source,... --out runs/NAME``."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from pathlib import Path

from analysis.reading.importing.columns import parse_pairs
from analysis.reading.importing.importer import ImportRequest, import_sweep
from analysis.reading.place import is_storage
from analysis.reading.sources import SourceOptions
from study.records.location import without_password
from study.records.printable import printable

HELP = "bring in a sweep of others: CSV, SQLite, Optuna or W&B"
EXAMPLES = """\
  python -m analysis import sweep.csv --map score_final=accuracy,learning_rate=lr --out runs/theirs
  python -m analysis import sft.csv --map score_final=nll --set direction=minimize --out runs/sft
  python -m analysis import sqlite:///theirs.db --map learning_rate=params_lr,lora_rank=params_r \
      --out runs/theirs                                                 an Optuna storage of others
  python -m analysis import wandb:team/project --out runs/mirrored      a W&B project
"""
MAP_HELP = (
    "record column = column of the source; needed are learning_rate, score_final, and method or "
    "lora_rank; columns of the same name map themselves"
)


def add_arguments(parser: ArgumentParser) -> None:
    """The source, how to understand it, and where to write."""
    parser.add_argument(
        "source",
        help="a CSV file, a SQLite file, an Optuna storage (sqlite:///FILE, postgresql://..., "
        "journal:FILE), or wandb:ENTITY/PROJECT",
    )
    parser.add_argument("--out", type=Path, required=True, help="for example runs/theirs")
    for option, metavar, text in (
        ("--map", "COLUMN=SOURCE,...", MAP_HELP),
        ("--set", "COLUMN=VALUE,...", "record column = value of all runs"),
        ("--history-map", "COLUMN=SOURCE,...", "run_id, step and metrics = columns of the history"),
    ):
        parser.add_argument(option, action="append", default=[], metavar=metavar, help=text)
    parser.add_argument("--history", type=Path, help="CSV file of measurements over steps")
    parser.add_argument("--table", help="of a SQLite file that has several")
    parser.add_argument("--study-name", help="of an Optuna storage; all of its studies without it")
    parser.add_argument(
        "--worst-score", type=float, help="score of runs that ended without a finite one"
    )


def run(options: Namespace) -> None:
    """Import the sweep and print how it was understood."""
    request = ImportRequest(
        source=options.source,
        out=options.out,
        column_map=parse_pairs(options.map, "--map"),
        constants=parse_pairs(options.set, "--set"),
        options=SourceOptions(table=options.table, study_name=options.study_name),
        history=options.history,
        history_map=parse_pairs(options.history_map, "--history-map"),
        worst_score=options.worst_score,
        command=_command(options),
    )
    for line in import_sweep(request):
        print(printable(line))


def _command(options: Namespace) -> str:
    """The command line that does the same again."""
    source = options.source
    source = without_password(source) if is_storage(source) else source
    parts = ["python", "-m", "analysis", "import", source]
    for name in ("map", "set", "history", "history_map", "table", "study_name", "worst_score"):
        value = getattr(options, name)
        for item in value if isinstance(value, list) else [value]:
            if item is not None:
                parts += [f"--{name.replace('_', '-')}", str(item)]
    return shlex.join([*parts, "--out", str(options.out)])
