"""How commands take experiments: a directory, or a storage and the name of one in it."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence

from analysis.reading.load import load
from analysis.reading.place import is_storage
from analysis.reading.sweep import Sweep

METAVAR = "DIRECTORY|URL"
HELP = (
    "experiment directory, for example runs/quickstart, or the Optuna storage of a sweep: "
    "postgresql://USER@HOST/DATABASE, sqlite:///FILE or journal:FILE"
)


def add_place(parser: ArgumentParser) -> None:
    """One experiment."""
    parser.add_argument("place", metavar=METAVAR, help=HELP)
    add_experiment(parser)


def add_experiment(parser: ArgumentParser) -> None:
    """The experiments that are meant, where storages hold several."""
    parser.add_argument(
        "--experiment",
        action="append",
        default=[],
        metavar="NAME",
        help="which experiment of a storage that holds several; of several storages, one each",
    )


def read(places: Sequence[str], names: Sequence[str]) -> list[Sweep]:
    """The experiments, each from its place.

    Args:
        places: Directories and URLs.
        names: Experiments of the storages among them, in their order; none, one for all of them, or
            one each.

    Raises:
        ValueError: if one cannot be read, or there are more or fewer names than storages.
    """
    stored = [place for place in places if is_storage(place)]
    if len(names) not in (0, 1, len(stored)) or (names and not stored):
        raise ValueError(
            f"--experiment names one experiment for each storage, got {len(names)} names for "
            f"{len(stored)} storages"
        )
    wanted = iter(names if len(names) == len(stored) else list(names) * len(stored))
    return [load(place, next(wanted, None) if is_storage(place) else None) for place in places]
