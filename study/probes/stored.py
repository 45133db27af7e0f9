"""Which stored runs can be measured, and why others cannot; no weights are read here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from study.config import LoraMethod, RunConfig, run_config_from_dict
from study.plan.experiment import from_json
from study.records.printable import printable
from study.records.record import Record, read_record
from study.records.store import ExperimentStore

NAMED = 6
"""Skipped runs that are named for each reason."""
NO_RECORD = "not finished"
NOT_SAVED = "save=none"
NO_WEIGHTS = "ended before it had weights to keep, or they were removed"


@dataclass(frozen=True)
class StoredRun:
    """A finished run; whether it kept its weights, :func:`unmeasurable` says."""

    path: Path
    """The run's directory; while a run is not published, that of the attempt."""
    record: Record
    config: RunConfig

    @property
    def weights(self) -> Path:
        """The directory of the weights: ``adapter/`` in PEFT's format, or ``model/``."""
        return self.path / ("adapter" if isinstance(self.config.method, LoraMethod) else "model")


@dataclass(frozen=True)
class Skipped:
    """A run that cannot be measured."""

    path: Path
    reason: str


def find_runs(places: Iterable[Path]) -> tuple[list[StoredRun], list[Skipped]]:
    """Return the runs to measure, each once, and those that are skipped.

    Args:
        places: Run directories, and experiment directories for all runs of their plans.

    Raises:
        ValueError: If a place is neither, or a record or configuration cannot be read.
    """
    runs, skipped = list[StoredRun](), list[Skipped]()
    for path in dict.fromkeys(path for place in places for path in _run_directories(place)):
        found = _look(path)
        if isinstance(found, StoredRun):
            runs.append(found)
        else:
            skipped.append(found)
    return runs, skipped


def skipped_sentence(skipped: Sequence[Skipped], total: int) -> str:
    """Say in one sentence which runs were left out, by reason; empty if none was."""
    if not skipped:
        return ""
    groups = [
        f"{count} ({reason}): {_names(skipped, reason)}"
        for reason, count in Counter(skip.reason for skip in skipped).items()
    ]
    return f"skipped {len(skipped)} of {total} runs: {'; '.join(groups)}"


def _names(skipped: Sequence[Skipped], reason: str) -> str:
    names = [f"{s.path.parent.name}/{s.path.name}" for s in skipped if s.reason == reason]
    more = [f"{len(names) - NAMED} more"] if len(names) > NAMED else []
    return ", ".join(printable(name, keep="") for name in [*names[:NAMED], *more])


def _run_directories(place: Path) -> list[Path]:
    place = place.absolute()
    store = ExperimentStore(place)
    data = store.read_plan()
    if data is None:
        if not (place / "record.json").is_file():
            raise ValueError(
                f"{place} is neither a finished run (it has no record.json) nor an experiment "
                "(it has no plan.json)"
            )
        return [place]
    if data["experiment"]["kind"] == "imported":
        raise ValueError(f"{place} was imported from elsewhere: there are no weights to measure")
    return [store.run_dir(run.arm, run.run_id) for run in from_json(data).runs]


def _look(path: Path) -> StoredRun | Skipped:
    record = read_record(path / "record.json")
    if record is None:
        return Skipped(path, NO_RECORD)
    run = StoredRun(path, record, _read_config(path / "config.yaml"))
    reason = unmeasurable(run)
    return Skipped(path, reason) if reason else run


def unmeasurable(run: StoredRun) -> str:
    """Why a finished run has no weights to measure; empty if it has."""
    if run.config.save == "none":
        return NOT_SAVED
    return "" if run.weights.is_dir() else NO_WEIGHTS


def _read_config(path: Path) -> RunConfig:
    try:
        return run_config_from_dict(yaml.safe_load(path.read_text()))
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        law = " ".join(str(error).split())
        raise ValueError(f"{path} is not the configuration of a run: {law}") from error
