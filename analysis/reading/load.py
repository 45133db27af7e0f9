"""An experiment directory -> the frames that everything else in ``analysis`` is computed from.

Only runs that ``plan.json`` names are results. Whatever else lies in the directory, and whatever
the plan names that is not there, ends up in :attr:`Sweep.excluded` with its kind and the reason,
never in silence:

* ``no record``: planned, and not finished: not started, still running, or failed so far.
* ``unreadable record``: no JSON, of a schema version that is not known here, lacking a field, with
  a value of the wrong type or an unknown status, or of another run than the place it lies in.
* ``not planned``: a record in a place that the plan does not name. A run id belongs to one arm, so
  that a copied run cannot count twice.
* ``failed attempt``: a try that left no result, since the run was last reopened. A retry that ended
  well is the run's only record; the tries before it take nothing away.
* ``unreadable metrics``: lines that were cut short; the other lines of the file count.

What is in an imported sweep was decided when it was imported, by the rules of
:mod:`analysis.reading.importing.resolve`.
"""

from __future__ import annotations

from collections.abc import Iterator
from glob import glob
from pathlib import Path
from typing import Any

from analysis.reading.files import (
    content_of,
    json_lines,
    read_json,
    read_record,
    read_selection,
)
from analysis.reading.found import Found, excluded, since_reopened
from analysis.reading.importing.directory import read_imported
from analysis.reading.metrics import read_metrics
from analysis.reading.place import is_storage
from analysis.reading.plan_file import read_plan
from analysis.reading.sweep import Sweep


def load(place: Path | str, experiment: str | None = None) -> Sweep:
    """Read an experiment.

    Args:
        place: ``runs/<experiment>``, finished or not; or, as text, the URL of the Optuna storage of
            a sweep: ``postgresql://USER@HOST/DATABASE``, ``sqlite:///FILE`` or ``journal:FILE``.
        experiment: Name of the experiment, where a storage holds several.

    Raises:
        ValueError: if the directory is missing, empty or not an experiment, or its ``plan.json``
            or a selection is not what ``study`` writes; if the storage cannot be read, or it is not
            clear which experiment of it is meant.
    """
    if is_storage(place):
        from analysis.reading.stored import load_stored  # Optuna: half a second to import

        return load_stored(str(place), experiment)
    if experiment is not None:
        raise ValueError(
            f"--experiment is only read with the URL of a storage, got {place} and {experiment!r}"
        )
    return _load_directory(Path(place))


def _load_directory(path: Path) -> Sweep:
    plan = read_plan(path)
    if plan["experiment"]["kind"] == "imported":
        return read_imported(path, plan)
    found = Found()
    for run in plan["runs"]:
        record, problem = read_record(path, run)
        found.add(run, record, problem, _attempts(path, run), int(plan["max_retries"]))
    metrics, broken = read_metrics(path, found.records)
    cut_short = [r for r in found.records if r["run_id"] in broken]
    left_out = [*_unplanned(path, plan), *(_unreadable(r, broken[r["run_id"]]) for r in cut_short)]
    rates = {arm: read_selection(path, arm) for arm in plan["arms"]}
    return found.sweep(plan, metrics, rates, left_out, path=path)


def samples(sweep: Sweep, run_id: str, limit: int) -> list[dict[str, Any]]:
    """The last ``limit`` stored completions of a planned run; empty if none is at hand."""
    if sweep.path is None:
        return []
    arm = sweep.planned["arm"][sweep.planned["run_id"] == run_id].iloc[0]
    lines, _ = json_lines(content_of(f"{sweep.path}/{arm}/{run_id}/samples.jsonl"))
    return lines[-limit:]


def provenance(sweep: Sweep, run_id: str) -> dict[str, Any]:
    """``provenance.json`` of a planned run; empty if it is not there or not an object."""
    arm = sweep.planned["arm"][sweep.planned["run_id"] == run_id].iloc[0]
    return _provenance(sweep.path, str(arm), run_id)


def provenances(sweep: Sweep) -> list[dict[str, Any]]:
    """The same of every run that has a record, in the order of ``runs``."""
    places = zip(sweep.runs["arm"], sweep.runs["run_id"], strict=True)
    return [_provenance(sweep.path, str(arm), str(run_id)) for arm, run_id in places]


def _provenance(path: Path | None, arm: str, run_id: str) -> dict[str, Any]:
    value, _ = read_json(path / arm / run_id / "provenance.json") if path else (None, "")
    return value or {}


def _attempts(path: Path, run: dict[str, Any]) -> list[dict[str, Any]]:
    lines, _ = json_lines(content_of(f"{path}/{run['arm']}/{run['run_id']}/attempts.jsonl"))
    return since_reopened(run, lines)


def _unplanned(path: Path, plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Records in places that the plan does not name: an id belongs to exactly one arm."""
    places = {(run["arm"], run["run_id"]) for run in plan["runs"]}
    for file in sorted(glob("*/*/record.json", root_dir=path)):
        arm, run_id, _ = Path(file).parts
        if (arm, run_id) not in places:
            run = {"arm": arm, "run_id": run_id}
            yield excluded(run, "not planned", "a record that plan.json does not name in this arm")


def _unreadable(record: dict[str, Any], lines: int) -> dict[str, Any]:
    reason = f"{lines} unreadable line{'s' if lines > 1 else ''} of metrics.jsonl left out"
    return excluded(record, "unreadable metrics", reason)
