"""A small file for each living worker: what it trains, and how far that is."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from study.plan.identity import short_hash
from study.records.files import is_json, read_text, write_json
from study.records.store import ExperimentStore
from study.sweep.claims.leases import is_fresh, new_lease
from study.sweep.work.lane import Lane

SHOWN_EVERY_S = 0.5


class Badge:
    """This process's file among the workers of an experiment."""

    def __init__(self, store: ExperimentStore) -> None:
        """Removes what dead workers left; a viewer may not, since it only reads."""
        self._path = store.workers_dir / _name(new_lease())
        self._shown_at, self._shown = -SHOWN_EVERY_S, [""]
        for path, badge in _all(store):
            if badge is None or not is_fresh(badge):
                path.unlink(missing_ok=True)

    def show(self, lanes: Collection[Lane]) -> None:
        """Say which runs the worker trains and how far they are; none: it waits for runs.

        Cheap when called often: while the runs stay the same, the file is written at most twice a
        second.
        """
        shown = [lane.run.run_id for lane in lanes]
        if shown == self._shown and time.monotonic() - self._shown_at < SHOWN_EVERY_S:
            return
        self._shown_at, self._shown = time.monotonic(), shown
        write_json(self._path, {**new_lease(), "runs": [_row(lane) for lane in lanes]})

    def remove(self) -> None:
        """The worker leaves."""
        self._path.unlink(missing_ok=True)


def _name(lease: Mapping[str, Any]) -> str:
    """The process's own file, also where containers share a host's name and each has a pid 7."""
    started = [str(lease[key]) for key in ("pid_namespace", "started", "after_boot")]
    return f"{lease['host']}-{lease['pid']}-{short_hash(started, 8)}.json"


def _row(lane: Lane) -> dict[str, Any]:
    spec = lane.assignment.spec
    return {
        "run_id": spec.run_id,
        "arm": lane.assignment.arm,
        "phase": lane.assignment.phase,
        "learning_rate": spec.config.objective.learning_rate,
        "seed": spec.config.seed,
        "step": lane.step,
        "steps": spec.config.objective.steps,
        "accuracy": lane.accuracy,
    }


def badges(store: ExperimentStore) -> list[dict[str, Any]]:
    """What each living worker is doing: those of other machines live while they show it."""
    return [badge for _, badge in _all(store) if badge is not None and is_fresh(badge)]


def _all(store: ExperimentStore) -> Iterator[tuple[Path, dict[str, Any] | None]]:
    """Badges by file, those of the dead included; None where a power failure spoilt the file."""
    for path in sorted(store.workers_dir.glob("*.json")):
        text = read_text(path)
        if text is not None:  # else the worker left in this moment
            yield path, json.loads(text) if is_json(text) else None


def describe_badge(badge: dict[str, Any]) -> str:
    """What one worker is doing, in a few words."""
    runs = badge["runs"]
    if not runs:
        return "waiting for a run"
    steps, best = _span(runs), max(r["accuracy"] or 0.0 for r in runs)
    known = any(r["accuracy"] is not None for r in runs)
    if len(runs) == 1:
        text = f"{runs[0]['arm']} lr={runs[0]['learning_rate']:g} seed={runs[0]['seed']}"
        return f"{text} step {steps}" + (f" accuracy {best:.3f}" if known else "")
    arms = Counter(run["arm"] for run in runs)
    text = f"{len(runs)} runs at step {steps}" + (f", best accuracy {best:.3f}" if known else "")
    return f"{text} ({', '.join(f'{n} {arm}' for arm, n in arms.items())})"


def _span(runs: list[dict[str, Any]]) -> str:
    """For example ``75/150``, or ``20-75/150`` where runs joined later."""
    first, last = min(r["step"] for r in runs), max(r["step"] for r in runs)
    shortest, longest = min(r["steps"] for r in runs), max(r["steps"] for r in runs)
    done = str(last) if first == last else f"{first}-{last}"
    return f"{done}/{longest}" if shortest == longest else f"{done}/{shortest}-{longest}"
